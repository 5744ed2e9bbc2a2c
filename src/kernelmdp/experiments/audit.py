"""The audit of a stored run: does it agree with its own data and with the theory?

There are four kinds of checks:

- The agent replays the stored episodes. The recomputed numbers must equal the stored ones.
- The lemmas must hold on the data, with the stored numbers on one side.
- If a theorem covers the run and the true MDP is known, the confidence sets must contain the truth
  and the certificates must exceed the regret.
- If the agent keeps constraints, they must not be broken, and plans must not be riskier than said.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.agents.optimality import Certificate
from kernelmdp.confidence import Coverage
from kernelmdp.confidence.coverage import CheckedAssumption
from kernelmdp.experiments.data_lemmas import data_lemmas
from kernelmdp.experiments.guarantee_checks import guarantee_checks
from kernelmdp.experiments.replay import ReplayedRun, StoredRun, read_run, replanned_note, replay
from kernelmdp.experiments.safety_checks import safety_checks
from kernelmdp.experiments.stored_certificate import stored_certificate
from kernelmdp.theory.certificates import RegretCertificate
from kernelmdp.theory.check import Check, at_most, not_applicable
from kernelmdp.theory.value_lemmas import martingale, value_difference

#: Largest relative difference between a stored and a recomputed number. It allows for the rounding
#: of other machines.
STORED_TOLERANCE = 1e-6
#: Largest share of steps with another action. Rounding may choose between equally good actions.
TIED_SHARE = 0.01
#: Largest grid on which the value difference identity is checked. The check costs time and memory
#: that grow with the number of states.
MAX_STATES = 400

#: Stored columns that are compared with the replay, and the name of each check.
COLUMN_CHECKS = {
    "return": "return is the sum of rewards",
    "beta_reward": "radius β of the reward's set",
    "beta_transition": "radius β of the transition's set",
    "gain_reward": "(a) chain rule, replayed: gain of the reward",
    "gain_transition": "(a) chain rule, replayed: gain of the transition",
    "width_reward": "(e) stale deviations, replayed: reward",
    "width_transition": "(e) stale deviations, replayed: transition",
    "planned_value": "plan replay: planned value",
    "planned_risk": "plan replay: planned risk",
    "regret": "regret is a difference of values",
}


@dataclasses.dataclass(frozen=True)
class Audit:
    """The checks of a run, its regret, and the certified bounds of the regret.

    Attributes:
        folder: The run's folder.
        agent: The name of the agent.
        env: The name of the environment.
        coverage: Which theorem covers the run, or why none does.
        episodes: The number of episodes.
        checks: All checks. The note of each one says what was compared.
        assumptions: The assumptions of the theorem about the agent, checked on the whole run.
            Empty if no theorem is about it.
        certificates: Upper bounds of the regret from the run's own data.
        controller: How far from optimal the controller is that the run ended with; None if that is
            not known.
        regret: The cumulative regret; NaN if the optimal value is unknown.

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
    assumptions: tuple[CheckedAssumption, ...]
    certificates: tuple[RegretCertificate, ...]
    regret: float
    controller: Certificate | None = None

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold. The theory excludes them."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def not_checked(self) -> tuple[Check, ...]:
        """The checks that do not apply to this run. Their notes say why."""
        return tuple(check for check in self.checks if check.holds is None)


def audit(folder: Any) -> Audit:
    """Check the run in a folder, as ``kmdp audit`` does.

    Args:
        folder: The run's folder.

    Returns:
        All checks and certificates.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     audit(folder).agent
    'random'
    """
    stored = read_run(folder)
    replayed = replay(stored)
    theorem_checks, certificates = guarantee_checks(stored, replayed)
    checks = [
        *_replay_checks(stored, replayed),
        *data_lemmas(stored, replayed),
        *_value_checks(stored, replayed),
        not_applicable(
            "(k) posterior-sampling identity: ranks are uniform",
            "one run has one truth; it takes many, drawn from the prior",
        ),
        *theorem_checks,
        *safety_checks(stored, replayed),
    ]
    return Audit(
        pathlib.Path(folder),
        stored.config.agent,
        stored.config.env,
        stored.coverage,
        stored.episodes,
        tuple(checks),
        _assumptions(replayed.agent),
        certificates,
        float(np.sum(stored.columns["regret"])),
        stored_certificate(stored, replayed),
    )


