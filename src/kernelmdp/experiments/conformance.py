"""Check an agent against the promises that every agent must keep.

Call ``report = check_agent(lambda task, seed: MyAgent(task, seed=seed))``. It plays a few episodes
of a small problem, and raises ``ConformanceError`` at the first promise that is broken. Runs that
must be equal are compared bit for bit.
"""

import contextlib
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.conformance import ConformanceReport
from kernelmdp.domains import Domain
from kernelmdp.envs import Environment, make
from kernelmdp.errors import ArgumentError, ConformanceError, KernelMDPError
from kernelmdp.experiments.results import Table
from kernelmdp.mdp import play

MakeAgent = Callable[[Any, int], Agent]

#: Episodes of each run. More of them make the check slower. Half are played before saving.
EPISODES = 4
#: Episodes in which programs may still be compiled. Later episodes must reuse them.
WARMUP_EPISODES = 2
#: States at which policies are compared. More of them make the check slower.
PROBE_STATES = 8
#: The event that JAX reports whenever it traces a Python function.
TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"


def check_agent(make_agent: MakeAgent, *, task: Environment | None = None) -> ConformanceReport:
    """Check an agent against all promises.

    Args:
        make_agent: A function ``make_agent(task, seed)`` that makes a new agent.
        task: The environment. It should be small, because about twenty episodes are played. None
            means "rkhs" with one state coordinate and horizon 3.

    Returns:
        The promises that the agent keeps, and those that could not be checked.

    Raises:
        ConformanceError: If the agent breaks a promise.

    >>> import kernelmdp as km
    >>> class Idle(km.Random):
    ...     def learn(self, episodes, *, progress=True):
    ...         return km.experiments.Result(
    ...             "river", "idle", self.coverage, km.experiments.Table([]))
    >>> try:
    ...     check_agent(lambda task, seed: Idle(task, seed=seed), task=km.make("riverswim"))
    ... except km.errors.ConformanceError as error:
    ...     print(error.promise)
    learn gives a table of one row an episode, with finite returns
    """
    task = make("rkhs", horizon=3) if task is None else task
    checked: list[str] = []
    skipped: list[str] = []
    # This check counts compilations. It comes first, before other agents compile the programs.
    reference = _check_learn(make_agent(task, 0), checked, skipped)
    _check_ask(make_agent(task, 0), checked)
    _check_seeds(make_agent, task, reference, checked)
    _check_predict(reference, checked)
    _check_bad_data(make_agent(task, 0), task, reference, checked)
    _check_saving(make_agent(task, 0), task, reference, checked)
    return ConformanceReport(reference.name, tuple(checked), tuple(skipped))


def _check_learn(agent: Agent, checked: list[str], skipped: list[str]) -> Agent:
    promise = "learn gives a table of one row an episode, with finite returns"
    tables = [agent.learn(WARMUP_EPISODES, progress=False).episodes]
    with _record_traces() as traced:
        tables.append(agent.learn(EPISODES - WARMUP_EPISODES, progress=False).episodes)
    lengths = (WARMUP_EPISODES, EPISODES - WARMUP_EPISODES)
    for table, length in zip(tables, lengths, strict=True):
        if not isinstance(table, Table) or len(table) != length:
            raise ConformanceError(promise, f"{table} from {length} episodes")
        if not np.isfinite(table["return"]).all():
            raise ConformanceError(promise, f"returns {table['return']}")
    numbers = np.concatenate([table["episode"] for table in tables])
    if not np.array_equal(numbers, 1 + np.arange(EPISODES)) or agent.episode != EPISODES:
        raise ConformanceError(promise, f"episodes {numbers}, and {agent.episode} counted")
    checked.append(promise)
    promise = "nothing is traced again after the second episode"
    if traced:
        names = ", ".join(sorted(set(traced)))
        raise ConformanceError(promise, f"{len(traced)} traces, of {names}")
    if _traces_are_reported():
        checked.append(promise)
    else:
        skipped.append(f"{promise}: this JAX does not report traces")
    return agent


def _check_seeds(make_agent: MakeAgent, task: Any, reference: Agent, checked: list[str]) -> None:
    promise = "the same seed gives the same run bit for bit"
    same_seed = make_agent(task, 0)
    same_seed.learn(EPISODES, progress=False)
    if (difference := _difference(reference, same_seed)) is not None:
        raise ConformanceError(promise, difference)
    checked.append(promise)
    promise = "another seed gives another run"
    other_seed = make_agent(task, 1)
    other_seed.learn(1, progress=False)
    if all(
        np.array_equal(getattr(reference.history[0], name), getattr(other_seed.history[0], name))
        for name in ("actions", "outcomes", "rewards")
    ):
        raise ConformanceError(promise, "the same first episode for seeds 0 and 1")
    checked.append(promise)


def _check_ask(agent: Agent, checked: list[str]) -> None:
    problem = agent.problem
    promise = "a policy's actions are of the right shape and inside the action space"
    policy = agent.ask()
    states = _probe_states(agent)
    for period in range(problem.horizon):
        for state in states:
            _require_action(promise, problem.actions, policy(state, period))
    checked.append(promise)
    promise = "a policy is a function of state and period"
    actions = _actions(agent, policy)
    if not np.array_equal(actions, _actions(agent, policy)):
        raise ConformanceError(promise, "two answers to the same question")
    checked.append(promise)
    promise = "ask answers the same until tell"
    for repeated in (agent.ask(), agent.ask(states[0])):
        if not np.array_equal(actions, _actions(agent, repeated)):
            raise ConformanceError(promise, "another policy when asked again")
    checked.append(promise)


