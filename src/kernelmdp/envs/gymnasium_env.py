"""The environments of this library as Gymnasium environments, with the state as observation."""

from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Domain
from kernelmdp.envs.angles import AngleEmbedding, EmbeddedFunction
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.registry import make
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.mdp import MDP, step
from kernelmdp.numerics.checks import choice
from kernelmdp.numerics.modules import jit
from kernelmdp.types import Key

#: Gymnasium ids, with the names that ``make`` knows.
GYMNASIUM_IDS = {
    "kernelmdp/Rkhs-v0": "rkhs",
    "kernelmdp/Rkhs2d-v0": "rkhs-2d",
    "kernelmdp/GpPrior-v0": "gp-prior",
    "kernelmdp/PendulumSwingup-v0": "pendulum-swingup",
    "kernelmdp/PendulumCoarse-v0": "pendulum-coarse",
    "kernelmdp/Pendulum-v0": "pendulum",
    "kernelmdp/PendulumNoisy-v0": "pendulum-noisy",
    "kernelmdp/CartPoleSwingup-v0": "cartpole-swingup",
    "kernelmdp/CartPoleBalance-v0": "cartpole-balance",
}
#: The kind of observation of environments that do not show the state itself.
OBSERVATION_KINDS = {"pendulum-noisy": "cos-sin"}


def register() -> None:
    """Register the environments with Gymnasium, for ``gymnasium.make``.

    Episodes are truncated after the environment's own horizon, which is an option. There is no
    other time limit. Calling the function again changes nothing.

    >>> register()
    >>> "kernelmdp/Rkhs-v0" in gymnasium.registry
    True
    """
    for identifier, name in GYMNASIUM_IDS.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point="kernelmdp.envs.gymnasium_env:GymnasiumEnvironment",
                kwargs={"name": name, "observation": OBSERVATION_KINDS.get(name, "state")},
            )


class GymnasiumEnvironment(gymnasium.Env[np.ndarray, Any]):
    """An ``Environment`` with Gymnasium's ``reset`` and ``step``.

    ``reset(seed=...)`` seeds the noise, and ``reset(options={"state": s})`` starts in s. A finite
    set of actions is a Discrete space of their positions. ``info`` has two entries: "outcome" is
    the next state before its projection to the state space (at reset, the start itself), and
    "period" is the next period, counted from 0.

    Args:
        name: The name of the environment.
        instance: The seed of ``make``.
        observation: "state", or "cos-sin" to observe an angle as its cosine and sine.
        render_mode: None, or "rgb_array" to draw pendulums and cart-poles.
        **options: Options of the environment.

    Raises:
        ArgumentError: If the environment cannot be drawn.

    Attributes:
        metadata: Render modes and frames per second, as Gymnasium wants them.

    >>> env = GymnasiumEnvironment("rkhs", instance=1)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> observation.shape, "outcome" in info
    ((1,), True)
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        name: str = "rkhs",
        *,
        instance: int = 0,
        observation: str = "state",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.environment: Environment = make(name, seed=instance, **options)
        mdp = self.environment.mdp
        if self.environment.drawing is None:
            self.metadata = {"render_modes": []}
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ArgumentError(
                "render_mode", f"None or one of {self.metadata['render_modes']}", repr(render_mode)
            )
        self.render_mode = render_mode
        choice("observation", observation, ("state", "cos-sin"))
        angles = mdp.states.periodic
        self.embedding = AngleEmbedding(
            mdp.states.dimension, angles if observation == "cos-sin" else ()
        )
        low, high = self.states.bounds
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self.action_space = _action_space(mdp.actions)
        self._state: np.ndarray | None = None
        self._period = 0
        self._over = True

    @property
    def states(self) -> Domain:
        """The domain of observations."""
        states = self.environment.mdp.states
        return self.embedding.box(states) if self.embedding.angles else states

    @property
    def known_reward(self) -> Callable[..., Any]:
        """The true mean reward, as a function of points (observation, action)."""
        reward = self.environment.known_reward
        return EmbeddedFunction(reward, self.embedding) if self.embedding.angles else reward

    def render(self) -> Any:
        """Draw the state.

        Returns:
            The picture as bytes (rows, columns, 3), or None without a render mode.

        Raises:
            KernelMDPError: If ``reset`` was not called.
        """
        if self.render_mode is None:
            return None
        if self._state is None:
            raise KernelMDPError("render: the episode is not begun; call reset first")
        assert self.environment.drawing is not None
        return self.environment.drawing(self._state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode, as Gymnasium defines it.

        Args:
            seed: Seeds the noise. None continues the generator.
            options: ``{"state": s}`` starts in the state s.

        Returns:
            The observation, and "outcome" and "period".
        """
        super().reset(seed=seed)
        # Gymnasium's generator gives one key an episode. The keys of the periods derive from it.
        self._key = jax.random.key(int(self.np_random.integers(2**32)))
        start_key, self._key = jax.random.split(self._key)
        start = (options or {}).get("state")
        self._state = np.array(self.environment.reset(key=start_key, state=start))
        self._period, self._over = 0, False
        return self.embedding(self._state), {"outcome": self.embedding(self._state), "period": 0}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one period, as Gymnasium defines it.

        Args:
            action: An element of the action space.

        Returns:
            Observation, reward, whether the episode is terminated, whether it is truncated, and
            "outcome" and "period".

        Raises:
            ArgumentError: If the action is not in the action space.
            KernelMDPError: If the episode is over, or ``reset`` was not called.
        """
        if self._state is None or self._over:
            raise KernelMDPError("step: the episode is over or not begun; call reset first")
        mdp = self.environment.mdp
        if not self.action_space.contains(action):
            raise ArgumentError("action", f"one of {self.action_space}", repr(action))
        choices = mdp.actions.points
        row = np.asarray(action if choices is None else choices[int(action)], dtype=np.float64)
        key = jax.random.fold_in(self._key, self._period)
        reward, outcome, state, ended = _step(mdp, jnp.asarray(self._state), jnp.asarray(row), key)
        self._state = np.array(state)
        self._period += 1
        info = {"outcome": self.embedding(np.array(outcome)), "period": self._period}
        terminated, truncated = bool(ended), self._period >= mdp.horizon
        self._over = terminated or truncated
        return self.embedding(self._state), float(reward), terminated, truncated, info


@jit
def _step(
    mdp: MDP, state: Float[Array, " m"], action: Float[Array, " q"], key: Key
) -> tuple[Float[Array, ""], Float[Array, " m"], Float[Array, " m"], Bool[Array, ""]]:
    rewards, outcomes, next_states = step(mdp, state[None, :], action[None, :], key=key)
    ended = jnp.zeros(1, bool)
    if mdp.termination is not None:
        ended = mdp.termination(jnp.concatenate([state, action])[None, :], next_states)
    return rewards[0], outcomes[0], next_states[0], ended[0]


def _action_space(actions: Domain) -> spaces.Space[Any]:
    if actions.points is not None:
        return spaces.Discrete(len(actions.points))
    low, high = actions.bounds
    return spaces.Box(low, high, dtype=np.float64)
