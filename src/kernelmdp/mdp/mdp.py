"""Episodic MDPs: state and action space, horizon, a model of the means, and additive noise."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Domain, ProductDomain, join
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import Episode, state_action
from kernelmdp.mdp.model import Model
from kernelmdp.mdp.noise import Noise
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.numerics.tracing import as_float
from kernelmdp.types import Key

#: A further prediction of an MDP: from points (n, d) and next states (n, m) to values (n,).
Signal = Callable[..., Any]


class DrawnModels(Module):
    """Models that were drawn from beliefs, and the estimated noise.

    Attributes:
        models: The models. Every array has one row for each of them.
        deviations: Estimated standard deviations of the transition's noise, (m,). None if the noise
            of the MDP is known.
        largest_error: How wrong predictions were in the last planned episode, in their standard
            deviations; NaN if nothing was predicted yet.
    """

    models: Model
    deviations: Float[Array, " m"] | None = None
    largest_error: float | Float[Array, ""] = float("nan")

    @classmethod
    def stacked(
        cls,
        models: Sequence[Model],
        deviations: Any = None,
        largest_error: float = float("nan"),
    ) -> "DrawnModels":
        """Stack models along a first axis of every array.

        Args:
            models: The models, which differ by their arrays alone.
            deviations: Estimated standard deviations of the noise, (m,), or None.
            largest_error: How wrong predictions were; see the class.

        Returns:
            All of them as one.
        """
        arrays = [eqx.filter(model, eqx.is_array_like) for model in models]
        stacked = jax.tree.map(lambda *rows: jnp.stack(list(map(jnp.asarray, rows))), *arrays)
        # A known reward may be any function. It is the same in all models.
        stacked = eqx.combine(stacked, eqx.filter(models[0], eqx.is_array_like, inverse=True))
        given = None if deviations is None else jnp.asarray(deviations, dtype=float)
        return cls(stacked, given, largest_error)


class MDP(Module):
    """An MDP: H periods of s' = Π_S(P̄(s, a) + ε), r = R̄(s, a) + ε.

    The learned target is the raw outcome P̄(s, a) + ε. The state is its projection to the state
    space (note B13). So the noise has mean zero and the state space is bounded.

    Args:
        model: The means R̄ and P̄, or a family of plausible means.
        states: The state space.
        actions: The action space.
        horizon: The number of periods H.
        reward_noise: The noise of the reward.
        transition_noise: The noise of the next state.
        reward_range: The lowest and the highest mean reward. Values are clipped accordingly. The
            default is no clipping.
        metric: One number for each axis of the mean next state. Distances between states are
            measured after division by it. The default is 1 for each axis.
        lipschitz: L, a bound of how fast the expected value of the next state changes with its mean
            (Assumption A1). The default is infinity.
        termination: Short for the signal "termination".
        signals: Further predictions by name, functions of points (n, d) and of their next states
            (n, m) with values (n,). A planner uses those that it knows and ignores the others. The
            signal "termination" says which episodes end there. They then stay in that state without
            reward. The signal "nearness" says how near a next state is to termination; it is 1 on
            its border, and does not depend on the points, which may be None. The signal
            "terminal_value" estimates what is earned after a plan that ends in the next state. The
            signal "violation" is a ``Violation``, and says which steps break a constraint.
        visited: States that the system has visited, (k, m), for planners that fit values there.
        drawn_models: Models drawn from beliefs, for planners that check actions in all of them.

    Attributes:
        model: The means R̄ and P̄, or a family of plausible means.
        states: The state space.
        actions: The action space.
        horizon: The number of periods H.
        reward_noise: The noise of the reward.
        transition_noise: The noise of the next state.
        reward_range: The lowest and the highest mean reward.
        metric: One number for each axis of the mean next state.
        lipschitz: L, a scalar array.
        signals: Further predictions by name, with "termination" if there is one.
        visited: States that the system has visited, (k, m), or None.
        drawn_models: Models drawn from beliefs, or None.

    Raises:
        ArgumentError: If the horizon is less than 1.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp import Gaussian, MeanModel
    >>> box = km.Box([-1.0], [1.0])
    >>> truth = MeanModel(lambda z: -(z[:, 0] ** 2), lambda z: z[:, :1] + z[:, 1:])
    >>> noise = Gaussian(0.1)
    >>> mdp = MDP(truth, states=box, actions=box, horizon=3, reward_noise=noise,
    ...           transition_noise=noise)
    >>> mdp.points.names
    {'state': (0,), 'action': (1,)}
    """

    model: Model
    states: Domain = eqx.field(static=True)
    actions: Domain = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    reward_noise: Noise = eqx.field(static=True)
    transition_noise: Noise = eqx.field(static=True)
    reward_range: tuple[Any, Any]
    metric: tuple[float, ...] = eqx.field(static=True)
    lipschitz: Float[Array, ""]
    signals: dict[str, Signal]
    visited: Float[Array, "k m"] | None
    drawn_models: DrawnModels | None

    def __init__(
        self,
        model: Model,
        *,
        states: Domain,
        actions: Domain,
        horizon: int,
        reward_noise: Noise,
        transition_noise: Noise,
        reward_range: tuple[float, float] = (-float("inf"), float("inf")),
        metric: tuple[float, ...] | None = None,
        lipschitz: float | Float[Array, ""] = float("inf"),
        termination: Signal | None = None,
        signals: Mapping[str, Signal] | None = None,
        visited: Float[Array, "k m"] | None = None,
        drawn_models: DrawnModels | None = None,
    ) -> None:
        if horizon < 1:
            raise ArgumentError("horizon", "at least 1", horizon)
        self.model = model
        self.states, self.actions, self.horizon = states, actions, int(horizon)
        self.reward_noise, self.transition_noise = reward_noise, transition_noise
        self.reward_range = (as_float(reward_range[0]), as_float(reward_range[1]))
        self.metric = (
            (1.0,) * transition_noise.mean_dimension(states)
            if metric is None
            else tuple(map(float, metric))
        )
        self.lipschitz = jnp.asarray(lipschitz, float)
        self.signals = dict(signals or {})
        if termination is not None:
            self.signals["termination"] = termination
        self.visited = visited
        self.drawn_models = drawn_models

    @property
    def noise_deviations(self) -> Float[Array, " m"]:
        """Standard deviations of the transition's noise: estimates if there are, or its size."""
        if self.drawn_models is not None and self.drawn_models.deviations is not None:
            return self.drawn_models.deviations
        return jnp.asarray(self.transition_noise.standard_deviations(self.states.dimension))

    def lipschitz_in(self, metric: Sequence[float]) -> Float[Array, ""]:
        """Convert L to another metric: L times max_j new_j/old_j.

        |p − p'| in the old metric is at most that factor times |p − p'| in the new one.

        Args:
            metric: The new metric, one number for each axis of the mean next state.

        Returns:
            L in the new metric.
        """
        factor = max(new / old for new, old in zip(metric, self.metric, strict=True))
        return jnp.asarray(self.lipschitz * factor, float)

    def continues(
        self, points: Float[Array, "n d"], means: Float[Array, "n m"]
    ) -> Bool[Array, " n"] | None:
        """Return which episodes continue after the *mean* next states of points.

        It is exact without transition noise. The noise of the next state is not considered.

        Args:
            points: z = (s, a), (n, d).
            means: Mean next states, (n, m).

        Returns:
            True where an episode continues, or None if no episode ever ends early.
        """
        if self.termination is None:
            return None
        return ~jnp.asarray(self.termination(points, self.states.nearest(means)), bool)

    @property
    def termination(self) -> Signal | None:
        """Which episodes end, as a function of points (n, d) and next states (n, m), or None."""
        return self.signals.get("termination")

    def with_signals(self, **signals: Signal) -> "MDP":
        """Add signals.

        Args:
            **signals: The signals by name.

        Returns:
            The MDP with these signals and those that it had.
        """
        return replace_fields(self, signals={**self.signals, **signals})

    @property
    def mean_dimension(self) -> int:
        """The dimension of a mean next state: m, or the number of states of a table."""
        return self.transition_noise.mean_dimension(self.states)

    @property
    def points(self) -> ProductDomain:
        """The space of z = (s, a), with coordinates named "state" and "action"."""
        return join(state=self.states, action=self.actions)


