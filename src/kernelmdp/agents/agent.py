"""What every agent does: plan an episode, be told what happened, learn, save and load.

An agent is a rule: a subclass says how beliefs become a plan, in ``plan``; nothing else differs.
All randomness comes from the seed and the number of the episode, so a resumed agent goes on as if
it had never stopped.
"""

import abc
from typing import Any, ClassVar

import jax
import numpy as np

from kernelmdp.agents.config import AgentConfig, signature_with
from kernelmdp.agents.saving import description_of, load_agent, save_agent
from kernelmdp.agents.system import as_system, checked_state
from kernelmdp.confidence import NO_THEOREM, Beliefs, ConfidenceSets, Coverage, as_confidence
from kernelmdp.errors import ArgumentError
from kernelmdp.learners import Learner, LearnerRequirements, as_learner
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.mdp.episode import checked_episode, checked_step
from kernelmdp.mdp.policy import Policy, UniformPolicy
from kernelmdp.numerics.checks import integer
from kernelmdp.planners import Plan, Planner, UnplannedPolicy, as_planner
from kernelmdp.types import ArrayLike, Key


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
    #: The class of its settings.
    Config: ClassVar[type[AgentConfig]] = AgentConfig
    #: Columns that ``diagnostics`` has, beside those of the learner.
    columns: ClassVar[tuple[str, ...]] = ()
    #: The learner that suits the agent; "auto" is the problem's own.
    default_learner: ClassVar[str] = "auto"
    #: Whether plans need standard deviations at all points of the planner.
    plans_with_deviations: ClassVar[bool] = False
    #: Whether beliefs change with what is seen.
    learns: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the settings in the signature of the class."""
        super().__init_subclass__(**keywords)
        cls.__signature__ = signature_with(Agent.__init__, cls.Config)  # type: ignore[attr-defined]

    def __init__(
        self,
        task: object,
        *,
        seed: int = 0,
        horizon: int | None = None,
        config: AgentConfig | None = None,
        **settings: Any,
    ) -> None:
        """Prepare to learn a task.

        Args:
            task: An environment, its name, a Gymnasium id or object, or a ``Problem`` when the loop
                is not ours.
            seed: Of all that is random.
            horizon: H, where the task does not know it.
            config: All settings in one object.
            **settings: Or single settings; ``Config`` documents each.
        """
        if config is not None and settings:
            raise ArgumentError("config", "None when settings are given", config)
        self.seed = integer("seed", seed, least=0)
        self.system = as_system(task, horizon=horizon)
        self.config = self.Config.of(settings if config is None else config)
        self.problem: Problem = self.config.problem_for(self.system)
        preset = "fitted" if self.problem.learner == "fitted" else "practical"
        confidence = as_confidence(self.config.confidence, default=preset)
        self.confidence = confidence.for_problem(self.problem)
        self.planner: Planner = as_planner(self.config.planner, self.problem)
        self.learner: Learner = self._make_learner()
        self.update = self.config.update
        blind = self.learner.needs_data and self.update == "episode"
        self.first_episode = self.config.first_episode or ("random" if blind else "prior")
        #: What the learner has learned.
        self.state: Any = self.learner.init(self.problem, key=jax.random.key(self.seed))
        #: Episodes that were learned from.
        self.history: list[Episode] = []
        #: Running sums that the loop keeps with the agent.
        self.totals: dict[str, float] = {}
        #: Confidence sets of the episode under way, of agents that have them.
        self.sets: ConfidenceSets | None = None
        self._steps_seen = 0  # of the episode under way, learned from already
        self._plan: Plan | None = None
        self._start: np.ndarray | None = None
        self._greedy: Plan | None = None

    # What subclasses say.

    @abc.abstractmethod
    def plan(self, *, key: Key) -> Plan:
        """The plan of the next episode, from what was learned."""

    def plan_greedy(self, *, key: Key) -> Plan:
        """The best plan for what is believed now, exploration aside."""
        return self.planner.plan(self.learner.mean(self.state), start=None, key=key)

    def requirements(self) -> LearnerRequirements:
        """What the agent and its planner ask of the learner."""
        return LearnerRequirements(
            query_points=self.planner.query_points,
            deviations=self.plans_with_deviations,
            uses_grid=self.planner.uses_grid,
        )

    def confidence_sets(self) -> ConfidenceSets | None:
        """The confidence sets of the coming episode, of an agent that has them."""
        return None

    @property
    def coverage(self) -> Coverage:
        """Which theorem covers this run, or why none does."""
        return NO_THEOREM

    def diagnostics(self) -> dict[str, float]:
        """Numbers of the last plan, one for each of ``columns``."""
        return {}

    def solve(self, mdp: MDP, *, key: Key) -> Plan:
        """A plan for an MDP or a family, for the start of the coming episode."""
        planner = self.planner.for_episode(self.episode + 1, horizon=self.problem.horizon)
        return planner.plan(mdp, start=self._start, key=key)

    @property
    def broken_assumptions(self) -> tuple[str, ...]:
        """Why no theorem is about the way this agent learns; empty where theorems are."""
        within = ("policies change within an episode",) if self.update == "step" else ()
        return (*self.learner.broken_assumptions, *within)

    # What users call.

    @property
    def task(self) -> object:
        """What the agent was made for."""
        return self.system.task

    @property
    def beliefs(self) -> Beliefs | None:
        """Gaussian process posteriors of what was learned, where the learner has them."""
        return self.learner.beliefs(self.state)

    @property
    def episode(self) -> int:
        """How many episodes were learned from."""
        return len(self.history)

    def ask(self, first_state: ArrayLike | None = None) -> Policy:
        """π_l, fixed for the coming episode: ``policy(state, period) -> action``.

        Asked again before ``tell`` it answers the same.
        """
        if first_state is not None:
            self._start = checked_state(self.problem, "first_state", first_state)
        if self._plan is None:
            key = episode_key(self.seed, self.episode)
            if self.first_episode == "random" and self.episode == 0:
                self._plan = UnplannedPolicy(policy=UniformPolicy(self.problem.actions, key))
            else:
                self._plan = jax.block_until_ready(self.plan(key=key))
        return self._plan.policy

    @property
    def planned(self) -> Plan | None:
        """The plan of the episode under way."""
        return self._plan

    def tell(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        outcomes: ArrayLike | None = None,
        *,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Learn from an episode. On an error nothing has changed.

        Args:
            states: (H + 1, m).
            actions: (H, q).
            rewards: (H,).
            outcomes: Next states before they were brought into the state space, (H, m), where
                known. Without them they are taken from the states, unwrapped along periodic axes;
                at the border of a box that biases what is learned.
            terminated: Whether the system itself ended the episode, which may then be shorter.
            truncated: Whether the episode was cut off, and may be shorter.
        """
        data = (states, actions, rewards, outcomes)
        episode = checked_episode(
            *data, spaces=self.problem, terminated=terminated, truncated=truncated
        )
        if self.update == "step":
            # Step by step even when told at once: so a loaded agent comes to the same kernels.
            state = self.state
            for step in range(self._steps_seen, len(episode)):
                state = self._updated(state, episode.step(step))
            self.state = state
        else:
            self.state = self._updated(self.state, episode)
        self.history.append(episode)
        self._steps_seen = 0
        self._plan = self._greedy = self._start = None

    def replay(self, episode: Episode) -> None:
        """Be told an episode again, as another agent was told it."""
        data = (episode.states, episode.actions, episode.rewards, episode.outcomes)
        whole = len(episode) == self.problem.horizon and not episode.terminated
        ending = {} if whole else {"terminated" if episode.terminated else "truncated": True}
        self.tell(*data, **ending)

    def observe_step(
        self,
        state: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        outcome: ArrayLike,
        *,
        terminated: bool = False,
    ) -> None:
        """Learn from one step of the episode under way (``update="step"``); ``tell`` all of them
        at its end.

        Args:
            state: The state before, (m,).
            action: (q,).
            reward: One number.
            outcome: The next state before it was brought into the state space, (m,).
            terminated: Whether the system ended the episode.
        """
        if self.update != "step":
            raise ArgumentError("update", "'step' to learn within an episode", repr(self.update))
        before = checked_state(self.problem, "state", state)
        after = checked_state(self.problem, "outcome", outcome)
        data = (before, action, reward, after)
        episode = checked_step(*data, spaces=self.problem, terminated=terminated)
        self.state = self._updated(self.state, episode)
        self._steps_seen += 1
        self._plan = self._greedy = None

    def predict(self, observation: ArrayLike, period: int = 0) -> np.ndarray:
        """What the agent holds for the best action now, exploration aside."""
        seen = self.system.state_of(observation)
        state = checked_state(self.problem, "observation", seen)
        if not 0 <= period < self.problem.horizon:
            raise ArgumentError("period", f"0 to {self.problem.horizon - 1}", period)
        if self._greedy is None:
            self._greedy = self.plan_greedy(key=episode_key(self.seed, self.episode))
        return self._greedy.policy(state, period)

    def learn(self, episodes: int, *, progress: bool = True) -> Any:
        """Play and learn from that many more episodes of the task.

        Args:
            episodes: How many.
            progress: Whether to show a line of progress in a terminal.

        Returns:
            A ``Result``: a table with a row for each episode, and what the theory says of the run.
        """
        episodes = integer("episodes", episodes, least=1)
        return self.system.learn(self, episodes=episodes, progress=progress)

    def save(self, path: object) -> None:
        """Write the agent to a file: arrays and JSON, nothing that could run."""
        save_agent(self, path)

    def description(self) -> dict[str, Any]:
        """How the agent was made, and for which problem, in text and numbers."""
        return description_of(self)

    @classmethod
    def load(
        cls, path: object, *, task: object = None, agent: "type[Agent] | None" = None, **given: Any
    ) -> "Agent":
        """An agent as it was saved.

        Args:
            path: The file.
            task: Needed when the agent was made for an object rather than a name.
            agent: The class of the agent, needed when it is not a registered one.
            **given: Settings that a file cannot hold, such as a reward function, a kernel without
                a text, or a planner of your own class. An error names what is missing.

        Returns:
            The agent, which goes on as if it had never stopped.

        Raises:
            CheckpointError: If the file is no saved agent, or one of another problem.
            ArgumentError: If something has to be given.

        >>> import os, tempfile, kernelmdp as km
        >>> agent = km.GPUCRL("riverswim", seed=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     agent.save(os.path.join(folder, "agent.kmdp"))
        ...     km.GPUCRL.load(os.path.join(folder, "agent.kmdp")).seed
        3
        """
        return load_agent(cls, path, task=task, agent=agent, given=given)

    # Within.

    def _updated(self, state: Any, episode: Episode) -> Any:
        if not self.learns:
            return state
        return self.learner.update(state, episode, key=episode_key(self.seed, self.episode))

    def _make_learner(self) -> Learner:
        wanted = self.config.learner_for(self.problem)
        wanted = self.default_learner if wanted == "auto" else wanted
        return as_learner(wanted, self.problem, self.requirements())


@jax.jit
def episode_key(seed: Any, episode: Any) -> Key:
    """All that is random in an episode depends on this alone.

    >>> bool((episode_key(0, 3) == jax.random.fold_in(jax.random.key(0), 3)).all())
    True
    """
    return jax.random.fold_in(jax.random.key(seed), episode)


def numpy_generator(key: Key) -> np.random.Generator:
    """NumPy's randomness from a key of JAX.

    >>> numpy_generator(jax.random.key(0)).uniform() < 1
    True
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
