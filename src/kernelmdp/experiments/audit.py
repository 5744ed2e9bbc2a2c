"""Did a stored run behave as the theory says? Every lemma, coverage and certificate, on its data.

Three kinds of checks. What is stored must be what the stored episodes give when the agent lives
them again. Lemmas must hold on the data, with the stored numbers on one side. And where a theorem
covers the run and the truth is known, sets must hold the truth and certificates the regret.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from kernelmdp.confidence import Coverage
from kernelmdp.experiments.coverage_checks import coverage_checks
from kernelmdp.experiments.data_lemmas import data_lemmas
from kernelmdp.experiments.replay import ReplayedRun, StoredRun, read_run, replay, sampled
from kernelmdp.theory.certificates import RegretCertificate
from kernelmdp.theory.check import Check, at_most, not_applicable
from kernelmdp.theory.value_lemmas import martingale, value_difference

#: Relative difference at which a stored number is not the recomputed one: other machines round
#: otherwise.
AGREEMENT = 1e-6
#: Share of steps at which rounding may choose between actions that are equally good.
TIED = 0.01
#: Nodes of a grid on which the value difference identity is checked.
NODES = 400

#: Stored columns, and the statement each of them is one side of.
COMPARED = {
    "return": "return is the sum of rewards",
    "beta_reward": "radius β of the reward's set",
    "beta_transition": "radius β of the transition's set",
    "gain_reward": "(a) chain rule, replayed: gain of the reward",
    "gain_transition": "(a) chain rule, replayed: gain of the transition",
    "width_reward": "(e) stale deviations, replayed: reward",
    "width_transition": "(e) stale deviations, replayed: transition",
    "planned_value": "plan replay: planned value",
    "regret": "regret is a difference of values",
}


@dataclasses.dataclass(frozen=True)
class Audit:
    """What was checked, what the run's regret is certified to be, and what it was.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     audit(folder).episodes
    1
    """

    folder: pathlib.Path
    agent: str
    env: str
    coverage: Coverage
    episodes: int
    checks: tuple[Check, ...]
    certificates: tuple[RegretCertificate, ...]
    #: Of the episodes whose truth is known; NaN without.
    regret: float

    @property
    def failed(self) -> tuple[Check, ...]:
        """What the theory says cannot be."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def not_checked(self) -> tuple[Check, ...]:
        """What could not be checked; the note says why."""
        return tuple(check for check in self.checks if check.holds is None)


def audit(folder: Any) -> Audit:
    """Check a run's folder, as ``kmdp audit`` does.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     audit(folder).agent
    'random'
    """
    stored = read_run(folder)
    found = replay(stored)
    promised, certificates = coverage_checks(stored, found)
    checks = [
        *_stored(stored, found),
        *data_lemmas(stored, found),
        *_values(stored, found),
        not_applicable(
            "(k) posterior-sampling identity: ranks are uniform",
            "one run has one truth; it takes many, drawn from the prior",
        ),
        *promised,
    ]
    return Audit(
        pathlib.Path(folder),
        stored.config.agent,
        stored.config.env,
        stored.coverage,
        stored.episodes,
        tuple(checks),
        certificates,
        float(np.sum(stored.columns["regret"])),
    )


def _stored(stored: StoredRun, found: ReplayedRun) -> list[Check]:
    """What is stored against what the episodes give."""
    wrong = stored.coverage != found.coverage
    said = str(stored.coverage), str(found.coverage)
    note = f"stored {said[0]!r}, recomputed {said[1]!r}" if wrong else said[1]
    checks = [at_most("label: what theory says of the run", float(wrong), 0, note=note)]
    checks += [
        _agree(name, stored.columns[column], found.columns[column])
        for column, name in COMPARED.items()
        if column in found.columns
    ]
    chosen = zip(stored.history, found.planned, strict=True)
    steps = sum(len(told.actions) for told, planned in chosen if planned)
    name = "policy replay: stored actions are those of π_l"
    note = f"steps with another action, of {steps}{sampled(found)}"
    if steps:
        checks.append(at_most(name, found.other_actions, TIED * steps, note=note))
    else:
        checks.append(not_applicable(name, "the agent planned at every step"))
    regret = stored.columns["regret"]
    if np.isfinite(regret).all():
        checks.append(
            _agree("cumulative regret", stored.columns["cumulative_regret"], np.cumsum(regret))
        )
    return checks


def _agree(name: str, stored: np.ndarray, found: np.ndarray) -> Check:
    if np.isnan(found).all():
        return not_applicable(name, "the agent has no such number, or its truth is not known")
    if np.isnan(stored).all():
        return not_applicable(name, "the run did not store it")
    known = np.isfinite(found)  # not every episode may have been planned again
    size = 1 + np.abs(np.where(known, found, 0.0))
    apart = np.where(np.isfinite(stored), np.abs(stored - found) / size, np.inf)
    worst = int(np.argmax(np.where(known, apart, -1.0)))
    note = f"stored and recomputed, worst in episode {worst + 1}"
    if apart[worst] > AGREEMENT and found[worst] != 0:
        note += f": {stored[worst] / found[worst]:.4g} times"
    sides = float(stored[worst]), float(found[worst])
    return Check(name, *sides, bool(apart[worst] <= AGREEMENT), note)


def _values(stored: StoredRun, found: ReplayedRun) -> list[Check]:
    """(h) and (i), which need the truth and a plan on a grid."""
    names = ("(h) value difference identity", "(i) martingale differences within Azuma")
    environment, agent = found.environment, found.agent
    if environment is None:
        return [not_applicable(name, "the truth is not known") for name in names]
    if not found.differences:
        return [not_applicable(name, "no plan of several periods on a grid") for name in names]
    second = martingale(np.stack(found.differences), np.stack(found.ranges))
    why: str | None = None
    if environment.believed is not None:
        why = "the agent sees another MDP than the truth"
    elif len(environment.grid.nodes) > NODES:
        why = f"a grid of more than {NODES} states"
    elif agent.learner.beliefs(agent.state) is None:
        why = "the agent keeps no posteriors"
    if why is not None or found.policy is None:
        return [not_applicable(names[0], why or "no policy"), second]
    believed = agent.learner.mean(agent.state)
    start = stored.history[-1].states[0]
    first = value_difference(believed, environment.mdp, found.policy, environment.grid, start)
    return [first, second]