def step(
    mdp: MDP, states: Float[Array, "n m"], actions: Float[Array, "n q"], *, key: Key
) -> tuple[Float[Array, " n"], Float[Array, "n m"], Float[Array, "n m"]]:
    """Simulate n independent transitions of episodes that have not ended.

    Args:
        mdp: The MDP.
        states: The states, (n, m).
        actions: The actions, (n, q).
        key: Decides the noise.

    Returns:
        Noisy rewards (n,), raw outcomes (n, m) and next states (n, m).

    >>> import kernelmdp as km
    >>> mdp, zeros = km.make("riverswim").mdp, jnp.zeros((4, 1))
    >>> rewards, outcomes, after = step(mdp, zeros, zeros, key=jax.random.key(0))
    >>> after.ravel()  # state 0 is the end of the stream
    Array([0., 0., 0., 0.], dtype=float64)
    """
    reward_key, state_key = jax.random.split(key)
    prediction = mdp.model(state_action(states, actions))
    noise = mdp.reward_noise.draw((states.shape[0], 1), key=reward_key)[:, 0]
    outcomes = mdp.transition_noise.outcomes(prediction.state, key=state_key)
    return prediction.reward + noise, outcomes, mdp.states.nearest(outcomes)


@jit
def rollout(
    mdp: MDP, policy: Policy, starts: Float[Array, "n m"], *, key: Key
) -> tuple[
    Float[Array, "H1 n m"], Float[Array, "H n q"], Float[Array, "H n"], Float[Array, "H n m"]
]:
    """Simulate n episodes in parallel.

    Args:
        mdp: The MDP.
        policy: The policy.
        starts: The first states, (n, m).
        key: Decides the noise.

    Returns:
        States (H + 1, n, m), actions (H, n, q), rewards (H, n) and raw outcomes (H, n, m).

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import UniformPolicy
    >>> env, key = km.make("riverswim"), jax.random.key(0)
    >>> policy, starts = UniformPolicy(env.mdp.actions, key), jnp.zeros((7, 1))
    >>> states, actions, rewards, outcomes = rollout(env.mdp, policy, starts, key=key)
    >>> states.shape, rewards.shape
    ((21, 7, 1), (20, 7))
    """

    def one_period(
        carry: tuple[Any, ...], period: Array
    ) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        states, memory, ended = carry
        actions, memory = policy.decide(memory, states, period)
        rewards, outcomes, after = step(mdp, states, actions, key=jax.random.fold_in(key, period))
        if mdp.termination is not None:
            rewards = jnp.where(ended, 0.0, rewards)
            outcomes, after = (jnp.where(ended[:, None], states, x) for x in (outcomes, after))
            points = state_action(states, actions)
            ended = ended | mdp.termination(points, after)
        return (after, memory, ended), (states, actions, rewards, outcomes)

    # Without termination the scan carries None instead of an array.
    ended = None if mdp.termination is None else jnp.zeros(starts.shape[0], bool)
    initial = (starts, policy.reset(starts.shape[0]), ended)
    (last, _, _), (states, actions, rewards, outcomes) = jax.lax.scan(
        one_period, initial, jnp.arange(mdp.horizon)
    )
    return jnp.concatenate([states, last[None]]), actions, rewards, outcomes


def play(mdp: MDP, policy: Policy, start: Float[Array, " m"], *, key: Key) -> Episode:
    """Simulate one episode.

    Args:
        mdp: The MDP.
        policy: The policy.
        start: The first state, (m,).
        key: Decides the noise.

    Returns:
        The episode of H periods.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import UniformPolicy
    >>> env, key = km.make("riverswim"), jax.random.key(0)
    >>> policy, start = UniformPolicy(env.mdp.actions, key), env.draw_start(key)
    >>> play(env.mdp, policy, start, key=key).states.shape
    (21, 1)
    """
    states, actions, rewards, outcomes = rollout(mdp, policy, start[None, :], key=key)
    return Episode(states[:, 0], actions[:, 0], rewards[:, 0], outcomes[:, 0])
