"""Agents by name, and from files."""

from typing import Any

import gymnasium

from kernelmdp.agents import checkpoint
from kernelmdp.agents.base import Agent, Told
from kernelmdp.agents.baselines import Greedy, Oracle, Random
from kernelmdp.agents.gp_ucrl import GPUCRL
from kernelmdp.agents.lqr import OFULQ, CertaintyEquivalence, LQRThompson
from kernelmdp.agents.planning import PLANNERS, planner_of
from kernelmdp.agents.problem import find_task, gymnasium_task, problem_of
from kernelmdp.agents.psrl import PSRL
from kernelmdp.agents.tabular import UCBVI, UCRL2, DirichletPSRL
from kernelmdp.confidence import Confidence
from kernelmdp.envs import make
from kernelmdp.errors import ArgumentError, CheckpointError

TABULAR = (DirichletPSRL, UCBVI, UCRL2)
LINEAR = (CertaintyEquivalence, OFULQ, LQRThompson)
AGENTS: dict[str, type[Agent]] = {
    kind.name: kind for kind in (GPUCRL, PSRL, Greedy, Random, Oracle, *TABULAR, *LINEAR)
}


def load(
    path: Any, *, task: Any = None, reward: Any = None, noise: Any = None, planner: Any = None
) -> Agent:
    """An agent as it was saved.

    ``task`` is needed when the agent was made for an object rather than a name; ``reward`` when
    its reward was a function of the user's, ``noise`` when its noise was given, ``planner`` when
    that was of a class of the user's own.

    >>> import os, tempfile
    >>> agent = GPUCRL("riverswim", seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(os.path.join(folder, "agent.kmdp"))
    ...     load(os.path.join(folder, "agent.kmdp")).seed
    3
    """
    description, arrays = checkpoint.read(path)
    try:
        kind, words = AGENTS[description["agent"]], dict(description["words"])
        spec, seed = description["task"], int(description["seed"])
        saved, cumulative = description["problem"], float(description["cumulative_regret"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: the description is incomplete ({error})") from None
    if task is None:
        if spec is None:
            raise ArgumentError("task", f"the task the agent was made for ({saved['name']})", None)
        # A checkpoint's horizon may be shorter than the environment's limit.
        task = (
            gymnasium_task(spec["id"], horizon=saved["horizon"]) if "id" in spec else make(**spec)
        )
    for name, given in (("reward", reward), ("noise", noise)):
        if given is not None:
            words[name] = given
        elif name == "reward" and words[name] == "a function":
            raise ArgumentError("reward", "the known reward function the agent was made with", None)
        elif name == "noise" and words[name] is not None:
            raise ArgumentError("noise", f"the noise the agent was made with, {words[name]}", None)
    try:
        words["confidence"] = Confidence(**words["confidence"])
        if planner is not None:
            words["planner"] = planner
        elif words["planner"] != "paper":
            if words["planner"]["kind"] not in PLANNERS:
                expected = f"the planner the agent was made with ({words['planner']['kind']})"
                raise ArgumentError("planner", expected, None)
            words["planner"] = planner_of(words["planner"])
    except (AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: the description is incomplete ({error})") from None
    # An environment of Gymnasium's does not always know its horizon.
    task = find_task(task, horizon=saved["horizon"] if isinstance(task, gymnasium.Env) else None)
    # Before the agent is made, which may fail for reasons that only follow from this one.
    own = ("reward", "reward_kernel", "transition_kernel", "noise", "kernel")
    here = problem_of(task, **{name: words.get(name) for name in own}).summary()
    wrong = [k for k in here if here[k] != saved.get(k)]
    if wrong:
        raise CheckpointError(
            f"{path}: saved for another problem: {wrong[0]} was {saved.get(wrong[0])!r}, "
            f"here it is {here[wrong[0]]!r}"
        )
    agent = kind(task, seed=seed, **words)
    if len({len(arrays[name]) for name in checkpoint.ARRAYS}) > 1:
        raise CheckpointError(f"{path}: arrays of different numbers of episodes")
    for told in Told.all_of(arrays):
        agent.relive(told)
    agent.cumulative_regret = cumulative
    return agent
