"""Model-predictive control: search the best actions of the next periods, at every period again.

Only the first action of each search is taken. There is no table over the states, so the number of
their coordinates hardly matters. The plan is as good as the search, and looks as far ahead as its
horizon. Its error is unknown.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import EpisodicPolicy
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.numerics.modules import jit
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.planners.decision_time import decision_milliseconds, samples_within
from kernelmdp.planners.icem import CrossEntropySearch, SearchState
from kernelmdp.planners.ilqr import TrackedPath, ilqr_refine
from kernelmdp.planners.model_rollout import (
    OPTIMISM,
    hallucinated_dimension,
    require_optimism,
    rollout_returns,
    rollout_step,
    terminal_value_after,
)
from kernelmdp.planners.open_loop import open_loop_values
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.planners.proposals import ColouredGaussian, decision_proposals
from kernelmdp.planners.terminal_value import (
    TerminalValueConfig,
    TerminalValueLike,
    terminal_value_config,
    with_terminal_value,
)
from kernelmdp.types import ArrayLike, Key, Period


@dataclasses.dataclass(frozen=True)
class MPCPlanner(Planner):
    """Plans some steps ahead at every period, by the improved cross-entropy method (iCEM).

    Each iteration scores sequences of actions, and fits the distribution of the draws to the best
    of them. The best sequence is then refined by iterative linear-quadratic regulation (iLQR), but
    not for finite actions.

    Attributes:
        horizon: Number of steps that a plan looks ahead.
        samples: Number of sequences that each iteration scores.
        elites: Number of the best sequences to which the distribution is fitted.
        iterations: Number of iterations of a search.
        finite_iterations: The same for finite actions, which iLQR does not refine. With 2, the
            planner loses CartPole-v1 with the true model in one game of six. With 4 it loses none
            of twelve.
        reuse_fraction: Share of the elites that is tried again in the next iteration and period.
        exploration_fraction: Share of each iteration that is drawn from the initial distribution.
            Where rewards are sparse, the best sequences of the first iteration are those that do
            nothing.
        noise_exponent: Draws have the spectrum f^−noise_exponent along time.
        momentum: Share of the old distribution in a fit.
        initial_std: First standard deviation of the draws, as a share of half the range of actions.
        particles: Draws of the transition's noise over which returns are averaged; 1 means no
            noise. None means ``noise_particles`` if there is noise of known size, and 1 otherwise.
        first_rounds: Number of searches in the first period of an episode, of which the best is
            taken. Each is refined this many times longer. A later search seldom leaves the hill on
            which the first one ended.
        ilqr_iterations: Number of iLQR iterations after each search; 0 for none.
        optimism: How the next state of a family is chosen: searched in the "ball" of plausible
            states, searched in the "box" around it, or replaced by a "bonus" of L times the radius.
        noise_particles: Draws of noise of known size if ``particles`` is None. Without them the
            planner fails on the noisy cart-pole with the true model. With 4 it succeeds.
        terminal_velocity_penalty: Where episodes may end, the share of a step's reward that changes
            of the state in the last step of a plan may cost. Among plans with equal returns, one
            that ends at rest and far from limits lasts longest.
        ilqr_regularisers: Penalties on changes of the decisions in iLQR, in units of the mean
            reward for a large change. They range from a free step to one that hardly moves.
        ilqr_step_lengths: Step lengths that iLQR tries with each regulariser.
        minimum_share: For finite actions, the share of the uniform distribution in a fit, so that
            no action dies out.
        carry_over: For finite actions, the share of the probabilities that carries over to the next
            period. With 0.8 rather than 0.5, carts of CartPole-v1 stay nearer to the middle.
        follows_plan: Whether iLQR also tries the plan of the period before with its feedback. It
            keeps plans alive that noise disturbs, as in a double pendulum held upright. Not by
            default: in learned models the state leaves a plan because the model is wrong, and the
            planner then holds on to a bad plan (ball-in-cup of the control suite).
        decision_time: Milliseconds that a decision may take, except the first one of an episode.
            The number of samples is then chosen by measurement, before the first planned episode
            (``planners.decision_time``). Two runs with the same seed may differ. None: no limit.
        terminal_value: Whether the value of the last state of a plan is estimated, where an episode
            is longer than a plan (``planners.terminal_value``). True, False, its settings, or None:
            where plans see less than half of an episode, no episode ends early, and states have at
            most three coordinates. With plans of 30 steps for 50, it does harm (Reacher-v5).

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
    safe_name: ClassVar[str | None] = "safe-mpc"

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
    noise_particles: int = 4
    terminal_velocity_penalty: float = 0.01
    ilqr_regularisers: tuple[float, ...] = (1e-6, 1e-3, 0.1, 3.0)
    ilqr_step_lengths: tuple[float, ...] = (1.0, 0.4, 0.1)
    minimum_share: float = 0.02
    carry_over: float = 0.8
    finite_iterations: int = 4
    follows_plan: bool = False
    decision_time: float | None = None
    terminal_value: TerminalValueLike = None

    def __post_init__(self) -> None:
        if isinstance(self.terminal_value, Mapping):
            config = TerminalValueConfig.of(self.terminal_value)
            object.__setattr__(self, "terminal_value", config)
        for name in ("horizon", "elites", "iterations", "finite_iterations", "first_rounds"):
            integer(name, getattr(self, name), least=1)
        if self.particles is not None:
            integer("particles", self.particles, least=1)
        if self.decision_time is not None:
            positive_number("decision_time", self.decision_time)
        integer("ilqr_iterations", self.ilqr_iterations, least=0)
        choice("optimism", self.optimism, OPTIMISM)
        positive_number("initial_std", self.initial_std)
        if not (np.isfinite(self.noise_exponent) and self.noise_exponent >= 0):
            raise ArgumentError("noise_exponent", "finite and at least 0", self.noise_exponent)
        for name in ("reuse_fraction", "momentum", "exploration_fraction"):
            if not 0 <= getattr(self, name) < 1:
                raise ArgumentError(name, "at least 0 and below 1", getattr(self, name))
        # If all samples were elites, an iteration would select nothing.
        least = 2 * self.elites + 1
        if integer("samples", self.samples, least=1) < least:
            raise ArgumentError(
                "samples", f"more than twice the {self.elites} elites", self.samples
            )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> "MPCPlan":
        """Make a policy that plans in an MDP, or in the best member of a family, at every period.

        Args:
            mdp: The MDP or family. Its states are no table, its actions a box or a finite set.
            start: Not used.
            key: Decides all draws of the searches.

        Returns:
            The plan. Nothing is searched before the first action.

        Raises:
            ArgumentError: If the MDP or the optimism is not supported.
        """
        if mdp.transition_noise.categorical:
            raise ArgumentError("planner", "'grid' for a table", "'mpc'")
        if len(mdp.actions.parts) > 1:
            raise ArgumentError("actions", "a box or a finite set", mdp.actions)
        require_optimism(mdp, self.optimism)
        mdp = self.prepared(mdp, key=jax.random.fold_in(key, 1))
        return MPCPlan(policy=MPC(mdp, key, self._sized(mdp, key)))

    def visited_states(self, spaces: Spaces) -> int:
        config = terminal_value_config(self.terminal_value, self.horizon, spaces)
        return 0 if config is None else 2 * config.states

    def prepared(self, mdp: MDP, *, key: Key) -> MDP:
        config = terminal_value_config(self.terminal_value, self.horizon, mdp)
        ends_early = self.terminal_value is None and mdp.termination is not None
        return mdp if config is None or ends_early else with_terminal_value(mdp, config, key=key)

    def _sized(self, mdp: MDP, key: Key) -> "MPCPlanner":
        """The planner with as many samples as ``decision_time`` allows."""
        if self.decision_time is None:
            return self
        leaves, structure = jax.tree.flatten(mdp)
        if any(map(is_traced, leaves)):
            raise ArgumentError("decision_time", "None in a compiled program", self.decision_time)

        def with_samples(samples: int) -> MPCPlanner:
            return dataclasses.replace(self, samples=samples, decision_time=None)

        samples = samples_within(
            self.decision_time,
            default_samples=self.samples,
            least=2 * self.elites + 1,
            measure=lambda n: decision_milliseconds(MPC(mdp, key, with_samples(n)), mdp.states),
            search=(self, structure, *map(np.shape, leaves)),
        )
        return with_samples(samples)

    def particles_in(self, mdp: MDP) -> int:
        """Return the number of noise draws over which returns are averaged.

        Args:
            mdp: The MDP to plan in.

        Returns:
            The number; 1 means that plans have no noise.
        """
        if self.particles is not None:
            return self.particles
        noise = mdp.transition_noise
        is_noisy = noise.standard_deviations(mdp.mean_dimension).any()
        return self.noise_particles if is_noisy and not noise.estimated else 1

    def search(self, mdp: MDP) -> CrossEntropySearch:
        """Make the search of one period.

        Args:
            mdp: The MDP to plan in.

        Returns:
            The search over actions and hallucinated controls.
        """
        return CrossEntropySearch(
            proposals=decision_proposals(
                mdp.actions,
                hallucinated_dimension(mdp, self.optimism),
                min(self.horizon, mdp.horizon),
                initial_std=self.initial_std,
                minimum_share=self.minimum_share,
                carry_over=self.carry_over,
            ),
            iterations=self.finite_iterations if mdp.actions.finite else self.iterations,
            samples=self.samples,
            elites=self.elites,
            reused=max(1, round(self.reuse_fraction * self.elites)),
            momentum=self.momentum,
            noise_exponent=self.noise_exponent,
            explorers=round(self.exploration_fraction * (self.samples - self.elites)),
        )