def _assumptions(agent: Agent) -> tuple[CheckedAssumption, ...]:
    if agent.theorem is None:
        return ()
    return agent.theorem.coverage(agent.evidence, "regret").assumptions


def _replay_checks(stored: StoredRun, replayed: ReplayedRun) -> list[Check]:
    """Compare what is stored with what the replay computed."""
    differs = stored.coverage != replayed.coverage
    labels = str(stored.coverage), str(replayed.coverage)
    note = f"stored {labels[0]!r}, recomputed {labels[1]!r}" if differs else labels[1]
    checks = [at_most("label: what theory says of the run", float(differs), 0, note=note)]
    checks += [
        _agreement(name, stored.columns[column], replayed.columns[column])
        for column, name in COLUMN_CHECKS.items()
        if column in replayed.columns
    ]
    episodes = zip(stored.history, replayed.planned, strict=True)
    steps = sum(len(episode.actions) for episode, planned in episodes if planned)
    name = "policy replay: stored actions are those of π_l"
    note = f"steps with another action, of {steps}{replanned_note(replayed)}"
    if steps:
        checks.append(at_most(name, replayed.other_actions, TIED_SHARE * steps, note=note))
    else:
        checks.append(not_applicable(name, "the agent planned at every step"))
    regret = stored.columns["regret"]
    if np.isfinite(regret).all():
        checks.append(
            _agreement("cumulative regret", stored.columns["cumulative_regret"], np.cumsum(regret))
        )
    return checks


def _agreement(name: str, stored: np.ndarray, recomputed: np.ndarray) -> Check:
    """Compare a stored column with a recomputed one, at the episode where they differ most."""
    if np.isnan(recomputed).all():
        return not_applicable(name, "the agent has no such number, or its truth is not known")
    if np.isnan(stored).all():
        return not_applicable(name, "the run did not store it")
    known = np.isfinite(recomputed)  # A long replay plans only some episodes again.
    scale = 1 + np.abs(np.where(known, recomputed, 0.0))
    differences = np.where(np.isfinite(stored), np.abs(stored - recomputed) / scale, np.inf)
    worst = int(np.argmax(np.where(known, differences, -1.0)))
    note = f"stored and recomputed, worst in episode {worst + 1}"
    if differences[worst] > STORED_TOLERANCE and recomputed[worst] != 0:
        note += f": {stored[worst] / recomputed[worst]:.4g} times"
    sides = float(stored[worst]), float(recomputed[worst])
    return Check(name, *sides, bool(differences[worst] <= STORED_TOLERANCE), note)


def _value_checks(stored: StoredRun, replayed: ReplayedRun) -> list[Check]:
    """Check lemmas (h) and (i), which need the true MDP and a plan on a grid."""
    names = ("(h) value difference identity", "(i) martingale differences within Azuma")
    environment, agent = replayed.environment, replayed.agent
    if environment is None:
        return [not_applicable(name, "the truth is not known") for name in names]
    if not replayed.differences:
        return [not_applicable(name, "no plan of several periods on a grid") for name in names]
    martingale_check = martingale(np.stack(replayed.differences), np.stack(replayed.ranges))
    reason: str | None = None
    if environment.approximate_mdp is not None:
        reason = "the agent sees another MDP than the truth"
    elif len(environment.grid.nodes) > MAX_STATES:
        reason = f"a grid of more than {MAX_STATES} states"
    elif agent.learner.beliefs(agent.state) is None:
        reason = "the agent keeps no posteriors"
    if reason is not None or replayed.policy is None:
        return [not_applicable(names[0], reason or "no policy"), martingale_check]
    mean_mdp = agent.learner.mean(agent.state)
    start = stored.history[-1].states[0]
    identity_check = value_difference(
        mean_mdp, environment.mdp, replayed.policy, environment.grid, start
    )
    return [identity_check, martingale_check]
