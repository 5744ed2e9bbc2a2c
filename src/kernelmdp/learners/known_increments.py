"""What a rough model, or other knowledge of the motion, says of the increments of the state."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import DataError
from kernelmdp.mdp import Problem
from kernelmdp.mdp.known_motion import KnownMotion
from kernelmdp.numerics.modules import quick_jit
from kernelmdp.types import AnyArray

#: Points at which a rough model is evaluated to learn the size of its changes.
PRIOR_PROBES = 256


def known_increments(
    problem: Problem, points: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "n m"]:
    """Evaluate what is known of the increments of the state.

    Args:
        problem: The problem.
        points: z = (s, a), (n, d).

    Returns:
        The increments; 0 if nothing is known.

    Raises:
        DataError: If the known motion is not finite at a point.
    """
    m = problem.states.dimension
    if problem.motion is None or not len(points):
        return np.zeros((len(points), m))
    # All episodes are padded to the same length. Then one compiled program serves them.
    missing = -len(points) % problem.horizon
    padded = np.pad(points, ((0, missing), (0, 0)), mode="edge")
    known = np.asarray(_evaluated(problem.motion, padded))[: len(points)]
    if not np.isfinite(known).all():
        row, axis = (int(i) for i in np.argwhere(~np.isfinite(known))[0])
        got = f"{known[row, axis]} for coordinate {axis} at {points[row].tolist()}"
        raise DataError("prior_model", "finite next states", got)
    return known - points[:, :m]


def prior_changes(problem: Problem) -> Float[np.ndarray, " m"]:
    """Compute how much a rough model changes the state, before any data.

    Args:
        problem: The problem with the rough model.

    Returns:
        Root mean squares of its increments at points that are spread over the space, (m,). On axes
        without bounds the points are at 0.
    """
    points = np.array(problem.points.spread_points(PRIOR_PROBES))
    points[:, list(problem.unbounded)] = 0.0
    return np.sqrt(np.mean(known_increments(problem, points) ** 2, axis=0))


@quick_jit
def _evaluated(motion: KnownMotion, points: AnyArray) -> Array:
    return motion(jnp.asarray(points))
