"""What ``print(agent)`` and results say: kernels with the names of coordinates, noise, planner."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmdp.learners import Learner
from kernelmdp.mdp import Noise, Problem

#: A row of a summary: its label and its text.
Row = tuple[str, str]
#: A kernel in the text of an expression, with the coordinates that it is restricted to.
KERNEL = re.compile(r"(\w+)\(([^()]*)\)(?:\[([\d, :]+)\])?")
#: A number with more digits than readers need.
LONG_NUMBER = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?")
#: A list of numbers, such as lengthscales.
LIST = re.compile(r"\[([^\]]*)\]")


def coordinate_names(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the coordinates of states and of actions.

    Args:
        problem: The problem.

    Returns:
        The names of the coordinates of a state, and those of an action.

    >>> import kernelmdp as km
    >>> coordinate_names(km.make("rkhs-2d").problem)
    (('state[0]', 'state[1]'), ('action',))
    """
    m, q = problem.states.dimension, problem.actions.dimension
    return problem.coordinates or _numbered("state", m), _numbered("action", q)


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}[{j}]" for j in range(count))


def kernel_text(kernel: object, names: Sequence[str]) -> str:
    """Write a kernel with three digits, and with the names of coordinates.

    Args:
        kernel: The kernel on points z = (s, a).
        names: The names of the coordinates of z.

    Returns:
        The text. Lengthscales stand beside their coordinates.

    >>> import kernelmdp as km
    >>> kernel = km.kernel("2.0 * se([0.51234, 3.0])[0, 2] * linear[1]")
    >>> kernel_text(kernel, ("angle", "speed", "torque"))
    '2 * se(angle: 0.512, torque: 3) * linear[speed]'
    """
    text = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.3g}", str(kernel))

    def named(match: re.Match[str]) -> str:
        kind, arguments, given = match.groups()
        chosen = _names_of(given, names)
        values = LIST.search(arguments)
        parts = values[1].split(", ") if values else []
        if len(parts) == len(chosen) and values is not None:
            pairs = ", ".join(f"{n}: {v}" for n, v in zip(chosen, parts, strict=True))
            return f"{kind}({arguments.replace(values[0], pairs)})"
        return f"{kind}({arguments})" + (f"[{', '.join(chosen)}]" if given else "")

    text = KERNEL.sub(named, text)
    # What has no arguments, such as ``linear``, has no brackets.
    bare = re.compile(r"\b(linear|quadratic|onehot|constant)\[([\d, :]+)\]")
    return bare.sub(lambda match: f"{match[1]}[{', '.join(_names_of(match[2], names))}]", text)


def _names_of(columns: str | None, names: Sequence[str]) -> list[str]:
    """The names of coordinates such as "0, 2" or "1:3"; all of them if there are no numbers."""
    if columns is None:
        return list(names)
    chosen: list[str] = []
    for part in columns.split(","):
        low, colon, high = part.strip().partition(":")
        numbers = range(int(low or 0), int(high or len(names))) if colon else [int(low)]
        chosen += [names[number] for number in numbers]
    return chosen


def model_rows(learner: Learner, state: Any, problem: Problem) -> list[Row]:
    """Describe what was learned: kernels and noise.

    Args:
        learner: The learner.
        state: Its state.
        problem: The problem.

    Returns:
        The rows. They are empty if nothing can be said before the first data.
    """
    states, actions = coordinate_names(problem)
    beliefs, rows = learner.beliefs(state), list[Row]()
    # A straight line that explains a motion is its prior mean. The kernel then has what is left.
    trend = getattr(state, "trend", np.zeros((1, len(states))))
    lines = [name for name, slopes in zip(states, trend.T, strict=True) if slopes.any()]
    for about, posterior in {} if beliefs is None else beliefs.learned.items():
        kernels = getattr(posterior.kernel, "kernels", (posterior.kernel,))
        labels = states if len(kernels) == len(states) else _numbered("output", len(kernels))
        for label, kernel in zip(labels, kernels, strict=True):
            of = label if len(kernels) > 1 else f"the {about}"
            line = "a line + " if about == "transition" and label in lines else ""
            rows.append((f"kernel of {of}", line + kernel_text(kernel, [*states, *actions])))
    mdp = learner.mean(state)
    # Fitted noise where there is some, else what the problem says.
    reward, transition = getattr(state, "noises", (mdp.reward_noise, mdp.transition_noise))
    rewards = noise_text(reward, ("reward",))
    return [*rows, ("noise", f"{rewards}; {noise_text(transition, states)}")]


def noise_text(noise: Noise, names: Sequence[str]) -> str:
    """Write the standard deviations of noise.

    Args:
        noise: The law.
        names: The names of the coordinates.

    Returns:
        The text.

    >>> from kernelmdp.mdp import Gaussian
    >>> noise_text(Gaussian((0.1, 0.25)), ("angle", "speed"))
    'angle 0.1, speed 0.25'
    """
    if noise.categorical:
        return "next states are drawn from a table"
    sizes = noise.standard_deviations(len(names))
    return ", ".join(f"{name} {size:.3g}" for name, size in zip(names, sizes, strict=True))


def agent_rows(agent: Any) -> list[Row]:
    """Describe an agent: task, episodes, returns, planner, kernels, noise, coverage.

    Args:
        agent: The agent.

    Returns:
        The rows.
    """
    problem, history = agent.problem, agent.history
    states, actions = coordinate_names(problem)
    spaces = f"states {', '.join(states)}; actions {', '.join(actions)}"
    steps = sum(len(episode) for episode in history)
    rows = [
        ("task", f"{problem.name}: {spaces}; H = {problem.horizon}"),
        ("learned from", f"{agent.episode} episodes, {steps} steps"),
    ]
    if history:
        totals = [float(episode.total) for episode in history]
        best = max(range(len(totals)), key=totals.__getitem__)
        rows.append(("returns", returns_text(totals[-1], totals[best], best + 1)))
    if agent.best is not None:
        rows.append(("best evaluation", repr(agent.best)))
    rows.append(("planner", type(agent.planner).__name__))
    if history or not agent.learner.needs_data:
        rows += model_rows(agent.learner, agent.state, problem)
    if problem.constraints:
        rows.append(("constraints", ", ".join(each.name for each in problem.constraints)))
        rows.append(("safety", str(agent.safety)))
    return [*rows, ("theory", str(agent.coverage))]


def returns_text(last: float, best: float, episode: int) -> str:
    """Write the last return and the best one.

    Args:
        last: The last return.
        best: The best return.
        episode: The number of its episode.

    Returns:
        The text.

    >>> returns_text(1.25, 2.0, 7)
    'last 1.25, best 2 in episode 7'
    """
    return f"last {last:.4g}, best {best:.4g} in episode {episode}"


def summary_text(title: str, rows: Sequence[Row]) -> str:
    """Write a summary, one line for each row.

    Args:
        title: The first line.
        rows: The rows.

    Returns:
        The text.

    >>> print(summary_text("PSRL", [("task", "heater"), ("planner", "GridPlanner")]))
    PSRL
      task     heater
      planner  GridPlanner
    """
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join([title, *(f"  {label:<{width}}  {text}" for label, text in rows)])
