"""Values of fixed sequences of actions in several MDPs, for comparisons of plans."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.mdp import MDP
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.model_rollout import rollout_returns
from kernelmdp.types import ArrayLike


def open_loop_values(
    mdps: Sequence[MDP], start: ArrayLike, actions: Float[np.ndarray, "T q"]
) -> Float[np.ndarray, " k"]:
    """Estimate what a sequence of actions and its continuation earn in each of several MDPs.

    After the sequence, the terminal value of the MDP is earned. Where there is none, the mean
    reward of the sequence is assumed to go on to the end of the episode.

    Args:
        mdps: The MDPs.
        start: The first state, (m,).
        actions: The sequence, (T, q).

    Returns:
        One value for each MDP.
    """
    state = np.asarray(start, float)
    values = []
    for mdp in mdps:
        value = float(_open_loop_return(mdp, state, actions))
        extends = "terminal_value" not in mdp.signals
        values.append(value * max(mdp.horizon / len(actions), 1.0) if extends else value)
    return np.array(values)


@jit
def _open_loop_return(mdp: MDP, start: ArrayLike, actions: ArrayLike) -> Array:
    sequence = jnp.asarray(actions)[None]
    nothing = jnp.zeros((1, sequence.shape[1], 0))
    period = jnp.asarray(0)
    return rollout_returns(
        mdp, jnp.asarray(start), period, sequence, nothing, None, optimism="ball"
    )[0]