class MPC(EpisodicPolicy):
    """Plans at every period in an MDP that is fixed during the episode.

    ``actions`` starts each search from the initial distribution, so it is a function of state and
    period. ``decide`` starts from the result of the search at the period before.

    Attributes:
        mdp: The MDP or family to plan in.
        key: Decides all draws of the searches.
        planner: The settings.

    >>> import kernelmdp as km
    >>> env = km.make("cartpole-swingup")
    >>> plan = km.MPCPlanner(horizon=5).plan(env.mdp, key=jax.random.key(0))
    >>> type(plan.policy).__name__  # nothing is searched before the first action
    'MPC'
    """

    mdp: MDP
    key: Key
    planner: MPCPlanner = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.replan(self.reset(states.shape[0]), states, period)[0]

    def reset(self, count: int) -> SearchState:
        memory = self.planner.search(self.mdp).reset()
        if self._refines and self.planner.follows_plan:
            memory = memory._replace(refinement=self._path_without_feedback(memory.elites[0]))
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[None], (count, *leaf.shape)), memory)

    def decide(
        self, memory: SearchState, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], SearchState]:
        actions, _, memory = self.replan(memory, states, period)
        return actions, memory

    def planned_actions(self, memory: SearchState) -> Float[Array, "T q"]:
        # The last decision of the shifted sequence was not searched.
        return self.planner.search(self.mdp).decode(memory.elites[0, 0])[0][:-1]

    def later_period(self, horizon: int) -> int:
        # The last period that sees a whole plan. Period 0 is left out, as it is searched longer.
        return max(1, horizon - self.planner.horizon)

    def replan(
        self, memory: SearchState, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Float[Array, " n"], SearchState]:
        """Search for the best actions in n states.

        Args:
            memory: The states of the n searches, from ``reset`` or from the period before.
            states: The states of the MDP, (n, m).
            period: The period, counted from 0.

        Returns:
            Actions (n, q), the planned returns from this period on (n,), and the memory for the
            next period.
        """
        planner, mdp = self.planner, self.mdp
        search = planner.search(mdp)
        search_key, noise_key = jax.random.split(jax.random.fold_in(self.key, period))
        noise = None
        if (particles := planner.particles_in(mdp)) > 1:
            shape = (search.proposals[0].steps, particles, mdp.states.dimension)
            noise = mdp.transition_noise.draw(shape, key=noise_key)

        # The first period has no memory and the whole episode ahead, so it is searched longer.
        rounds = jnp.where(jnp.asarray(period) == 0, planner.first_rounds, 1)

        def replan_state(memory: SearchState, state: Array) -> tuple[Array, Array, SearchState]:
            def returns(decisions: Array, terminal_velocity_penalty: float = 0.0) -> Array:
                return rollout_returns(
                    mdp,
                    state,
                    period,
                    *search.decode(decisions),
                    noise=noise,
                    optimism=planner.optimism,
                    terminal_velocity_penalty=terminal_velocity_penalty,
                )

            def score(decisions: Array) -> Array:
                return returns(decisions, planner.terminal_velocity_penalty)

            def refine(
                decisions: Array, previous: TrackedPath | tuple[()]
            ) -> tuple[Array, Array, TrackedPath | tuple[()]]:
                path, total = self._ilqr_refined(
                    search, state, period, decisions, previous, planner.ilqr_iterations * rounds
                )
                if noise is not None or mdp.termination is not None:
                    total = score(path.decisions[None])[0]
                return path.decisions, total, path.next_period() if previous else ()

            best, after = search(
                memory,
                score,
                key=search_key,
                rounds=rounds,
                refine=refine if self._refines else None,
            )
            value = best.score if mdp.termination is None else returns(best.decisions[None])[0]
            return search.decode(best.decisions[0])[0], value, after

        if states.shape[0] > 1:
            return jax.vmap(replan_state)(memory, states)
        # For one state ``vmap`` would only cost time.
        single = replan_state(jax.tree.map(lambda leaf: leaf[0], memory), states[0])
        return jax.tree.map(lambda leaf: leaf[None], single)

    @property
    def _refines(self) -> bool:
        return self.planner.ilqr_iterations > 0 and not self.mdp.actions.finite

    def _path_without_feedback(self, decisions: Float[Array, "T w"]) -> TrackedPath:
        laws, m = len(self.planner.ilqr_regularisers), self.mdp.states.dimension
        return TrackedPath.without_feedback(decisions, dimension=m, laws=laws)

    def _ilqr_refined(
        self,
        search: CrossEntropySearch,
        start: Array,
        period: Period,
        decisions: Array,
        previous: TrackedPath | tuple[()],
        iterations: ArrayLike,
    ) -> tuple[TrackedPath, Array]:
        mdp, planner = self.mdp, self.planner

        def step(states: Array, state_decisions: Array) -> tuple[Array, Array, Array]:
            decoded = search.decode(state_decisions)
            return rollout_step(mdp, states, *decoded, optimism=planner.optimism)

        boxes = [p for p in search.proposals if isinstance(p, ColouredGaussian)]
        low, high, scale = (
            jnp.asarray([number for box in boxes for number in getattr(box, name)])
            for name in ("low", "high", "initial_std")
        )
        return ilqr_refine(
            step,
            start,
            decisions,
            low=low,
            high=high,
            scale=scale,
            active=jnp.asarray(period) + jnp.arange(decisions.shape[0]) < mdp.horizon,
            difference=mdp.states.difference,
            iterations=iterations,
            previous=previous or self._path_without_feedback(decisions),
            regularisers=planner.ilqr_regularisers,
            step_lengths=planner.ilqr_step_lengths,
            terminal_value=terminal_value_after(mdp, jnp.asarray(period) + decisions.shape[0]),
        )


