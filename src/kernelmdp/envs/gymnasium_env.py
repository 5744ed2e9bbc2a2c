"""Our environments as Gymnasium's: the truth, stepped, with the state as observation."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, FiniteSet
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.registry import make
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.mdp import MDP, step
from kernelmdp.numerics.modules import jit
from kernelmdp.types import Key

#: Gymnasium's ids, and our names.
IDS = {
    "kernelmdp/Rkhs-v0": "rkhs",
    "kernelmdp/Rkhs2d-v0": "rkhs-2d",
    "kernelmdp/GpPrior-v0": "gp-prior",
    "kernelmdp/PendulumSwingup-v0": "pendulum-swingup",
    "kernelmdp/PendulumCoarse-v0": "pendulum-coarse",
}


def register() -> None:
    """Make our environments known to ``gymnasium.make``; doing it again changes nothing.

    An episode ends by truncation after the environment's own horizon, which options may change, so
    there is no time limit besides.
    """
    for identifier, name in IDS.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point="kernelmdp.envs.gymnasium_env:GymnasiumEnvironment",
                kwargs={"name": name},
            )


class GymnasiumEnvironment(gymnasium.Env[np.ndarray, Any]):
    """An ``Environment`` with Gymnasium's ``reset`` and ``step``.

    ``instance`` is the seed of ``make``; ``reset(seed=...)`` seeds the noise. A finite action set
    is Discrete, by place. ``reset(options={"state": s})`` starts in s. ``info`` has the raw
    "outcome" (before its projection to the state space; the start itself at reset), and the
    "period" that comes next, counted from 0.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self,
        name: str = "rkhs",
        *,
        instance: int = 0,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode is not None:
            raise ArgumentError("render_mode", "None: nothing is drawn", render_mode)
        self.environment: Environment = make(name, seed=instance, **options)
        self.render_mode = None
        mdp = self.environment.mdp
        low, high = mdp.states.bounds
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self.action_space = _action_space(mdp.actions)
        self._state: np.ndarray | None = None
        self._period = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # One key an episode, from Gymnasium's generator; periods fold into it.
        self._key = jax.random.key(int(self.np_random.integers(2**32)))
        start_key, self._key = jax.random.split(self._key)
        given = (options or {}).get("state")
        self._state = np.array(self.environment.reset(key=start_key, state=given))
        self._period = 0
        return self._state.copy(), {"outcome": self._state.copy(), "period": 0}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None or self._period >= self.environment.mdp.horizon:
            raise KernelMDPError("step: the episode is over or not begun; call reset first")
        mdp = self.environment.mdp
        if not self.action_space.contains(action):
            raise ArgumentError("action", f"one of {self.action_space}", repr(action))
        row = np.asarray(
            mdp.actions.points[int(action)] if isinstance(mdp.actions, FiniteSet) else action,
            dtype=np.float64,
        )
        key = jax.random.fold_in(self._key, self._period)
        reward, outcome, state = _step(mdp, jnp.asarray(self._state), jnp.asarray(row), key)
        self._state = np.array(state)
        self._period += 1
        info = {"outcome": np.array(outcome), "period": self._period}
        over = self._period >= mdp.horizon
        return self._state.copy(), float(reward), False, over, info


@jit
def _step(
    mdp: MDP, state: Float[Array, " m"], action: Float[Array, " q"], key: Key
) -> tuple[Float[Array, ""], Float[Array, " m"], Float[Array, " m"]]:
    rewards, outcomes, after = step(mdp, state[None, :], action[None, :], key=key)
    return rewards[0], outcomes[0], after[0]


def _action_space(actions: Domain) -> spaces.Space[Any]:
    if isinstance(actions, FiniteSet):
        return spaces.Discrete(actions.count)
    low, high = actions.bounds
    return spaces.Box(low, high, dtype=np.float64)
