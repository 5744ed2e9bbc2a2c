"""Maps of a run from its ``maps.npz``: beliefs and plans over the states, after some episodes."""

import base64
import dataclasses
import pathlib
import zipfile
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.safe_sets import RISK_LAYER, SAFE_LAYER
from kernelmdp.report.figures import shortened

#: The arrays of the file. They are the fields of ``Maps``, but for the names of coordinates.
ARRAYS = ("episodes", "states", "names", "layers", "visited", "visited_episode")
#: The byte that encodes a missing number. Other numbers are 0 to 254.
MISSING = 255
#: The colour map. Colour-blind readers see it as others do.
COLOUR_MAP = "cividis"
#: Layers whose range does not depend on the run. In others, no range would mean safe or unsafe.
RANGES = {RISK_LAYER: (0.0, 1.0), SAFE_LAYER: (0.0, 1.0)}


@dataclasses.dataclass(frozen=True)
class Maps:
    """L layers over N states, each after F numbers of episodes.

    Attributes:
        episodes: After how many episodes the maps were made, (F,).
        states: The states, (N, m).
        names: The names of the layers.
        layers: The values, (F, L, N).
        visited: Visited states, (V, m).
        visited_episode: In which episode each was visited, (V,).
        coordinates: The names of the coordinates of a state. Older files have none.
    """

    episodes: np.ndarray
    states: np.ndarray
    names: tuple[str, ...]
    layers: np.ndarray
    visited: np.ndarray
    visited_episode: np.ndarray
    coordinates: tuple[str, ...] = ()

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the coordinates, or their numbers from 0."""
        count = self.states.shape[1]
        numbered = tuple(f"state[{axis}]" for axis in range(count))
        return self.coordinates if len(self.coordinates) == count else numbered

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The numbers of states along the axes, if they fill a grid; None otherwise.

        The last axis of the grid varies fastest.
        """
        axes = [np.unique(column) for column in self.states.T]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        is_grid = grid.shape == self.states.shape and np.array_equal(grid, self.states)
        return tuple(len(axis) for axis in axes) if is_grid else None

    def value_range(self, layer: int) -> tuple[float, float]:
        """Return the range of a layer over all episodes, so that colours mean the same in each.

        Args:
            layer: The number of the layer.

        Returns:
            The smallest and the largest value.
        """
        if self.names[layer] in RANGES:
            return RANGES[self.names[layer]]
        values = self.layers[:, layer]
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def encode(self) -> dict[str, Any]:
        """Encode the maps for the page: every value as one byte of its layer's range, in base 64.

        Returns:
            What JSON can hold; the script of the page reads it.
        """
        codes, ranges = [], []
        for layer in range(len(self.names)):
            low, high = self.value_range(layer)
            ranges.append([low, high])
            share = (self.layers[:, layer] - low) / (high - low)
            known = np.isfinite(share)
            scaled = np.where(known, np.round(254 * np.where(known, share, 0)), MISSING)
            rows = scaled.astype(np.uint8)
            codes.append([base64.b64encode(row.tobytes()).decode() for row in rows])
        low, high = self.states.min(axis=0), self.states.max(axis=0)
        return {
            "episodes": self.episodes.tolist(),
            "names": list(self.names),
            "coordinates": list(self.axis_names),
            "low": low.tolist(),
            "high": high.tolist(),
            "shape": self.shape,
            "states": None if self.shape else self.states.tolist(),
            "ranges": ranges,
            "codes": codes,
            "visited": np.round(self.visited, 4).tolist(),
            "visitedEpisode": self.visited_episode.tolist(),
        }


def read_maps(folder: Any) -> Maps | None:
    """Read the maps of a run.

    Args:
        folder: The run's folder.

    Returns:
        The maps, or None if it has none.

    Raises:
        ArgumentError: If the file cannot be read.
    """
    path = pathlib.Path(folder) / "maps.npz"
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ARRAYS}
            coordinates = file["coordinates"] if "coordinates" in file else ()
        sizes = (len(arrays["episodes"]), len(arrays["names"]), len(arrays["states"]))
        dimension = arrays["states"].shape[1]
    except (OSError, KeyError, ValueError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise ArgumentError("folder", f"maps that can be read ({error})", path) from None
    if arrays["layers"].shape != sizes or dimension > 2 or 0 in sizes:
        raise ArgumentError("folder", f"layers of shape {sizes}, for m = 1 or 2", path)
    arrays["names"] = tuple(map(str, arrays["names"]))
    return Maps(**arrays, coordinates=tuple(map(str, coordinates)))


def draw_map(axes: Any, maps: Maps, name: str, *, frame: int = -1) -> None:
    """Draw one layer after some episodes, with the states visited until then.

    Args:
        axes: Axes of Matplotlib to draw on.
        maps: The maps.
        name: The name of the layer.
        frame: Which number of episodes: a position in ``maps.episodes``. −1 is the last.

    Raises:
        ArgumentError: If there is no such layer.
    """
    if name not in maps.names:
        raise ArgumentError("name", "one of " + ", ".join(maps.names), name)
    layer, episodes = maps.names.index(name), maps.episodes[frame]
    values, (low, high) = maps.layers[frame, layer], maps.value_range(layer)
    visited = maps.visited[maps.visited_episode <= episodes]
    axes.set_xlabel(shortened(maps.axis_names[0]))
    if maps.states.shape[1] == 1:
        axes.plot(maps.states[:, 0], values)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        on_axis = axes.get_xaxis_transform()
        axes.plot(visited[:, 0], np.zeros(len(visited)), "k|", transform=on_axis, label="visited")
        axes.set_ylabel(name)
        return
    style = {"cmap": COLOUR_MAP, "vmin": low, "vmax": high}
    if maps.shape is None:
        image = axes.scatter(*maps.states.T, c=values, **style)
    else:
        grid = [column.reshape(maps.shape) for column in maps.states.T]
        image = axes.pcolormesh(*grid, values.reshape(maps.shape), shading="nearest", **style)
        image.set_rasterized(True)
    axes.plot(*visited.T, "o", color="white", mec="black", mew=0.4, ms=2, label="visited")
    axes.set_ylabel(shortened(maps.axis_names[1]))
    axes.figure.colorbar(image, ax=axes, label=name)
