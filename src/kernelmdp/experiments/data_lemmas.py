"""Lemmas (a) to (g), (l) and (m) on the points that a stored run visited."""

import dataclasses
import math
from typing import Any

import numpy as np

from kernelmdp.experiments.replay import ReplayedRun, StoredRun
from kernelmdp.gp import Posterior
from kernelmdp.kernels import Coregionalised, Index, Kernel
from kernelmdp.theory.check import Check, not_applicable
from kernelmdp.theory.variance_history import VarianceHistory, variance_history
from kernelmdp.theory.variance_lemmas import (
    chain_rule,
    determinant_of_a_sum,
    deviation_smoothness,
    variance_lemmas,
)

#: Rows of the dense matrices that are factorised; later episodes of a longer run are left out.
ROWS = 1500
#: Points for (l) and (m).
PAIRS, MATRIX = 200, 200
#: How far deviations of a compiled kernel may be from those of the kernel, summed over a run.
COMPILED = 0.1


def data_lemmas(stored: StoredRun, found: ReplayedRun) -> list[Check]:
    """Every lemma that data alone can answer; dense, so independent of the agent's posteriors."""
    agent = found.agent
    beliefs = agent.learner.beliefs(agent.state)
    why: str | None = None
    if beliefs is None or not agent.learns:
        why = "the agent learns no posteriors"
    elif agent.learner.broken_assumptions:
        why = f"{agent.learner.broken_assumptions[0]}: no lemma is about such posteriors"
    elif len({len(z) for z in stored.points}) > 1:
        why = "episodes are of different lengths"
    if why is not None:
        return [not_applicable("(a) to (g), (l), (m): variances and gains", why)]
    assert beliefs is not None
    checks: list[Check] = []
    posteriors = beliefs.learned
    for what in ("reward", "transition"):
        if what not in posteriors:
            checks.append(not_applicable(f"(a) to (g): {what}", "it is known, not learned"))
        else:
            checks += _of_posterior(what, posteriors[what], stored, found)
    learned = list(posteriors.values())
    points = np.concatenate(stored.points)[:MATRIX]
    matrices = [np.asarray(_each(p)(points)) / float(_noise(p).min()) for p in learned]
    checks.append(determinant_of_a_sum(matrices[0], matrices[-1]))
    return checks


def _of_posterior(
    what: str, posterior: Posterior, stored: StoredRun, found: ReplayedRun
) -> list[Check]:
    points, outputs = np.stack(stored.points), posterior.outputs
    episodes = max(1, min(len(points), ROWS // (points.shape[1] * outputs)))
    points = points[:episodes]
    noise = _noise(posterior)
    seen = variance_history(posterior.kernel, points, noise_variance=noise)
    # ln|I + K/λ| − ln|I + K_r/λ| ≤ tr(K − K_r)/λ for the compiled k_r ⪯ k.
    rows = np.prod(points.shape[:2]) * outputs
    missed = posterior.error * float(rows) / (2 * float(noise.min()))
    gains = stored.columns[f"gain_{what}"][:episodes]
    checks = [chain_rule(seen, gains, tolerance=missed), *variance_lemmas(seen)]
    checks.append(_claimed_deviations(what, posterior, seen, stored, found))
    visited = points.reshape(-1, points.shape[2])[-PAIRS:]
    spread = np.asarray(found.agent.problem.points.spread(len(visited)))[: len(visited)]
    smooth = deviation_smoothness(
        posterior,
        _each(posterior),
        visited[: len(spread)],
        spread,
        tolerance=2 * math.sqrt(posterior.error),
    )
    checks.append(smooth)
    few = "" if episodes == len(stored.points) else f"first {episodes} episodes; "
    return [
        dataclasses.replace(check, name=f"{check.name}, {what}", note=few + check.note)
        for check in checks
    ]


def _claimed_deviations(
    what: str, posterior: Posterior, seen: VarianceHistory, stored: StoredRun, found: ReplayedRun
) -> Check:
    """Left side of (e): stored widths against β times deviations of the dense factor."""
    name = "(e) stale deviations, from a dense factor"
    widths = stored.columns[f"width_{what}"][: seen.episodes]
    if not np.isfinite(widths).all():
        return not_applicable(name, "the run did not store its widths")
    if len(seen.noise) > 1 or seen.block != seen.horizon:
        return not_applicable(name, "outputs are not alike")
    sums = np.sum(np.sqrt(seen.stale[0]), axis=1)
    joint = math.sqrt(seen.outputs)
    if found.sets is None:
        expected = sums * (joint if what == "transition" else 1.0)
    else:
        plausible = found.sets.plausible
        if plausible.net is not None:
            return not_applicable(name, "the sets are those of a net")
        factor = joint if what == "transition" and plausible.shape == "trace" else 1.0
        slack = float(getattr(plausible, f"slack_{what}"))
        beta = stored.columns[f"beta_{what}"][: seen.episodes]
        expected = beta * factor * sums + slack * seen.horizon
    left, right = float(np.sum(widths)), float(np.sum(expected))
    share = COMPILED if posterior.error > 0 else 1e-6
    holds = abs(left - right) <= share * right + 1e-9
    note = f"sums over the run: stored, and with dense deviations; within {share:g}"
    if not holds and right > 0:
        note += f"; stored is {left / right:.3g} times"
    return Check(name, left, right, bool(holds), note)


def _noise(posterior: Posterior) -> np.ndarray:
    return np.asarray(posterior.noise_variance, float) + posterior.jitter


def _each(posterior: Posterior) -> Any:
    """The kernel of each output on points: of outputs that differ the first."""
    kernel = posterior.kernel
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Coregionalised) and not isinstance(kernel.index, Index):
        # Output 0 of k ⊗ B has the kernel B_00 k.
        return float(np.sum(np.asarray(kernel.index.root)[0] ** 2)) * kernel.kernel
    return kernel.parts()[0]
