"""What every agent does: plan an episode, be told what happened, learn, save and load.

A subclass says how beliefs become a plan, in ``plan``; nothing else differs. All randomness comes
from the seed and the number of the episode, so a resumed agent goes on as if it had never stopped.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import checkpoint
from kernelmdp.agents.fitted import Fitted
from kernelmdp.agents.learning import interact
from kernelmdp.agents.planning import as_planner, described
from kernelmdp.agents.problem import Problem, find_task, problem_of
from kernelmdp.agents.progress import track
from kernelmdp.agents.records import Result, Table
from kernelmdp.confidence import Beliefs, Confidence, as_confidence
from kernelmdp.envs import GymnasiumTask
from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.noise import Noise, as_noise
from kernelmdp.mdp.policy import Policy, Uniform
from kernelmdp.numerics.checks import choice, float_array, integer, require_finite
from kernelmdp.planners import MPCPlanner, Plan, RiccatiPlanner, Unplanned
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
    #: Whether the system itself ended the episode.
    terminated: bool = False

    def step(self, number: int) -> "Told":
        """One step of it."""
        last = number + 1 == len(self.rewards)
        return Told(
            self.states[number : number + 2],
            self.actions[number : number + 1],
            self.rewards[number : number + 1],
            self.outcomes[number : number + 1],
            self.terminated and last,
        )

    @staticmethod
    def all_of(arrays: Mapping[str, np.ndarray]) -> "list[Told]":
        """The episodes of a checkpoint's arrays, without the NaN behind the end of shorter ones."""
        found = []
        for *rows, ended in zip(*(arrays[name] for name in checkpoint.ARRAYS), strict=True):
            states, actions, rewards, outcomes = rows
            # An episode without any number is left as it is, for ``tell`` to complain of.
            length = int(np.isfinite(rewards).sum()) or len(rewards)
            data = (states[: length + 1], actions[:length], rewards[:length], outcomes[:length])
            found.append(Told(*data, terminated=bool(ended)))
        return found