class MPCPlan(Plan):
    """A policy that plans at every period.

    Its value is known if its horizon reaches the end of the episode.

    Attributes:
        policy: The policy.
        error: NaN, because the error is unknown.

    >>> import kernelmdp as km
    >>> env = km.make("cartpole-swingup")
    >>> plan = km.MPCPlanner(horizon=5).plan(env.mdp, key=jax.random.key(0))
    >>> plan.value(env.draw_start(jax.random.key(0)))  # 5 steps do not reach the end of the episode
    nan
    """

    policy: MPC
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        """Compute the return that is planned at the first period.

        Args:
            state: The first state, (m,).

        Returns:
            The return. NaN if the episode is longer than the planner's horizon.
        """
        if self.policy.planner.horizon < self.policy.mdp.horizon:
            return float("nan")
        return float(_planned_return(self.policy, np.asarray(state, float)[None, :]))

    def values_in(self, mdps: Sequence[MDP], start: ArrayLike) -> np.ndarray:
        """Compute the returns in other MDPs of the actions that are planned at the first period.

        The actions are not planned again on the way. Beyond the planner's horizon the terminal
        value is earned, or else the mean reward is assumed to go on. The values are estimates, for
        comparisons of plans.

        Args:
            mdps: The MDPs. They have the spaces and the horizon of the one that was planned for.
            start: The first state, (m,).

        Returns:
            One estimated value for each MDP.
        """
        player = self.policy.player()
        first, later = player(start, 0), player.planned_actions()
        assert later is not None
        actions = np.concatenate([first[None], later])
        return open_loop_values(mdps, start, actions)


@jit
def _planned_return(policy: MPC, states: ArrayLike) -> Array:
    low, high = (policy.mdp.horizon * bound for bound in policy.mdp.reward_range)
    rows = jnp.asarray(states)
    return jnp.clip(policy.replan(policy.reset(1), rows, jnp.asarray(0))[1][0], low, high)
