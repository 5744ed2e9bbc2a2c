"""The value of the states in which plans end, by fitted value iteration in the model.

Model-predictive control sees as far as its plans reach. If an episode is longer, what a plan earns
after its last step must be estimated. Here it is the discounted value of that state. It is computed
at a few hundred states by value iteration, and interpolated between them (Gordon 1995, Ormoneit and
Sen 2002). Each backup looks several steps ahead, along random sequences of actions: with single
steps, the errors of the interpolation would add up at every step.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import EpisodeSpaces
from kernelmdp.mdp.mdp import MDP
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.planners.action_selection import optimistic_rewards
from kernelmdp.planners.proposals import colouring_matrix, decision_proposals
from kernelmdp.settings import Settings, setting
from kernelmdp.types import Key, Period

#: Exponent of the spectrum of random sequences: that of the planner's own draws.
NOISE_EXPONENT = 1.5

#: Most coordinates of states for which values are estimated by default. A few hundred states do not
#: cover a larger space: the control suite's pendulum (2) was learned faster, its cart-pole (4) and
#: its ball in a cup (8) more slowly.
MOST_COORDINATES = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class TerminalValueConfig(Settings):
    """Settings of terminal values.

    They were settled on the true equations of a pendulum and of a cart-pole with sparse rewards.

    Attributes:
        part: "terminal_value", the word for these settings in error messages.

    >>> TerminalValueConfig().states
    384
    """

    part: ClassVar[str] = "terminal_value"

    states: int = setting(
        384, "Number of states at which values are computed. The time grows with its square."
    )
    steps: int = setting(
        8, "Number of steps that a backup looks ahead. More need more sequences to find the best."
    )
    sequences: int = setting(
        16, "Number of sequences of actions that a backup compares; 32 earned no more."
    )
    discount: float = setting(
        0.99, "Discount of a step: what is earned 100 steps later counts a third."
    )
    backups: int = setting(
        60, "Number of backups. With 8 steps each and the discount 0.99, the rest is below 1 %."
    )
    lengthscale: float = setting(
        1.5,
        "Lengthscale of the interpolation, in units of the distance between the states. Below 1, "
        "values between them are lost; above 3, the equations are ill-conditioned.",
    )
    ridge: float = setting(1e-3, "Regulariser of the interpolation, as a share of its variance.")

    def __post_init__(self) -> None:
        for name in ("states", "steps", "sequences", "backups"):
            integer(name, getattr(self, name), least=2)
        for name in ("lengthscale", "ridge"):
            positive_number(name, getattr(self, name))
        if not 0 < self.discount < 1:
            raise ArgumentError("discount", "above 0 and below 1", self.discount)


#: What users may pass: True, False, settings, or None for the default.
TerminalValueLike = TerminalValueConfig | Mapping[str, object] | bool | None


def terminal_value_config(
    setting: TerminalValueLike, plan_steps: int, spaces: EpisodeSpaces
) -> TerminalValueConfig | None:
    """Decide whether plans need a terminal value.

    Args:
        setting: The user's setting. None: where plans see less than half of an episode, and states
            have few coordinates.
        plan_steps: Number of steps of a plan.
        spaces: An MDP or a problem.

    Returns:
        The settings, or None if plans need none.

    >>> import kernelmdp as km
    >>> problem = km.make("cartpole-swingup").problem  # 25 periods
    >>> terminal_value_config(None, 10, problem) is None  # four coordinates
    True
    >>> terminal_value_config(True, 10, problem).states
    384
    """
    horizon = spaces.horizon
    if setting is None:
        covers = spaces.states.dimension <= MOST_COORDINATES
        return TerminalValueConfig() if covers and horizon > 2 * plan_steps else None
    if setting is False or horizon <= plan_steps:
        return None
    return TerminalValueConfig.of({} if setting is True else setting)


def with_terminal_value(mdp: MDP, config: TerminalValueConfig, *, key: Key) -> MDP:
    """Add the signal "terminal_value" to an MDP, unless it has one or no states were visited.

    Args:
        mdp: The MDP or family.
        config: The settings.
        key: Decides the sequences of actions.

    Returns:
        The MDP.
    """
    if mdp.visited is None or "terminal_value" in mdp.signals:
        return mdp
    return mdp.with_signals(terminal_value=fit_terminal_value(mdp, key=key, config=config))


class TerminalValue(Module):
    """A discounted value of states, interpolated by a squared exponential kernel.

    Far from all its centres, the value is the mean of the values there.

    Attributes:
        centres: Embedded states at which values were computed, (k, e).
        weights: Weights of the kernel functions, (k,).
        mean: The mean of the values at the centres.
        low: The lowest of them.
        high: The highest of them. No value is above it.
        units: Unit of each coordinate, (m,).
        lengthscale: The kernel's lengthscale, in these units.
        states: The state space.
        discount: The discount of a step.
    """

    centres: Float[Array, "k e"]
    weights: Float[Array, " k"]
    mean: Float[Array, ""]
    low: Float[Array, ""]
    high: Float[Array, ""]
    units: Float[Array, " m"]
    lengthscale: Float[Array, ""]
    states: Domain = eqx.field(static=True)
    discount: float = eqx.field(static=True)

    def __call__(
        self, points: Float[Array, "n d"] | None, after: Float[Array, "n m"]
    ) -> Float[Array, " n"]:
        x = _embedded(after, self.states, self.units)
        values = self.mean + _kernel(x, self.centres, self.lengthscale) @ self.weights
        return jnp.clip(values, self.low, self.high)

    def share(self, steps_left: Period) -> Array:
        """Return the share of the value that can be earned in the steps that are left: 1 − γ^n.

        Args:
            steps_left: Number of steps n, which may be traced.

        Returns:
            The share, 0 if no step is left.
        """
        left = jnp.asarray(jnp.maximum(steps_left, 0), self.mean.dtype)
        return 1 - self.discount**left


@jit
def fit_terminal_value(mdp: MDP, *, key: Key, config: TerminalValueConfig) -> TerminalValue:
    """Compute terminal values in an MDP by fitted value iteration.

    T ← max_u Σ_{t<L} γ^t R(s_t, u_t) + γ^L V(s_L) at k states, where V interpolates T. Half of the
    states are visited ones. The others may be where random actions lead from there in the model. In
    a family, rewards are optimistic and next states are those of its centre. Interpolated values
    are clipped to the range of T, so they cannot diverge.

    Args:
        mdp: The MDP or family, with ``visited`` states.
        key: Decides the sequences of actions.
        config: The settings.

    Returns:
        The terminal value.
    """
    assert mdp.visited is not None
    space, visited, k = mdp.states, mdp.visited, config.states
    sequences = _sequences(mdp, key, config)
    units = jnp.std(visited, axis=0) + 1e-9
    numbers = jnp.arange(visited.shape[0])
    reached, _, _ = _rolled_out(
        mdp, visited, sequences[numbers % config.sequences], config.discount
    )
    candidates = jnp.concatenate([visited, reached])
    embedded = _embedded(candidates, space, units)
    rows, spacing = _spread(embedded, k, first=visited.shape[0])
    centres, x, lengthscale = candidates[rows], embedded[rows], config.lengthscale * spacing

    each = jnp.repeat(centres, config.sequences, axis=0)
    every = jnp.tile(sequences, (k, 1, 1))
    after, earned, continues = _rolled_out(mdp, each, every, config.discount)
    factor = cholesky(_kernel(x, x, lengthscale) + config.ridge * jnp.eye(k))
    to_values = solve_lower(factor, _kernel(x, _embedded(after, space, units), lengthscale))
    future = config.discount**config.steps * continues

    def backup(_: Array, values: Float[Array, " k"]) -> Float[Array, " k"]:
        mean = jnp.mean(values)
        root = solve_lower(factor, (values - mean)[:, None])[:, 0]
        next_values = mean + to_values.T @ root
        next_values = jnp.clip(next_values, jnp.min(values), jnp.max(values))
        return jnp.max((earned + future * next_values).reshape(k, -1), axis=1)

    values = jax.lax.fori_loop(0, config.backups, backup, jnp.zeros(k))
    mean = jnp.mean(values)
    root = solve_lower(factor, (values - mean)[:, None])
    return TerminalValue(
        centres=x,
        weights=solve_lower_transposed(factor, root)[:, 0],
        mean=mean,
        low=jnp.min(values),
        high=jnp.max(values),
        units=units,
        lengthscale=lengthscale,
        states=space,
        discount=config.discount,
    )


def _sequences(mdp: MDP, key: Key, config: TerminalValueConfig) -> Float[Array, "c L q"]:
    """Random sequences of actions with coloured noise. Many of them stay at a bound."""
    steps, count = config.steps, config.sequences
    proposal, _ = decision_proposals(
        mdp.actions, 0, steps, initial_std=1.0, minimum_share=0.0, carry_over=1.0
    )
    colour = jnp.asarray(colouring_matrix(steps, NOISE_EXPONENT))
    white = jax.random.normal(key, (2 * steps, count * proposal.width))
    noise = jnp.moveaxis((colour @ white).reshape(steps, count, proposal.width), 0, 1)
    return proposal.decode(proposal.from_noise(proposal.initial(), noise))


def _rolled_out(
    mdp: MDP,
    starts: Float[Array, "n m"],
    sequences: Float[Array, "n L q"],
    discount: float,
) -> tuple[Float[Array, "n m"], Float[Array, " n"], Float[Array, " n"]]:
    """Last states, discounted rewards, and 1 where the episode continues, of n sequences."""

    def one_step(carry: tuple[Array, ...], actions: Float[Array, "n q"]) -> tuple[Any, None]:
        states, earned, continues, weight = carry
        points = jnp.concatenate([states, actions], axis=1)
        prediction = mdp.model(points)
        rewards = optimistic_rewards(prediction, mdp.reward_range)
        after = mdp.states.nearest(prediction.state)
        goes_on = mdp.continues(points, after)
        after = after if goes_on is None else jnp.where(continues[:, None] > 0, after, states)
        earned = earned + weight * continues * rewards
        continues = continues if goes_on is None else jnp.where(goes_on, continues, 0.0)
        return (after, earned, continues, weight * discount), None

    zeros = jnp.zeros(starts.shape[0])
    initial = (starts, zeros, zeros + 1, jnp.asarray(1.0))
    steps = jnp.moveaxis(sequences, 1, 0)
    return jax.lax.scan(one_step, initial, steps)[0][:3]


def _embedded(
    states: Float[Array, "n m"], space: Domain, units: Float[Array, " m"]
) -> Float[Array, "n e"]:
    """Coordinates in their units. A periodic one becomes a point of the unit circle."""
    low, high = space.bounds
    columns = []
    for axis in range(states.shape[1]):
        if axis in space.periodic:
            angle = 2 * np.pi * (states[:, axis] - low[axis]) / (high[axis] - low[axis])
            columns += [jnp.cos(angle), jnp.sin(angle)]
        else:
            columns.append(states[:, axis] / units[axis])
    return jnp.stack(columns, axis=1)


def _squared_distances(x: Float[Array, "n e"], y: Float[Array, "k e"]) -> Float[Array, "n k"]:
    squares = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]
    return jnp.maximum(squares - 2 * x @ y.T, 0.0)


def _kernel(
    x: Float[Array, "n e"], y: Float[Array, "k e"], lengthscale: Float[Array, ""]
) -> Float[Array, "n k"]:
    return jnp.exp(-_squared_distances(x, y) / (2 * lengthscale**2))


def _spread(
    x: Float[Array, "n e"], count: int, *, first: int
) -> tuple[Int[Array, " count"], Float[Array, ""]]:
    """Rows such that each is the farthest from those before it, and the last such distance.

    Half of the rows are chosen among the first ones, the others among all.
    """
    is_first = jnp.arange(x.shape[0]) < first

    def choose(distances: Float[Array, " n"], number: Array) -> tuple[Array, tuple[Array, Array]]:
        row = jnp.argmax(jnp.where(is_first | (number >= count // 2), distances, -1.0))
        nearer = jnp.minimum(distances, _squared_distances(x, x[row][None])[:, 0])
        return nearer, (row, distances[row])

    initial = jnp.full(x.shape[0], jnp.inf)
    _, (rows, squares) = jax.lax.scan(choose, initial, jnp.arange(count))
    return rows, jnp.sqrt(squares[-1]) + 1e-9
