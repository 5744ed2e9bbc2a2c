"""Small pictures of pendulums and cart-poles: arrays (200, 200, 3) of bytes."""

import dataclasses
import math

import numpy as np

SIZE = 200
PAPER, INK, METAL, WOOD = (255, 255, 255), (40, 40, 40), (70, 110, 170), (200, 110, 50)


class Canvas:
    """A square window on the plane, ``reach`` to every side of ``centre``, y upwards."""

    def __init__(self, reach: float, centre: tuple[float, float] = (0.0, 0.0)) -> None:
        self._pixel = 2 * reach / SIZE
        offsets = (np.arange(SIZE) + 0.5) * self._pixel - reach
        self._x, self._y = np.meshgrid(centre[0] + offsets, centre[1] - offsets)
        self._image = np.full((SIZE, SIZE, 3), PAPER, dtype=float)

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        *,
        width: float,
        colour: tuple[int, int, int],
    ) -> None:
        """A line with round ends; a dot when the ends are one."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = (self._x - start[0]) * dx + (self._y - start[1]) * dy
        share = np.clip(along / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
        away = np.hypot(self._x - start[0] - share * dx, self._y - start[1] - share * dy)
        # A pixel that the border cuts gets part of the colour.
        cover = np.clip((width / 2 - away) / self._pixel + 0.5, 0.0, 1.0)[:, :, None]
        self._image = (1 - cover) * self._image + cover * np.array(colour, dtype=float)

    @property
    def pixels(self) -> np.ndarray:
        """The image as bytes."""
        return np.round(self._image).astype(np.uint8)


@dataclasses.dataclass(frozen=True)
class PendulumDrawing:
    """A rod of length 1 about the middle; states (θ, ω), θ = 0 upright, anticlockwise."""

    def __call__(self, state: np.ndarray) -> np.ndarray:
        picture = Canvas(1.3)
        tip = (-math.sin(state[0]), math.cos(state[0]))
        picture.line((0.0, 0.0), tip, width=0.16, colour=WOOD)
        picture.line((0.0, 0.0), (0.0, 0.0), width=0.1, colour=INK)
        return picture.pixels


@dataclasses.dataclass(frozen=True)
class CartPoleDrawing:
    """A cart on its track and the pole on it; states (x, ẋ, θ, θ̇), θ = 0 upright, clockwise."""

    #: The pole's length, and half the width of what is seen.
    length: float
    reach: float

    def __call__(self, state: np.ndarray) -> np.ndarray:
        x, angle = float(state[0]), float(state[2])
        picture, unit = Canvas(self.reach), 0.08 * self.reach
        picture.line(
            (-10 * self.reach, -unit), (10 * self.reach, -unit), width=unit / 5, colour=INK
        )
        picture.line((x - 2 * unit, 0.0), (x + 2 * unit, 0.0), width=1.5 * unit, colour=METAL)
        tip = (x + self.length * math.sin(angle), self.length * math.cos(angle))
        picture.line((x, 0.0), tip, width=0.7 * unit, colour=WOOD)
        picture.line((x, 0.0), (x, 0.0), width=0.5 * unit, colour=INK)
        return picture.pixels
