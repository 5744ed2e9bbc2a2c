"""What every agent does: plan an episode, be told what happened, learn, save and load.

A subclass says how beliefs become a plan, in ``plan``; nothing else differs. All randomness comes
from the seed and the number of the episode, so a resumed agent goes on as if it had never stopped.
"""

import abc
import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import checkpoint
from kernelmdp.agents.learning import interact
from kernelmdp.agents.planning import as_planner, described
from kernelmdp.agents.problem import Problem, find_task, problem_of
from kernelmdp.agents.progress import track
from kernelmdp.agents.records import Result, Table
from kernelmdp.confidence import Beliefs, Confidence, as_confidence
from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.noise import as_noise
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.checks import float_array, integer, require_finite
from kernelmdp.planners import Plan, RiccatiPlanner
from kernelmdp.planners.certified import paper_tolerance
from kernelmdp.types import Key

#: Bytes a posterior may keep to answer faster at the points of the planner.
REMEMBERED = 2**30


@dataclasses.dataclass(frozen=True)
class Told:
    """The data of one episode, as it was told: what a checkpoint keeps."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    outcomes: np.ndarray


class Agent(abc.ABC):
    """An episodic learner. Use one of its subclasses."""

    name: ClassVar[str]
    #: Whether plans need standard deviations at all points of the planner.
    plans_with_deviations: ClassVar[bool] = False

    def __init__(
        self,
        task: Any,
        *,
        reward: Any = "learned",
        reward_kernel: Any = None,
        transition_kernel: Any = None,
        horizon: int | None = None,
        noise: Any = None,
        confidence: str | Confidence = "practical",
        planner: Any = "auto",
        seed: int = 0,
    ) -> None:
        """Prepare to learn a task: an environment, its name, a Gymnasium id or object, or a
        ``Problem`` when the loop is not ours.

        ``reward`` is "learned", "known" (the environment's own function), or a function of points
        z = (s, a), shape (n, d), with values (n,). Kernels may be given as text. ``noise`` is a
        noise law, or the standard deviation of a Gaussian one, for states and rewards.
        ``confidence`` is "paper", "valid", "practical" or a ``Confidence``; ``planner`` is "auto"
        (what suits the problem), "grid", "bonus", "paper" (a grid, each plan to ε_l = √(H/l), by
        estimate), "riccati", "arms" or a planner.
        """
        self.seed = integer("seed", seed, least=0)
        self.task = find_task(task, horizon=horizon)
        self.problem = problem = problem_of(
            self.task,
            reward=reward,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            noise=noise,
        )
        if problem.reward is not None:
            _require_reward(problem)
        self.confidence = self._confidence(as_confidence(confidence))
        self.planner = as_planner(planner, problem)
        self.to_tolerance = planner == "paper"
        self.words = {
            "reward": reward if isinstance(reward, str) else "a function",
            "reward_kernel": None if reward_kernel is None else str(reward_kernel),
            "transition_kernel": None if transition_kernel is None else str(transition_kernel),
            "noise": None if noise is None else repr(as_noise(noise)),
            "confidence": dataclasses.asdict(as_confidence(confidence)),
            "planner": planner if planner == "paper" else described(self.planner),
        }
        self.cumulative_regret = 0.0
        self.history: list[Told] = []
        self._plan: Plan | None = None
        self._first: np.ndarray | None = None
        self._exploit: Plan | None = None
        self.begin()

    # What subclasses say.

    @abc.abstractmethod
    def plan(self, *, key: Key) -> Plan:
        """The plan of the next episode, from the beliefs."""

    def begin(self) -> None:
        """Make what is learned, before any data: here the prior beliefs."""
        beliefs = self.problem.beliefs(*self.regularisers(), accuracy=self.accuracy)
        asked = self.planner.points(self.problem.mdp(beliefs.mean()))
        if asked is not None:
            beliefs = beliefs.remember(asked, limit=REMEMBERED, moments=self.plans_with_deviations)
        self.beliefs: Beliefs = beliefs

    def learn_from(self, told: Told) -> None:
        """Learn from an episode that was checked; on an error nothing has changed."""
        points = np.concatenate([told.states[:-1], told.actions], axis=1)
        targets = self.problem.transition_noise.embed(told.outcomes)
        self.beliefs = self.beliefs.condition(points, told.rewards, targets)

    def exploit(self, *, key: Key) -> Plan:
        """The best plan for what is believed now, exploration aside."""
        return self.planner(self.problem.mdp(self.beliefs.mean()), key=key)

    @property
    def gains(self) -> tuple[float, float]:
        """Information gained so far about reward and transition."""
        return self.beliefs.gains

    def regularisers(self) -> tuple[float, Any]:
        """Noise variances, or the regularisers in their place, for reward and transition."""
        return self.problem.noise_variances

    @property
    def accuracy(self) -> float:
        """How closely kernels are compiled, as a share of the noise variance."""
        return self.problem.accuracy

    @property
    def covered(self) -> str:
        """Which theorem covers this run, or why none does."""
        return "not covered: no theorem is about this agent"

    def diagnostics(self) -> dict[str, float]:
        """Numbers of the last plan worth a column of their own."""
        return {}

    def solve(self, mdp: MDP, *, key: Key) -> Plan:
        """A plan for an MDP or a family; with the planner "paper" to ε_l = √(H/l) at the start."""
        if isinstance(self.planner, RiccatiPlanner):
            return self.planner(mdp, key=key, start=self._first)
        if not self.to_tolerance:
            return self.planner(mdp, key=key)
        if self._first is None:
            raise ArgumentError("first_state", "the state in which the episode starts", None)
        tolerance = paper_tolerance(self.problem.horizon, self.episode + 1)
        return self.planner.within(tolerance, mdp, self._first, key=key)

    # What users call.

    @property
    def episode(self) -> int:
        """How many episodes were learned from."""
        return len(self.history)

    def ask(self, first_state: Any = None) -> Policy:
        """π_l, fixed for the coming episode: ``policy(state, period) -> action``.

        Asked again before ``tell`` it answers the same.
        """
        if first_state is not None:
            self._first = self._state("first_state", first_state)
        if self._plan is None:
            self._plan = jax.block_until_ready(self.plan(key=episode_key(self.seed, self.episode)))
        return self._plan.policy

    @property
    def planned(self) -> Plan | None:
        """The plan of the episode under way."""
        return self._plan

    def tell(self, states: Any, actions: Any, rewards: Any, outcomes: Any = None) -> None:
        """Learn from an episode: states (H + 1, m), actions (H, q), rewards (H,).

        ``outcomes`` (H, m) are next states before they were brought into the state space, where
        known. Without them they are taken from the states, unwrapped along periodic axes; at the
        border of a box that biases what is learned. On an error nothing has changed.
        """
        told = self._checked(states, actions, rewards, outcomes)
        self.learn_from(told)
        self.history.append(told)
        self._plan = self._exploit = self._first = None

    def predict(self, observation: Any, period: int = 0) -> np.ndarray:
        """What the agent holds for the best action now, exploration aside."""
        state = self._state("observation", observation)
        if not 0 <= period < self.problem.horizon:
            raise ArgumentError("period", f"0 to {self.problem.horizon - 1}", period)
        if self._exploit is None:
            self._exploit = self.exploit(key=episode_key(self.seed, self.episode))
        return self._exploit.policy(state, period)

    def learn(self, episodes: int, *, progress: bool = True) -> Result:
        """Play and learn from that many more episodes of the task."""
        if isinstance(self.task, Problem):
            raise ArgumentError("task", "an environment to learn in; use ask and tell", "a Problem")
        episodes = integer("episodes", episodes, least=1)
        steps = interact(self, self.task, episodes)
        rows = list(track(steps, total=episodes, agent=self.name) if progress else steps)
        return Result(self.problem.name, self.name, self.covered, Table(rows))

    def save(self, path: Any) -> None:
        """Write the agent to a file: arrays and JSON, nothing that could run."""
        checkpoint.write(path, self.description(), self._arrays())

    def description(self) -> dict[str, Any]:
        """How the agent was made, and for which problem, in plain words and numbers."""
        return {
            "agent": self.name,
            "seed": self.seed,
            "task": getattr(self.task, "spec", None),
            "words": self.words,
            "problem": self.problem.summary(),
            "cumulative_regret": self.cumulative_regret,
        }

    # Within.

    def _arrays(self) -> dict[str, np.ndarray]:
        problem, H = self.problem, self.problem.horizon
        m, q = problem.states.dimension, problem.actions.dimension
        empty = {"states": (H + 1, m), "actions": (H, q), "rewards": (H,), "outcomes": (H, m)}
        return {
            name: np.stack([getattr(told, name) for told in self.history])
            if self.history
            else np.zeros((0, *shape))
            for name, shape in empty.items()
        }

    def _confidence(self, given: Confidence) -> Confidence:
        """Norm bounds that the problem knows take the place of unknown ones."""
        known: dict[str, Any] = {}
        for name in ("norm_reward", "norm_transition"):
            value = getattr(self.problem, name)
            if getattr(given, name) is None and value is not None:
                known[name] = value
        return dataclasses.replace(given, **known)

    def _state(self, argument: str, state: Any) -> np.ndarray:
        array = np.atleast_1d(np.asarray(float_array(state, argument)))
        m = self.problem.states.dimension
        if array.shape != (m,):
            raise ShapeError(argument, f"a state of {m} numbers", f"shape {array.shape}")
        require_finite(argument, array)
        return array

    def _checked(self, states: Any, actions: Any, rewards: Any, outcomes: Any) -> Told:
        problem = self.problem
        H, m, q = problem.horizon, problem.states.dimension, problem.actions.dimension
        arrays = {}
        for name, given, shape in (
            ("states", states, (H + 1, m)),
            ("actions", actions, (H, q)),
            ("rewards", rewards, (H,)),
            ("outcomes", outcomes, (H, m)),
        ):
            if given is None:
                continue
            # A copy of its own, since the history keeps it.
            array = np.array(float_array(given, name), dtype=float)
            if array.shape != shape:
                raise ShapeError(
                    name, f"shape {shape} for an episode of {H} periods", f"shape {array.shape}"
                )
            _require_finite(name, array)
            arrays[name] = array
        problem.states.require_inside("states", arrays["states"])
        problem.actions.require_inside("actions", arrays["actions"])
        if "outcomes" not in arrays:
            arrays["outcomes"] = _unwrapped(problem, arrays["states"])
        return Told(**arrays)


@jax.jit
def episode_key(seed: Any, episode: Any) -> Key:
    """All that is random in an episode depends on this alone."""
    return jax.random.fold_in(jax.random.key(seed), episode)


def generator(key: Key) -> np.random.Generator:
    """NumPy's randomness from a key of JAX."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


def _require_reward(problem: Problem) -> None:
    """A known reward is tried before anything is planned with it."""
    assert problem.reward is not None
    values = reward_values(problem.reward, jnp.asarray(problem.points.spread(4)))
    require_finite("reward", values)


def _require_finite(argument: str, array: np.ndarray) -> None:
    """DataError that names the step, and the coordinate where there are several."""
    if np.isfinite(array).all():
        return
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    where = f"step {place[0]}" + "".join(f", coordinate {i}" for i in place[1:])
    raise DataError(argument, "finite numbers", f"{array[place]} at {where}")


def _unwrapped(problem: Problem, states: np.ndarray) -> np.ndarray:
    """Next states as if no periodic axis had wrapped: the nearest of the equal places."""
    after = states[1:].copy()
    for axis in getattr(problem.states, "periodic", ()):
        low, high = (end[axis] for end in problem.states.bounds)
        turn = high - low
        change = after[:, axis] - states[:-1, axis]
        after[:, axis] -= turn * np.round(change / turn)
    return after
