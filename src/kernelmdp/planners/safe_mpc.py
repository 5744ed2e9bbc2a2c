"""Model-predictive control with constraints: a filter that hands over to a fallback.

Plans are searched in the mean, with a price of coming near to a limit. Before an action is taken,
it is checked in MDPs that are drawn from the beliefs: the action, and then the fallback, must be
predicted to keep every constraint. Otherwise the action is moved towards the fallback's, and at
last the fallback acts. All of this is an estimate. No theorem bounds the probability of a
violation.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import MDP, DrawnModels
from kernelmdp.mdp.policy import EpisodicPolicy, Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners.backups import Backup, FallbackBackup, PlanBackup, repeated
from kernelmdp.planners.blended_plan import BlendedPolicy
from kernelmdp.planners.constraint_penalty import PROBES, with_penalty
from kernelmdp.planners.icem import SearchState
from kernelmdp.planners.mpc import MPC, MPCPlan, MPCPlanner
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.planners.predicted_risk import RiskPrediction
from kernelmdp.types import ArrayLike, Key, Period

#: Actions that differ by less than this share of the action space are the same.
SAME_ACTION = 1e-6
#: The search, unless another one is wrapped.
SEARCH = MPCPlanner(follows_plan=True)


@dataclasses.dataclass(frozen=True)
class SafeMPCPlanner(Planner):
    """Plans by model-predictive control, and takes only actions that are predicted to be safe.

    Attributes:
        mpc: The search. It knows what the fallback would do in the mean.
        drawn_models: Number of MDPs, drawn from the beliefs, in which actions are checked.
        inflation: Least and largest factor of the differences between drawn MDPs and their mean.
            After few episodes, draws from fitted kernels are too much alike. The factor is the
            largest error of a constraint in the last planned episode, in standard deviations,
            between these limits. At first it is the largest one: the first planned episode of a
            reactor had errors of 4.6 standard deviations.
        backup_steps: Number of steps for which the fallback is followed after an action.
        shares: Shares of the planned action in the actions that are tried, the rest is the
            fallback's. The first that is safe enough is taken.
        penalty: The price in a search of one width beyond the margin, in standard deviations of
            the mean reward. A width is one standard deviation of the constraint by the noise. A
            higher price makes searches stop before narrow ways: on a quadrotor in a corridor, a
            price of 1 earned half of what 0.2 does. A lower one leaves more to the checks.
        margin: The number of widths before a limit at which the price begins.
        least_width: The least width, as a share of the typical distance from the limit. It keeps
            the price smooth where there is little noise.
        measures_at_visited: Whether the sizes of rewards and constraints, the units of the penalty,
            are measured at visited states. It is so where an axis of the state has no bounds.
        risk: The predicted probability of a violation that an episode may take.
        fallback: The fallback, or None.

    >>> import kernelmdp as km
    >>> SafeMPCPlanner(km.MPCPlanner(horizon=10)).keeps_constraints
    True
    """

    replans: ClassVar[bool] = True
    keeps_constraints: ClassVar[bool] = True

    mpc: MPCPlanner = SEARCH
    drawn_models: int = 8
    inflation: tuple[float, float] = (3.0, 5.0)
    backup_steps: int = 20
    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    penalty: float = 0.2
    margin: float = 3.0
    least_width: float = 0.01
    measures_at_visited: bool = False
    risk: float = 0.05
    fallback: Fallback | None = None

    def __post_init__(self) -> None:
        for name in ("drawn_models", "backup_steps"):
            integer(name, getattr(self, name), least=1)
        for name in ("penalty", "margin", "least_width"):
            positive_number(name, getattr(self, name))
        least, largest = self.inflation
        if not 0 < least <= largest < np.inf:
            raise ArgumentError("inflation", "two positive numbers in order", self.inflation)
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise ArgumentError("shares", "numbers above 0 and at most 1", self.shares)

    @classmethod
    def for_problem(cls, problem: Problem) -> "SafeMPCPlanner":
        return cls.wrapping(MPCPlanner.for_problem(problem), problem)

    @classmethod
    def wrapping(cls, planner: Any, problem: Problem) -> "SafeMPCPlanner":
        """Make the planner from one that keeps no constraints.

        A narrow way between limits is lost at every disturbance. So searches follow the plan of the
        period before with its feedback. A pendulum with a speed limit earned 0.98 of the optimum
        with it, and 0.2 to 0.9 without.

        Args:
            planner: The search.
            problem: The problem, with constraints.

        Returns:
            The planner.
        """
        search = dataclasses.replace(planner, follows_plan=True)
        return cls(search, measures_at_visited=bool(problem.unbounded))

    def visited_states(self, spaces: Spaces) -> int:
        return self.mpc.visited_states(spaces) or (PROBES if self.measures_at_visited else 0)

    def prepared(self, mdp: MDP, *, key: Key) -> MDP:
        return self.mpc.prepared(mdp, key=key)

    def within(self, risk: float, fallback: Fallback | None) -> "SafeMPCPlanner":
        return dataclasses.replace(self, risk=risk, fallback=fallback)

    def penalised(self, mdp: MDP) -> MDP:
        """Lower the rewards of an MDP near its constraints.

        Args:
            mdp: The MDP or family, with the signal "violation".

        Returns:
            The MDP in which actions are searched.
        """
        return with_penalty(
            mdp,
            _violation_of(mdp),
            penalty=self.penalty,
            margin=self.margin,
            least=self.least_width,
            at_visited=self.measures_at_visited,
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> "SafeMPCPlan":
        """Make a policy that searches at every period, and filters what it finds.

        Args:
            mdp: The MDP or family. ``drawn_models`` are the MDPs in which actions are checked. If
                there are none, they are checked in the MDP itself.
            start: Not used.
            key: Decides all draws.

        Returns:
            The plan.
        """
        violation = _violation_of(mdp)
        prepared = self.prepared(mdp, key=jax.random.fold_in(key, 1))
        searched = self.mpc.plan(self.penalised(prepared), start=start, key=key)
        drawn = mdp.drawn_models or DrawnModels.stacked([mdp.model])
        prediction = RiskPrediction(
            drawn.models,
            mdp.model,
            jnp.asarray(self._inflation_after(drawn.largest_error)),
            violation,
            mdp.states,
            mdp.noise_deviations,
        )
        # Another risk compiles no new program.
        settings = dataclasses.replace(self, risk=0.0, fallback=None)
        risk = jnp.asarray(float(self.risk))
        shares = jnp.asarray((1.0,) if mdp.actions.finite else self.shares)
        policy = SafeMPC(searched.policy, prediction, risk, shares, self.fallback, settings)
        return SafeMPCPlan(policy=policy)

    def _inflation_after(self, largest_error: float | Float[Array, ""]) -> float:
        least, largest = self.inflation
        error = float(largest_error)
        return largest if np.isnan(error) else min(max(error, least), largest)


class SafeMPC(EpisodicPolicy):
    """Takes the planned action if it is predicted to be safe, or moves it towards the fallback's.

    Attributes:
        mpc: The policy that searches.
        prediction: The predicted probability of a violation.
        risk: What an episode may take, a scalar.
        shares: Shares of the planned action that are tried, (k,). Finite actions cannot be mixed.
        fallback: The fallback, or None. Without one, the rest of the plan is the backup.
        planner: The settings.
    """

    mpc: MPC
    prediction: RiskPrediction
    risk: Float[Array, ""]
    shares: Float[Array, " k"]
    fallback: Fallback | None = eqx.field(static=True)
    planner: SafeMPCPlanner = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.decide(self.reset(states.shape[0]), states, period)[0]

    def reset(self, count: int) -> Any:
        memory = () if self.fallback is None else self.fallback.policy.reset(count)
        return self.mpc.reset(count), memory

    def planned_actions(self, memory: Any) -> Float[Array, "T q"] | None:
        # With a fallback, unchecked actions are not taken: the fallback acts.
        return self.mpc.planned_actions(memory[0]) if self.fallback is None else None

    def later_period(self, horizon: int) -> int:
        return self.mpc.later_period(horizon)

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        search, controller = memory
        count = states.shape[0]
        if self.fallback is None:
            planned, _, search = self.mpc.replan(search, states, period)
            candidates, trusted = planned[:, None, :], jnp.zeros(count, bool)
            backup: Backup = PlanBackup(self._rest_of_plan(search))
        else:
            search = self._with_fallback(self.fallback, search, controller, states, period)
            planned, _, search = self.mpc.replan(search, states, period)
            safe, controller = self.fallback.policy.decide(controller, states, period)
            shares = jnp.append(self.shares, 0.0)[None, :, None]
            candidates = safe[:, None, :] + shares * (planned - safe)[:, None, :]
            trusted = self.fallback.is_trusted(states)
            later = repeated(controller, candidates.shape[1])
            backup = FallbackBackup(self.fallback, later, jnp.asarray(period))
        options = candidates.shape[1]
        first, total = self.prediction.of_backups(
            jnp.repeat(states, options, axis=0),
            candidates.reshape(-1, candidates.shape[2]),
            backup,
            steps=self.planner.backup_steps,
            key=jax.random.fold_in(jax.random.fold_in(self.mpc.key, 3), period),
        )
        first, total = first.reshape(count, options), total.reshape(count, options)
        # Over an episode, first steps add up to the risk.
        allowed = (first <= self.risk / self.mpc.mdp.horizon) & (total <= self.risk)
        allowed = allowed.at[:, -1].set(allowed[:, -1] | trusted)
        # The first allowed option, or else the one with the least risk. The fallback wins ties.
        least = options - 1 - jnp.argmin(total[:, ::-1], axis=1)
        index = jnp.where(jnp.any(allowed, axis=1), jnp.argmax(allowed, axis=1), least)
        return candidates[jnp.arange(count), index], (search, controller)

    def _rest_of_plan(self, search: SearchState) -> Float[Array, "n T q"]:
        """The actions of the best sequence, from the next period on."""
        decode = self.mpc.planner.search(self.mpc.mdp).decode
        return jax.vmap(lambda elites: decode(elites[0])[0])(search.elites)

    def _with_fallback(
        self,
        fallback: Fallback,
        search: SearchState,
        controller: Any,
        states: Float[Array, "n m"],
        period: Period,
    ) -> SearchState:
        """The memory of a search, in which the last elite is what the fallback does in the mean.

        Between narrow limits almost all random sequences break one. The fallback's does not.
        """
        mdp = self.mpc.mdp
        actions_proposal, controls = self.mpc.planner.search(mdp).proposals

        def advance(carry: tuple[Any, Array], step: Array) -> tuple[Any, Array]:
            remembered, now = carry
            taken, remembered = fallback.policy.decide(remembered, now, period + step)
            after = mdp.states.nearest(mdp.model(state_action(now, taken)).state)
            return (remembered, after), taken

        steps = jnp.arange(actions_proposal.steps)
        taken = jax.lax.scan(advance, (controller, states), steps)[1]  # (T, n, q)
        decisions = jax.vmap(actions_proposal.encode, in_axes=1)(taken)
        none = jnp.zeros((*decisions.shape[:2], controls.width), decisions.dtype)
        offered = jnp.concatenate([decisions, none], axis=2)
        return search._replace(elites=search.elites.at[:, -1].set(offered))


class SafeMPCPlan(Plan):
    """A policy that searches at every period, and filters what it finds.

    Attributes:
        policy: The policy.
        plan_share: The largest share of the planned action that is tried.
        error: NaN, because the error is unknown.
    """

    policy: SafeMPC
    plan_share: float = eqx.field(static=True, default=1.0)
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return float("nan")

    def values_in(self, mdps: Sequence[MDP], start: ArrayLike) -> np.ndarray:
        """Compute the returns in other MDPs of the actions that are searched at the first period.

        Args:
            mdps: The MDPs. Coming near to a limit costs what it does in the search.
            start: The first state, (m,).

        Returns:
            One estimated value for each MDP.
        """
        penalised = [self.policy.planner.penalised(mdp) for mdp in mdps]
        return MPCPlan(policy=self.policy.mpc).values_in(penalised, start)

    @property
    def simulated(self) -> Policy:
        """The search without its checks, which take most of the time."""
        policy, share = self.policy, jnp.asarray(self.plan_share)
        if policy.fallback is None or self.plan_share == 1.0:
            return policy.mpc
        return BlendedPolicy(policy.mpc, policy.fallback, share)

    def with_share(self, share: float) -> "SafeMPCPlan | None":
        policy = self.policy
        if policy.fallback is None:
            return None
        limited = replace_fields(policy, shares=share * policy.shares)
        return SafeMPCPlan(policy=limited, plan_share=share * self.plan_share)

    def episode_risk(
        self, states: Float[np.ndarray, "H1 m"], actions: Float[np.ndarray, "H q"]
    ) -> float:
        before, taken = jnp.asarray(states, float)[:-1], jnp.asarray(actions, float)
        return float(_episode_risk(self.policy.prediction, before, taken))

    def largest_error(
        self, states: Float[np.ndarray, "H1 m"], actions: Float[np.ndarray, "H q"]
    ) -> float:
        visited, taken = jnp.asarray(states, float), jnp.asarray(actions, float)
        return float(_largest_error(self.policy.prediction, visited, taken))

    def fallback_acts(
        self, states: Float[np.ndarray, "H m"], actions: Float[np.ndarray, "H q"]
    ) -> Bool[np.ndarray, " H"]:
        fallback, space = self.policy.fallback, self.policy.mpc.mdp.actions
        if fallback is None:
            return np.zeros(len(states), bool)
        proposed = _followed(fallback, jnp.asarray(states, float))
        low, high = space.bounds
        apart = np.abs(np.asarray(actions) - np.asarray(proposed)) / (high - low)
        return np.asarray((apart <= SAME_ACTION).all(axis=1))


@jit
def _episode_risk(
    prediction: RiskPrediction, states: Float[Array, "H m"], actions: Float[Array, "H q"]
) -> Float[Array, ""]:
    return 1.0 - jnp.prod(1.0 - prediction.of_steps(states, actions))


@jit
def _largest_error(
    prediction: RiskPrediction, states: Float[Array, "H1 m"], actions: Float[Array, "H q"]
) -> Float[Array, ""]:
    return prediction.largest_error(states, actions)


@eqx.filter_jit
def _followed(fallback: Fallback, states: Float[Array, "H m"]) -> Float[Array, "H q"]:
    """The fallback's actions along an episode, with its memory."""

    def one_period(memory: Any, step: tuple[Array, Array]) -> tuple[Any, Array]:
        state, period = step
        action, memory = fallback.policy.decide(memory, state[None, :], period)
        return memory, action[0]

    periods = jnp.arange(states.shape[0])
    return jax.lax.scan(one_period, fallback.policy.reset(1), (states, periods))[1]


def _violation_of(mdp: MDP) -> Violation:
    signal: Any = mdp.signals.get("violation")
    return signal or Violation((), mdp.states.dimension)
