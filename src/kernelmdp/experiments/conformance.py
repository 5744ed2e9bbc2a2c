"""What every agent promises, checked: for agents of ours and for those of others.

    report = check_agent(lambda task, seed: MyAgent(task, seed=seed))

plays a few episodes of a small problem and raises ``ConformanceError`` at the first promise that
is broken. A promise about numbers is about all their bits.
"""

import contextlib
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.conformance import Conformance
from kernelmdp.domains import Domain
from kernelmdp.envs import Environment, make
from kernelmdp.errors import ArgumentError, ConformanceError, KernelMDPError
from kernelmdp.experiments.results import Table
from kernelmdp.mdp import play

MakeAgent = Callable[[Any, int], Agent]

#: Episodes of a run; programs may be compiled in the first two, and half are played before saving.
EPISODES, WARM = 4, 2
#: States at which policies are compared.
PROBES = 8
#: What JAX reports whenever a Python function is traced.
TRACE = "/jax/core/compile/jaxpr_trace_duration"


def check_agent(make_agent: MakeAgent, *, task: Environment | None = None) -> Conformance:
    """Check an agent against all that is promised of agents.

    ``make_agent(task, seed)`` makes a new agent. The task is a small environment of one state
    coordinate unless given. A given one should be small too: about twenty episodes are played.

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
    # First, while what the agent runs has not been compiled for other agents of this check.
    whole = _learns(make_agent(task, 0), checked, skipped)
    _asked(make_agent(task, 0), checked)
    _same_seed(make_agent, task, whole, checked)
    _predicts(whole, checked)
    _refuses(make_agent(task, 0), task, whole, checked)
    _saved(make_agent(task, 0), task, whole, checked)
    return Conformance(whole.name, tuple(checked), tuple(skipped))


def _learns(agent: Agent, checked: list[str], skipped: list[str]) -> Agent:
    promise = "learn gives a table of one row an episode, with finite returns"
    tables = [agent.learn(WARM, progress=False).episodes]
    with _traces() as traced:
        tables.append(agent.learn(EPISODES - WARM, progress=False).episodes)
    for table, length in zip(tables, (WARM, EPISODES - WARM), strict=True):
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
    if _traces_are_seen():
        checked.append(promise)
    else:
        skipped.append(f"{promise}: this JAX does not report traces")
    return agent


def _same_seed(make_agent: MakeAgent, task: Any, whole: Agent, checked: list[str]) -> None:
    promise = "the same seed gives the same run bit for bit"
    twin = make_agent(task, 0)
    twin.learn(EPISODES, progress=False)
    if (wrong := _difference(whole, twin)) is not None:
        raise ConformanceError(promise, wrong)
    checked.append(promise)
    promise = "another seed gives another run"
    other = make_agent(task, 1)
    other.learn(1, progress=False)
    if all(
        np.array_equal(getattr(whole.history[0], name), getattr(other.history[0], name))
        for name in ("actions", "outcomes", "rewards")
    ):
        raise ConformanceError(promise, "the same first episode for seeds 0 and 1")
    checked.append(promise)


def _asked(agent: Agent, checked: list[str]) -> None:
    problem = agent.problem
    promise = "a policy's actions are of the right shape and inside the action space"
    policy = agent.ask()
    states = _probes(agent)
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
    for again in (agent.ask(), agent.ask(states[0])):
        if not np.array_equal(actions, _actions(agent, again)):
            raise ConformanceError(promise, "another policy when asked again")
    checked.append(promise)


def _predicts(agent: Agent, checked: list[str]) -> None:
    promise = "predict gives an action inside the action space and changes no policy"
    before = _actions(agent, agent.ask())
    for period in range(agent.problem.horizon):
        for state in _probes(agent):
            _require_action(promise, agent.problem.actions, agent.predict(state, period))
    if not np.array_equal(before, _actions(agent, agent.ask())):
        raise ConformanceError(promise, "another policy after predict")
    checked.append(promise)


def _refuses(agent: Agent, task: Environment, whole: Agent, checked: list[str]) -> None:
    promise = "tell refuses what is no episode with an error of ours"
    unchanged = "a refused tell changes nothing"
    agent.learn(1, progress=False)
    policy = agent.ask()
    actions = _actions(agent, policy)
    keys = jax.random.split(jax.random.key(0))
    episode = jax.tree.map(np.array, play(task.mdp, policy, task.starts(keys[0]), key=keys[1]))
    good = [episode.states, episode.actions, episode.rewards, episode.outcomes]
    for what, bad in _spoilt(agent.problem.actions, good):
        try:
            agent.tell(*bad)
        except ArgumentError:
            pass
        except Exception as error:
            found = f"{type(error).__name__} ({error}) for {what}"
            raise ConformanceError(promise, found) from None
        else:
            raise ConformanceError(promise, f"no error for {what}")
        if agent.episode != 1:
            raise ConformanceError(unchanged, f"{agent.episode} episodes instead of 1 after {what}")
        if not np.array_equal(actions, _actions(agent, agent.ask())):
            raise ConformanceError(unchanged, f"another policy after {what}")
    checked.append(promise)
    # What the agent holds but does not show, shows in how it goes on.
    agent.learn(EPISODES - 1, progress=False)
    if (wrong := _difference(whole, agent)) is not None:
        raise ConformanceError(unchanged, f"{wrong}, after tells that were refused")
    checked.append(unchanged)


def _spoilt(space: Domain, good: list[np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Episodes that are none, and what is wrong with them."""

    def with_part(place: int, part: np.ndarray) -> list[np.ndarray]:
        return [part if i == place else other for i, other in enumerate(good)]

    for place, name in enumerate(("states", "actions", "rewards", "outcomes")):
        part = good[place]
        yield f"{name} one step short", with_part(place, part[:-1])
        yield f"{name} one step long", with_part(place, np.concatenate([part, part[-1:]]))
        wide = part[:, None] if part.ndim == 1 else np.concatenate([part, part[:, :1]], axis=1)
        yield f"{name} with a coordinate too many", with_part(place, wide)
        for value in (np.nan, np.inf):
            holed = part.copy()
            holed[(-1,) * part.ndim] = value
            yield f"{name} with {value}", with_part(place, holed)
    low, high = space.bounds
    yield "an action outside the space", with_part(1, good[1] + 2 * (high - low)[None, :])


