"""Model-predictive control: at every period search for the best actions of the next few, take the
first, and think again.

No table is laid over the states, so their number of coordinates hardly matters. The plan is as good
as the search, and sees as far as its horizon: no error is known.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy, PolicyPlayer
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.icem import CrossEntropySearch, SearchState
from kernelmdp.planners.ilqr import ilqr_refine
from kernelmdp.planners.model_rollout import (
    OPTIMISM,
    hallucinated_dimension,
    prediction_shapes,
    rollout_returns,
    rollout_step,
)
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner
from kernelmdp.planners.proposals import CategoricalProposal, ColouredGaussian, ProposalDistribution
from kernelmdp.types import ArrayLike, Key, Period


@dataclasses.dataclass(frozen=True)
class MPCPlanner(Planner):
    """Plans ``horizon`` steps ahead at every period, by the improved cross-entropy method.

    Each of ``iterations`` turns scores ``samples`` sequences of actions and moves towards the
    ``elites`` best of them; a share ``reuse_fraction`` of these stays for the next turn and period, and
    ``momentum`` is what stays of the law they were drawn from. A share ``exploration_fraction`` of every turn
    is drawn as if nothing were known: where rewards are sparse, the best of the first turn are
    those that do nothing. Draws have the spectrum f^−``noise_exponent`` along time, and
    ``initial_std`` of half the range of actions as their first deviation. Returns are means over
    ``particles`` draws of the transition's noise, or without noise for 1; by default 4 where there
    is noise of a known size. The best is then bettered
    ``ilqr_iterations`` times by linear-quadratic regulation along its path (not for finite actions). The
    first period of an episode takes the best of ``first_rounds`` searches, each polished as many
    times more: what is begun on one hill is seldom ended on another. ``optimism`` says how a
    family's next state is chosen: searched in the "ball" of plausible ones, in the "box" around it,
    or not at all with a "bonus" of L times its radius.

    >>> from kernelmdp import Box
    >>> from kernelmdp.mdp import MDP, NO_NOISE, MeanModel
    >>> mdp = MDP(
    ...     MeanModel(lambda z: -(z[:, 0] ** 2), lambda z: z[:, :1] + z[:, 1:]),
    ...     states=Box([-2.0], [2.0]),
    ...     actions=Box([-0.5], [0.5]),
    ...     horizon=4,
    ...     reward_noise=NO_NOISE,
    ...     transition_noise=NO_NOISE,
    ... )
    >>> plan = MPCPlanner(horizon=4, samples=40).plan(mdp, key=jax.random.key(0))
    >>> plan.policy([1.2], 0).round(2).tolist(), round(plan.value([1.2]), 1)
    ([-0.5], -2.0)
    """

    replans: ClassVar[bool] = True

    horizon: int = 30
    samples: int = 40
    elites: int = 6
    iterations: int = 2
    reuse_fraction: float = 0.3
    exploration_fraction: float = 0.1
    noise_exponent: float = 1.5
    momentum: float = 0.1
    initial_std: float = 0.7
    particles: int | None = None
    first_rounds: int = 10
    ilqr_iterations: int = 2
    optimism: str = "ball"
    #: Draws of the noise where it is known and ``particles`` are not given: without them the true
    #: model's planner loses the noisy cart-pole, with 4 it does not.
    noise_particles: int = 4
    #: Share of a step's reward that changes of the state in the last step of a plan may cost, where
    #: episodes may end: of plans that earn the same, one that ends at rest lasts longest.
    terminal_velocity_penalty: float = 0.01
    #: Prices of change of the polish, in units of the mean reward for a large change of a decision,
    #: and lengths of step tried with each: from a free step to one that hardly moves.
    ilqr_regularisers: tuple[float, ...] = (1e-6, 1e-3, 0.1, 3.0)
    ilqr_step_lengths: tuple[float, ...] = (1.0, 0.4, 0.1)
    #: Of finite actions: the least share of an option, so that none dies out, and the share of the
    #: frequencies carried from one period to the next.
    minimum_share: float = 0.02
    carry_over: float = 0.5

    def __post_init__(self) -> None:
        for name in ("horizon", "elites", "iterations", "first_rounds"):
            integer(name, getattr(self, name), least=1)
        if self.particles is not None:
            integer("particles", self.particles, least=1)
        integer("ilqr_iterations", self.ilqr_iterations, least=0)
        choice("optimism", self.optimism, OPTIMISM)
        positive_number("initial_std", self.initial_std)
        if not (np.isfinite(self.noise_exponent) and self.noise_exponent >= 0):
            raise ArgumentError("noise_exponent", "finite and at least 0", self.noise_exponent)
        for name in ("reuse_fraction", "momentum", "exploration_fraction"):
            if not 0 <= getattr(self, name) < 1:
                raise ArgumentError(name, "at least 0 and below 1", getattr(self, name))
        # Were all samples elites, no turn would choose anything.
        least = 2 * self.elites + 1
        if integer("samples", self.samples, least=1) < least:
            raise ArgumentError(
                "samples", f"more than twice the {self.elites} elites", self.samples
            )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> "MPCPlan":
        """A policy that plans in this MDP, or in the best member of a family, at every period."""
        if mdp.transition_noise.categorical:
            raise ArgumentError("planner", "'grid' for a table", "'mpc'")
        if len(mdp.actions.parts) > 1:
            raise ArgumentError("actions", "a box or a finite set", mdp.actions)
        if self.optimism == "bonus":
            prediction = prediction_shapes(mdp)
            if prediction.root is not None or prediction.sides is not None:
                raise ArgumentError(
                    "optimism", "'ball' or 'box' for ellipsoids and boxes", "'bonus'"
                )
            if prediction.radius is not None and not np.isfinite(float(mdp.lipschitz)):
                raise ArgumentError("optimism", "'ball' or 'box' where L is infinite", "'bonus'")
        return MPCPlan(policy=MPC(mdp, key, self))

    def particles_in(self, mdp: MDP) -> int:
        """How many draws of the noise plans meet."""
        if self.particles is not None:
            return self.particles
        noise = mdp.transition_noise
        sizes = noise.standard_deviations(mdp.mean_dimension)
        return self.noise_particles if sizes.any() and not noise.estimated else 1

    def search(self, mdp: MDP) -> CrossEntropySearch:
        """The search of one decision."""
        steps = min(self.horizon, mdp.horizon)
        return CrossEntropySearch(
            proposals=_proposals(
                self, mdp.actions, hallucinated_dimension(mdp, self.optimism), steps
            ),
            iterations=self.iterations,
            samples=self.samples,
            elites=self.elites,
            reused=max(1, round(self.reuse_fraction * self.elites)),
            momentum=self.momentum,
            exponent=self.noise_exponent,
            explorers=round(self.exploration_fraction * (self.samples - self.elites)),
        )


def _proposals(
    planner: MPCPlanner, actions: Domain, hallucinated_control: int, steps: int
) -> tuple[ProposalDistribution, ...]:
    """The laws of actions and of luck, a number in [−1, 1] for each coordinate of the state."""
    first: ProposalDistribution
    if actions.points is not None:
        first = CategoricalProposal(
            steps, actions.points, planner.minimum_share, planner.carry_over
        )
    else:
        first = _coloured(planner, steps, actions.bounds, actions.extent)
    ends = -np.ones(hallucinated_control), np.ones(hallucinated_control)
    return first, _coloured(planner, steps, ends, ends)


def _coloured(
    planner: MPCPlanner,
    steps: int,
    bounds: tuple[np.ndarray, np.ndarray],
    extent: tuple[np.ndarray, np.ndarray],
) -> ColouredGaussian:
    low, high = extent
    rows = (*bounds, (low + high) / 2, planner.initial_std * (high - low) / 2)
    return ColouredGaussian(steps, *(tuple(map(float, row)) for row in rows))


class MPC(Policy):
    """Plans at every period in an MDP that stays as it was at the start of the episode.

    ``actions`` plan from nothing, so they are a function of state and period; ``decide`` goes on
    from what was planned at the period before.

    >>> import kernelmdp as km
    >>> env = km.make("cartpole-swingup")
    >>> plan = km.MPCPlanner(horizon=5).plan(env.mdp, key=jax.random.key(0))
    >>> type(plan.policy).__name__  # nothing is searched before it is asked for an action
    'MPC'
    """

    mdp: MDP
    key: Key
    planner: MPCPlanner = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.replan(self.reset(states.shape[0]), states, period)[0]

    def reset(self, count: int) -> SearchState:
        memory = self.planner.search(self.mdp).reset()
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[None], (count, *leaf.shape)), memory)

    def decide(
        self, memory: SearchState, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], SearchState]:
        actions, _, memory = self.replan(memory, states, period)
        return actions, memory

    def player(self) -> Callable[[Any, int], np.ndarray]:
        return PolicyPlayer(self)

    def replan(
        self, memory: SearchState, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Float[Array, " n"], SearchState]:
        """Actions, the returns they are planned to begin, and the memory after."""
        planner, mdp = self.planner, self.mdp
        search = planner.search(mdp)
        search_key, noise_key = jax.random.split(jax.random.fold_in(self.key, period))
        noise = None
        if (particles := planner.particles_in(mdp)) > 1:
            shape = (search.proposals[0].steps, particles, mdp.states.dimension)
            noise = mdp.transition_noise.draw(shape, key=noise_key)

        # With nothing remembered yet, and all of the episode to come, it is worth thinking longer.
        rounds = jnp.where(jnp.asarray(period) == 0, planner.first_rounds, 1)

        def one(memory: SearchState, state: Array) -> tuple[Array, Array, SearchState]:
            def worth(decisions: Array, terminal_velocity_penalty: float = 0.0) -> Array:
                actions, hallucinated_control = search.split(decisions)
                optimism = planner.optimism
                return rollout_returns(
                    mdp,
                    state,
                    period,
                    actions,
                    hallucinated_control,
                    noise,
                    optimism=optimism,
                    terminal_velocity_penalty=terminal_velocity_penalty,
                )

            def score(decisions: Array) -> Array:
                return worth(decisions, planner.terminal_velocity_penalty)

            def refine(decisions: Array) -> Array:
                return self._ilqr_refined(
                    search, state, period, decisions, planner.ilqr_iterations * rounds
                )

            slopes = planner.ilqr_iterations > 0 and not mdp.actions.finite
            found, after = search(
                memory, score, key=search_key, rounds=rounds, refine=refine if slopes else None
            )
            best = found.score if mdp.termination is None else worth(found.decisions[None])[0]
            return search.split(found.decisions[0])[0], best, after

        if states.shape[0] > 1:
            return jax.vmap(one)(memory, states)
        # One episode needs no further axis, which would only cost.
        alone = one(jax.tree.map(lambda leaf: leaf[0], memory), states[0])
        return jax.tree.map(lambda leaf: leaf[None], alone)

    def _ilqr_refined(
        self,
        search: CrossEntropySearch,
        start: Array,
        period: Period,
        decisions: Array,
        iterations: ArrayLike,
    ) -> Array:
        mdp, planner = self.mdp, self.planner

        def step(states: Array, chosen: Array) -> tuple[Array, Array, Array]:
            actions, hallucinated_control = search.split(chosen)
            return rollout_step(
                mdp, states, actions, hallucinated_control, optimism=planner.optimism
            )

        boxes = [law for law in search.proposals if isinstance(law, ColouredGaussian)]
        low, high, scale = (
            jnp.asarray([number for law in boxes for number in getattr(law, name)])
            for name in ("low", "high", "spread")
        )
        return ilqr_refine(
            step,
            start,
            decisions,
            low=low,
            high=high,
            scale=scale,
            live=jnp.asarray(period) + jnp.arange(decisions.shape[0]) < mdp.horizon,
            difference=mdp.states.difference,
            iterations=iterations,
            prices=planner.ilqr_regularisers,
            lengths=planner.ilqr_step_lengths,
        )


class MPCPlan(Plan):
    """A policy that plans as it goes; its value is known when it sees the end of the episode.

    >>> import kernelmdp as km
    >>> env = km.make("cartpole-swingup")
    >>> plan = km.MPCPlanner(horizon=5).plan(env.mdp, key=jax.random.key(0))
    >>> plan.value(env.starts(jax.random.key(0)))  # it does not see the end of the episode
    nan
    """

    policy: MPC
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        """The return planned at the first period; NaN when the episode is longer than the plan."""
        if self.policy.planner.horizon < self.policy.mdp.horizon:
            return float("nan")
        return float(_planned_return(self.policy, np.asarray(state, float)[None, :]))


@jit
def _planned_return(policy: MPC, states: ArrayLike) -> Array:
    low, high = (policy.mdp.horizon * bound for bound in policy.mdp.reward_range)
    rows = jnp.asarray(states)
    return jnp.clip(policy.replan(policy.reset(1), rows, jnp.asarray(0))[1][0], low, high)
