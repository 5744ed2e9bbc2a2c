"""Maps of a run, from its ``maps.npz``: what was known and planned over the states, by episode."""

import base64
import dataclasses
import pathlib
import zipfile
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError

ARRAYS = ("episodes", "states", "names", "layers", "visited", "visited_episode")
#: What a number is coded as when it is missing; others are 0 to 254.
MISSING = 255
COLOURS = "cividis"


@dataclasses.dataclass(frozen=True)
class Maps:
    """Layers over states, after some numbers of episodes."""

    #: After how many, (F,).
    episodes: np.ndarray
    #: (N, m).
    states: np.ndarray
    names: tuple[str, ...]
    #: (F, L, N).
    layers: np.ndarray
    #: (V, m), and in which episode.
    visited: np.ndarray
    visited_episode: np.ndarray

    @property
    def shape(self) -> tuple[int, ...] | None:
        """States along each axis, where they fill a grid with the last axis running fastest."""
        axes = [np.unique(column) for column in self.states.T]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        whole = grid.shape == self.states.shape and np.array_equal(grid, self.states)
        return tuple(len(axis) for axis in axes) if whole else None

    def range(self, layer: int) -> tuple[float, float]:
        """Of all frames: colours mean the same in each."""
        values = self.layers[:, layer]
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def coded(self) -> dict[str, Any]:
        """For the page: every number of a layer as one byte of its range, in base 64."""
        codes, ranges = [], []
        for layer in range(len(self.names)):
            low, high = self.range(layer)
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
    """Those of a run's folder, if it has any."""
    path = pathlib.Path(folder) / "maps.npz"
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in ARRAYS}
        sizes = (len(found["episodes"]), len(found["names"]), len(found["states"]))
        dimension = found["states"].shape[1]
    except (OSError, KeyError, ValueError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise ArgumentError("folder", f"maps that can be read ({error})", path) from None
    if found["layers"].shape != sizes or dimension > 2 or 0 in sizes:
        raise ArgumentError("folder", f"layers of shape {sizes}, for m = 1 or 2", path)
    found["names"] = tuple(map(str, found["names"]))
    return Maps(**found)


def draw_map(axes: Any, maps: Maps, name: str, *, frame: int = -1) -> None:
    """One layer after one number of episodes, with the states visited until then."""
    if name not in maps.names:
        raise ArgumentError("name", "one of " + ", ".join(maps.names), name)
    layer, told = maps.names.index(name), maps.episodes[frame]
    values, (low, high) = maps.layers[frame, layer], maps.range(layer)
    seen = maps.visited[maps.visited_episode <= told]
    axes.set_xlabel("state coordinate 1")
    if maps.states.shape[1] == 1:
        axes.plot(maps.states[:, 0], values)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        place = axes.get_xaxis_transform()
        axes.plot(seen[:, 0], np.zeros(len(seen)), "k|", transform=place, label="visited")
        axes.set_ylabel(name)
        return
    style = {"cmap": COLOURS, "vmin": low, "vmax": high}
    if maps.shape is None:
        image = axes.scatter(*maps.states.T, c=values, **style)
    else:
        grid = [column.reshape(maps.shape) for column in maps.states.T]
        image = axes.pcolormesh(*grid, values.reshape(maps.shape), shading="nearest", **style)
        image.set_rasterized(True)
    axes.plot(*seen.T, "o", color="white", mec="black", mew=0.4, ms=2, label="visited")
    axes.set_ylabel("state coordinate 2")
    axes.figure.colorbar(image, ax=axes, label=name)