class Agent(abc.ABC):
    """An episodic learner. Use one of its subclasses.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> policy = agent.ask()  # fixed for one episode of yours
    >>> states, actions, rewards = [[0]], [], []
    >>> for period in range(20):
    ...     actions.append(policy(states[-1], period))
    ...     rewards.append(0.005)  # your system says
    ...     states.append([0])
    >>> agent.tell(states, actions, rewards)
    >>> agent.episode
    1
    """

    name: ClassVar[str]
    #: Whether plans need standard deviations at all points of the planner.
    plans_with_deviations: ClassVar[bool] = False
    #: Whether beliefs change with what is seen.
    learns: ClassVar[bool] = True

    def __init__(
        self,
        task: Any,
        *,
        reward: Any = "learned",
        reward_kernel: Any = None,
        transition_kernel: Any = None,
        horizon: int | None = None,
        noise: Any = None,
        confidence: str | Confidence | Mapping[str, Any] | None = None,
        planner: Any = "auto",
        kernel: str | None = None,
        update: str = "episode",
        first: str | None = None,
        reward_bounds: Any = None,
        seed: int = 0,
    ) -> None:
        """Prepare to learn a task: an environment, its name, a Gymnasium id or object, or a
        ``Problem`` when the loop is not ours.

        ``reward`` is "learned", "known" (the environment's own function), or a function of points
        z = (s, a), shape (n, d), with values (n,). Kernels may be given as text. ``noise`` is a
        noise law, or the standard deviation of a Gaussian one, for states and rewards.
        ``confidence`` is "paper", "valid", "practical", "fitted", a ``Confidence`` or changes to
        one, by default "practical", or "fitted" where kernels fit themselves. ``planner`` is "auto"
        (what suits the problem), "grid", "bonus", "paper" (a grid, each plan to ε_l = √(H/l), by
        estimate), "mpc", "riccati", "arms" or a planner.

        ``kernel`` is "auto" for kernels that fit themselves to the data, the default where nothing
        is known of a system (Gymnasium's, unless kernels are given). ``update`` is "episode", as in
        the paper, or "step": learn and plan anew at every step, which no theorem covers. ``first``
        is the first episode: "random" actions, or the "prior"'s own plan; random by default when
        kernels fit themselves by the episode, since nothing fits before there are data.
        ``reward_bounds`` (low, high) hold every mean reward, where that much is known of it:
        without them an agent that explores may go on hoping for more than there is.
        """
        self.seed = integer("seed", seed, least=0)
        self.task = find_task(task, horizon=horizon)
        self.problem = problem = problem_of(
            self.task,
            reward=reward,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            noise=noise,
            kernel=kernel,
            reward_bounds=reward_bounds,
        )
        self.update = choice("update", update, ("episode", "step"))
        usual = "random" if problem.fitted and update == "episode" else "prior"
        self.first = choice("first", usual if first is None else first, ("random", "prior"))
        if problem.reward is not None:
            _require_reward(problem)
        chosen = as_confidence(confidence, usual="fitted" if problem.fitted else "practical")
        self.confidence = self._confidence(chosen)
        self.planner = as_planner(planner, problem)
        self.to_tolerance = planner == "paper"
        self.words = {
            "reward": reward if isinstance(reward, str) else "a function",
            "reward_kernel": None if reward_kernel is None else str(reward_kernel),
            "transition_kernel": None if transition_kernel is None else str(transition_kernel),
            "noise": None if noise is None else repr(as_noise(noise)),
            "confidence": dataclasses.asdict(chosen),
            "planner": planner if planner == "paper" else described(self.planner),
            "kernel": kernel,
            "update": self.update,
            "first": self.first,
            "reward_bounds": problem.reward_bounds and list(problem.reward_bounds),
        }
        self.cumulative_regret = 0.0
        self.history: list[Told] = []
        self._seen = 0  # steps of the episode under way that were learned from already
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
        self.beliefs: Beliefs
        self.fitted: Fitted | None = None
        if self.problem.fitted:
            tables = not isinstance(self.planner, MPCPlanner)
            self.fitted = Fitted.prior(self.problem, seed=self.seed, tables=tables)
            self.beliefs = self.fitted.beliefs
            return
        beliefs = self.problem.beliefs(*self.regularisers(), accuracy=self.accuracy)
        asked = self.planner.points(self.problem.mdp(beliefs.mean()))
        if asked is not None:
            beliefs = beliefs.remember(asked, limit=REMEMBERED, moments=self.plans_with_deviations)
        self.beliefs = beliefs

    def learn_from(self, told: Told) -> None:
        """Learn from an episode (or some steps of one) that was checked; on an error nothing has
        changed."""
        points = np.concatenate([told.states[:-1], told.actions], axis=1)
        if self.fitted is not None:
            after = self.fitted.after(points, told.rewards, told.outcomes, ended=told.terminated)
            self.beliefs, self.fitted = after.beliefs, after
            return
        targets = self.problem.transition_noise.embed(told.outcomes)
        self.beliefs = self.beliefs.condition(points, told.rewards, targets)

    def exploit(self, *, key: Key) -> Plan:
        """The best plan for what is believed now, exploration aside."""
        return self.planner(self._within_reach(self.problem.mdp(self.beliefs.mean())), key=key)

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """Noise of rewards and transitions, as given or as fitted."""
        if self.fitted is not None:
            return self.fitted.noises
        return self.problem.reward_noise, self.problem.transition_noise

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
        mdp = self._within_reach(mdp)
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
            key = episode_key(self.seed, self.episode)
            if self.first == "random" and self.episode == 0:
                self._plan = Unplanned(policy=Uniform(self.problem.actions, key))
            else:
                self._plan = jax.block_until_ready(self.plan(key=key))
        return self._plan.policy

    @property
    def planned(self) -> Plan | None:
        """The plan of the episode under way."""
        return self._plan

    def tell(
        self,
        states: Any,
        actions: Any,
        rewards: Any,
        outcomes: Any = None,
        *,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Learn from an episode: states (H + 1, m), actions (H, q), rewards (H,).

        ``outcomes`` (H, m) are next states before they were brought into the state space, where
        known. Without them they are taken from the states, unwrapped along periodic axes; at the
        border of a box that biases what is learned. An episode that the system itself ended is
        ``terminated``, one that was cut off ``truncated``; these may be shorter. On an error
        nothing has changed.
        """
        shorter = terminated or truncated
        told = self._checked(states, actions, rewards, outcomes, terminated, shorter)
        if self.update == "step":
            # Step by step even when told at once: so a loaded agent comes to the same kernels.
            for step in range(self._seen, len(told.rewards)):
                self.learn_from(told.step(step))
        else:
            self.learn_from(told)
        self.history.append(told)
        self._seen = 0
        self._plan = self._exploit = self._first = None

    def relive(self, told: Told) -> None:
        """Be told an episode again, as another agent was told it."""
        data = (told.states, told.actions, told.rewards, told.outcomes)
        cut = not told.terminated and len(told.rewards) < self.problem.horizon
        self.tell(*data, terminated=told.terminated, truncated=cut)

    def see(
        self, state: Any, action: Any, reward: Any, outcome: Any, *, terminated: bool = False
    ) -> None:
        """Learn from one step of the episode under way (``update="step"``); ``tell`` all of them
        at its end."""
        if self.update != "step":
            raise ArgumentError("update", "'step' to learn within an episode", repr(self.update))
        before, outcomes = self._state("state", state), self._state("outcome", outcome)[None]
        after = np.asarray(self.problem.states.nearest(jnp.asarray(outcomes)))[0]
        states = np.stack([before, after])
        told = self._checked(states, [action], [reward], outcomes, terminated, shorter=True)
        self.learn_from(told)
        self._seen += 1
        self._plan = self._exploit = None

    def predict(self, observation: Any, period: int = 0) -> np.ndarray:
        """What the agent holds for the best action now, exploration aside."""
        if isinstance(self.task, GymnasiumTask):
            observation = self.task.state_of(observation)
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

    def _within_reach(self, mdp: MDP) -> MDP:
        """Kernels that were fitted say little far from all data: states and rewards stay near."""
        if self.fitted is None:
            return mdp
        return self.fitted.ranged(mdp)

    @property
    def beyond(self) -> str | None:
        """Why no theorem is about the way this agent learns, if so."""
        if self.fitted is not None:
            return "not covered: kernels are fitted to the data they are used on"
        if self.update == "step":
            return "not covered: policies change within an episode"
        return None

    def _arrays(self) -> dict[str, np.ndarray]:
        problem, H = self.problem, self.problem.horizon
        m, q = problem.states.dimension, problem.actions.dimension
        shapes = {"states": (H + 1, m), "actions": (H, q), "rewards": (H,), "outcomes": (H, m)}
        arrays = {}
        for name, shape in shapes.items():
            # Behind the end of an episode that was shorter there is NaN.
            arrays[name] = np.full((len(self.history), *shape), np.nan)
            for place, told in zip(arrays[name], self.history, strict=True):
                rows = getattr(told, name)
                place[: len(rows)] = rows
        arrays["terminated"] = np.array([told.terminated for told in self.history], bool)
        return arrays

    def _confidence(self, given: Confidence) -> Confidence:
        """Norm bounds that the problem knows take the place of unknown ones."""
        known: dict[str, Any] = {}
        if given.assumed_norms is None:
            known["assumed_norms"] = self.problem.assumed_norms
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

    def _checked(
        self,
        states: Any,
        actions: Any,
        rewards: Any,
        outcomes: Any,
        terminated: bool,
        shorter: bool,
    ) -> Told:
        problem = self.problem
        H, m, q = problem.horizon, problem.states.dimension, problem.actions.dimension
        if shorter and 1 <= np.size(rewards) <= H:
            H = np.size(rewards)
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
        return Told(**arrays, terminated=bool(terminated))


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