def _check_predict(agent: Agent, checked: list[str]) -> None:
    promise = "predict gives an action inside the action space and changes no policy"
    before = _actions(agent, agent.ask())
    for period in range(agent.problem.horizon):
        for state in _probe_states(agent):
            _require_action(promise, agent.problem.actions, agent.predict(state, period))
    if not np.array_equal(before, _actions(agent, agent.ask())):
        raise ConformanceError(promise, "another policy after predict")
    checked.append(promise)


def _check_bad_data(agent: Agent, task: Environment, reference: Agent, checked: list[str]) -> None:
    promise = "tell refuses what is no episode with an error of ours"
    unchanged = "a refused tell changes nothing"
    agent.learn(1, progress=False)
    policy = agent.ask()
    actions = _actions(agent, policy)
    keys = jax.random.split(jax.random.key(0))
    episode = jax.tree.map(np.array, play(task.mdp, policy, task.draw_start(keys[0]), key=keys[1]))
    valid = [episode.states, episode.actions, episode.rewards, episode.outcomes]
    for defect, invalid in _invalid_episodes(agent.problem.actions, valid):
        try:
            agent.tell(*invalid)
        except ArgumentError:
            pass
        except Exception as error:
            observed = f"{type(error).__name__} ({error}) for {defect}"
            raise ConformanceError(promise, observed) from None
        else:
            raise ConformanceError(promise, f"no error for {defect}")
        if len(agent.history) != 1:
            raise ConformanceError(
                unchanged, f"{len(agent.history)} episodes instead of 1 after {defect}"
            )
        if not np.array_equal(actions, _actions(agent, agent.ask())):
            raise ConformanceError(unchanged, f"another policy after {defect}")
    checked.append(promise)
    # A change of hidden state shows in the episodes that follow.
    agent.learn(EPISODES - 1, progress=False)
    if (difference := _difference(reference, agent)) is not None:
        raise ConformanceError(unchanged, f"{difference}, after tells that were refused")
    checked.append(unchanged)


def _invalid_episodes(
    action_space: Domain, valid: list[np.ndarray]
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield invalid episodes, each with a description of its defect."""

    def with_array(place: int, array: np.ndarray) -> list[np.ndarray]:
        return [array if i == place else unchanged for i, unchanged in enumerate(valid)]

    for place, name in enumerate(("states", "actions", "rewards", "outcomes")):
        array = valid[place]
        yield f"{name} one step short", with_array(place, array[:-1])
        yield f"{name} one step long", with_array(place, np.concatenate([array, array[-1:]]))
        wide = array[:, None] if array.ndim == 1 else np.concatenate([array, array[:, :1]], axis=1)
        yield f"{name} with a coordinate too many", with_array(place, wide)
        for value in (np.nan, np.inf):
            not_finite = array.copy()
            not_finite[(-1,) * array.ndim] = value
            yield f"{name} with {value}", with_array(place, not_finite)
    low, high = action_space.bounds
    yield "an action outside the space", with_array(1, valid[1] + 2 * (high - low)[None, :])


def _check_saving(agent: Agent, task: Any, reference: Agent, checked: list[str]) -> None:
    promise = "a saved agent continues as if it had never stopped"
    agent.learn(EPISODES // 2, progress=False)
    settings = {name: getattr(agent.config, name) for name in agent.description()["given"]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "agent"
        try:
            agent.save(path)
            loaded = type(agent).load(path, task=task, **settings)
        except KernelMDPError as error:
            raise ConformanceError(promise, str(error)) from None
    loaded.learn(EPISODES - EPISODES // 2, progress=False)
    if (difference := _difference(reference, loaded)) is not None:
        raise ConformanceError(promise, difference)
    checked.append(promise)


def _probe_states(agent: Agent) -> np.ndarray:
    return agent.problem.states.spread_points(PROBE_STATES)[:PROBE_STATES]


def _actions(agent: Agent, policy: Any) -> np.ndarray:
    """Return a policy's actions at the probe states. Policies are compared by them."""
    return np.array(
        [
            [policy(state, period) for state in _probe_states(agent)]
            for period in range(agent.problem.horizon)
        ]
    )


def _require_action(promise: str, space: Domain, action: Any) -> None:
    array = np.asarray(action)
    if array.shape != (space.dimension,):
        raise ConformanceError(promise, f"an action of shape {array.shape}")
    try:
        space.require_inside("action", array[None, :])
    except ArgumentError as error:
        raise ConformanceError(promise, str(error)) from None


def _difference(reference: Agent, agent: Agent) -> str | None:
    """Return where two runs differ, or None if they are equal in all bits."""
    if reference.episode != agent.episode:
        return f"{reference.episode} and {agent.episode} episodes"
    episodes = zip(reference.history, agent.history, strict=True)
    for number, (expected, episode) in enumerate(episodes):
        for name in ("states", "actions", "rewards", "outcomes"):
            if not np.array_equal(getattr(expected, name), getattr(episode, name)):
                return f"other {name} in episode {number + 1}"
    if reference.totals != agent.totals:
        return f"sums {reference.totals} and {agent.totals}"
    if not np.array_equal(_actions(reference, reference.ask()), _actions(agent, agent.ask())):
        return "another policy for the next episode"
    return None


@contextlib.contextmanager
def _record_traces() -> Iterator[list[str]]:
    """Record the names of the functions that JAX traces inside the context."""
    traced: list[str] = []

    def listen(event: str, duration_secs: float, **details: str | int) -> None:
        if event == TRACE_EVENT:
            traced.append(str(details.get("fun_name", "a function")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield traced
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def _traces_are_reported() -> bool:
    """Return whether this JAX reports a new function. JAX may change the name of the event."""
    with _record_traces() as traced:
        jax.jit(lambda x: x + 1.0)(0.0)
    return bool(traced)
