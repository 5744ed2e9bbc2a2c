"""Returns of policies in MDPs that are drawn from beliefs."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.mdp import MDP, DrawnModels, rollout
from kernelmdp.mdp.model import Model
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.types import ArrayLike, Key


def returns_in_draws(
    mdp: MDP, drawn: DrawnModels, policy: Policy, start: ArrayLike, *, key: Key
) -> Float[np.ndarray, " k"]:
    """Simulate one episode of a policy in each drawn MDP.

    Policies that are compared with the same key meet the same noise.

    Args:
        mdp: The MDP whose model is replaced by the drawn ones.
        drawn: The k drawn models.
        policy: The policy.
        start: The first state, (m,).
        key: Decides the noise.

    Returns:
        The sums of rewards, (k,).

    >>> import jax
    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import UniformPolicy
    >>> env, key = km.make("riverswim"), jax.random.key(0)
    >>> drawn = DrawnModels.stacked([env.mdp.model, env.mdp.model])
    >>> policy = UniformPolicy(env.mdp.actions, key)
    >>> first, second = returns_in_draws(env.mdp, drawn, policy, env.start, key=key)
    >>> bool(first == second)
    True
    """
    row = jnp.asarray(start, float)[None, :]
    return np.asarray(_returns(mdp, drawn.models, policy, row, key))


@jit
def _returns(
    mdp: MDP, models: Model, policy: Policy, starts: Float[Array, "1 m"], key: Key
) -> Float[Array, " k"]:
    def in_draw(model: Model) -> Array:
        rewards = rollout(replace_fields(mdp, model=model), policy, starts, key=key)[2]
        return jnp.sum(rewards)

    return eqx.filter_vmap(in_draw)(models)
