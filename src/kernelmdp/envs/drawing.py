"""Small pictures of pendulums and cart-poles: arrays (200, 200, 3) of bytes."""

import dataclasses
import math

import numpy as np

#: Pixels along each side of a picture. A larger picture takes longer to draw.
SIZE = 200
#: The colour of the background: white.
BACKGROUND = (255, 255, 255)
#: The colour of axles and tracks: dark grey.
DARK = (40, 40, 40)
#: The colour of a cart: blue.
CART_COLOUR = (70, 110, 170)
#: The colour of a pole: orange.
POLE_COLOUR = (200, 110, 50)


class Canvas:
    """A square window on the plane, with y upwards.

    Args:
        reach: The distance from the centre to every side.
        centre: The centre of the window.
    """

    def __init__(self, reach: float, centre: tuple[float, float] = (0.0, 0.0)) -> None:
        self._pixel = 2 * reach / SIZE
        offsets = (np.arange(SIZE) + 0.5) * self._pixel - reach
        self._x, self._y = np.meshgrid(centre[0] + offsets, centre[1] - offsets)
        self._image = np.full((SIZE, SIZE, 3), BACKGROUND, dtype=float)

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        *,
        width: float,
        colour: tuple[int, int, int],
    ) -> None:
        """Draw a line with round ends. It is a dot if start and end are equal.

        Args:
            start: One end.
            end: The other end.
            width: The width of the line.
            colour: Red, green and blue, from 0 to 255.
        """
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = (self._x - start[0]) * dx + (self._y - start[1]) * dy
        share = np.clip(along / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
        distance = np.hypot(self._x - start[0] - share * dx, self._y - start[1] - share * dy)
        # A pixel on the border of the line gets part of the colour.
        cover = np.clip((width / 2 - distance) / self._pixel + 0.5, 0.0, 1.0)[:, :, None]
        self._image = (1 - cover) * self._image + cover * np.array(colour, dtype=float)

    @property
    def pixels(self) -> np.ndarray:
        """The image as bytes, (200, 200, 3)."""
        return np.round(self._image).astype(np.uint8)


@dataclasses.dataclass(frozen=True)
class PendulumDrawing:
    """Draws a rod of length 1 that turns about the centre.

    States are (θ, ω), with θ = 0 upright and anticlockwise.
    """

    def __call__(self, state: np.ndarray) -> np.ndarray:
        canvas = Canvas(1.3)
        tip = (-math.sin(state[0]), math.cos(state[0]))
        canvas.line((0.0, 0.0), tip, width=0.16, colour=POLE_COLOUR)
        canvas.line((0.0, 0.0), (0.0, 0.0), width=0.1, colour=DARK)
        return canvas.pixels


@dataclasses.dataclass(frozen=True)
class CartPoleDrawing:
    """Draws a cart with a pole on its track.

    States are (x, ẋ, θ, θ̇), with θ = 0 upright and clockwise.

    Attributes:
        length: The length of the pole.
        reach: Half the width of the visible part.
    """

    length: float
    reach: float

    def __call__(self, state: np.ndarray) -> np.ndarray:
        x, angle = float(state[0]), float(state[2])
        canvas, unit = Canvas(self.reach), 0.08 * self.reach
        canvas.line(
            (-10 * self.reach, -unit), (10 * self.reach, -unit), width=unit / 5, colour=DARK
        )
        canvas.line((x - 2 * unit, 0.0), (x + 2 * unit, 0.0), width=1.5 * unit, colour=CART_COLOUR)
        tip = (x + self.length * math.sin(angle), self.length * math.cos(angle))
        canvas.line((x, 0.0), tip, width=0.7 * unit, colour=POLE_COLOUR)
        canvas.line((x, 0.0), (x, 0.0), width=0.5 * unit, colour=DARK)
        return canvas.pixels