def _saved(agent: Agent, task: Any, whole: Agent, checked: list[str]) -> None:
    promise = "a saved agent goes on as if it had never stopped"
    agent.learn(EPISODES // 2, progress=False)
    given = {name: getattr(agent.config, name) for name in agent.description()["given"]}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "agent"
        try:
            agent.save(place)
            loaded = type(agent).load(place, task=task, **given)
        except KernelMDPError as error:
            raise ConformanceError(promise, str(error)) from None
    loaded.learn(EPISODES - EPISODES // 2, progress=False)
    if (wrong := _difference(whole, loaded)) is not None:
        raise ConformanceError(promise, wrong)
    checked.append(promise)


# Within.


def _probes(agent: Agent) -> np.ndarray:
    return agent.problem.states.spread(PROBES)[:PROBES]


def _actions(agent: Agent, policy: Any) -> np.ndarray:
    """A policy's answers, by which policies are compared."""
    return np.array(
        [[policy(s, period) for s in _probes(agent)] for period in range(agent.problem.horizon)]
    )


def _require_action(promise: str, space: Domain, action: Any) -> None:
    array = np.asarray(action)
    if array.shape != (space.dimension,):
        raise ConformanceError(promise, f"an action of shape {array.shape}")
    try:
        space.require_inside("action", array[None, :])
    except ArgumentError as error:
        raise ConformanceError(promise, str(error)) from None


def _difference(one: Agent, other: Agent) -> str | None:
    """Where two runs part, or None where they are the same in all bits."""
    if one.episode != other.episode:
        return f"{one.episode} and {other.episode} episodes"
    for number, (first, second) in enumerate(zip(one.history, other.history, strict=True)):
        for name in ("states", "actions", "rewards", "outcomes"):
            if not np.array_equal(getattr(first, name), getattr(second, name)):
                return f"other {name} in episode {number + 1}"
    if one.totals != other.totals:
        return f"sums {one.totals} and {other.totals}"
    if not np.array_equal(_actions(one, one.ask()), _actions(other, other.ask())):
        return "another policy for the next episode"
    return None


@contextlib.contextmanager
def _traces() -> Iterator[list[str]]:
    """Names of the functions that JAX traces meanwhile."""
    traced: list[str] = []

    def listen(event: str, duration_secs: float, **details: str | int) -> None:
        if event == TRACE:
            traced.append(str(details.get("fun_name", "a function")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield traced
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def _traces_are_seen() -> bool:
    """Whether a new function is noticed: the name of the event is JAX's to change."""
    with _traces() as traced:
        jax.jit(lambda x: x + 1.0)(0.0)
    return bool(traced)
