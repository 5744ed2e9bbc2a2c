"""Coordinates on which the motion does not depend, such as the place of a cart on its track.

Nothing in the motion tells a plan to stay where it is along them, so plans let them drift. Tracks
end somewhere all the same.
"""

import numpy as np
from jaxtyping import Bool, Float

from kernelmdp.confidence import Beliefs
from kernelmdp.gp.row_selection import spread_rows
from kernelmdp.learners.fitted_data import FittedData


def free_coordinates(
    data: FittedData, beliefs: Beliefs, trend: Float[np.ndarray, "d1 m"]
) -> Bool[np.ndarray, " m"]:
    """Find coordinates without bounds on which the learned motion hardly depends.

    Each coordinate is set to both ends of what was visited, in states of the data. The motion
    depends on it by the largest root mean square difference of an increment, as a share of that
    increment's root mean square.

    Args:
        data: The data.
        beliefs: What was learned from them.
        trend: The linear trend of the increments: a row of levels, then d rows of slopes.

    Returns:
        Which coordinates they are, (m,).
    """
    m, count = data.problem.states.dimension, data.settings.fit_rows
    free = np.zeros(m, bool)
    excluded = {*data.box.periodic, *data.problem.measured}
    axes = [axis for axis in data.open_axes if axis not in excluded]
    if not axes:
        return free
    # Repeated rows keep the shape, so one compiled program serves all episodes.
    rows = data.points[spread_rows(data.points, count, key=data.rows_key(len(data)))]
    points = np.tile(np.resize(rows, (count, rows.shape[1])), (len(axes), 2, 1, 1))
    visited = np.concatenate([data.points[:, :m], data.outcomes])
    ends = np.stack([visited.min(axis=0), visited.max(axis=0)])
    for number, axis in enumerate(axes):
        points[number, :, :, axis] = ends[:, axis][:, None]
    predicted = np.asarray(beliefs.transition.predict(points.reshape(-1, points.shape[3]))[0])
    differences = np.diff(predicted.reshape(len(axes), 2, count, -1), axis=1)[:, 0]
    widths = np.ptp(ends, axis=0)[axes]
    differences += (trend[1:][axes] * widths[:, None] / data.scale)[:, None, :]
    motion = np.sqrt(np.mean((data.increments / data.scale) ** 2, axis=0))
    shares = np.sqrt(np.mean(differences**2, axis=1)) / np.maximum(motion, 1e-12)
    free[axes] = shares.max(axis=1) <= data.settings.free_motion
    return free
