"""Lemmas (a) to (g), (l) and (m), checked on the points that a stored run visited."""

import dataclasses
import math
from typing import Any

import numpy as np

from kernelmdp.confidence import Plausible
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

#: Largest number of rows of the dense matrices that are factorised. The cost grows with its cube.
#: Later episodes of a longer run are left out.
MAX_ROWS = 1500
#: Points at which lemma (l) compares standard deviations. More of them make the check slower.
PAIRS = 200
#: Size of the matrices of lemma (m). Larger ones make the check slower.
MATRIX_SIZE = 200
#: How far standard deviations of a compiled kernel may be from those of the kernel. It is a share
#: of their sum over the run.
COMPILED_TOLERANCE = 0.1


def data_lemmas(stored: StoredRun, replayed: ReplayedRun) -> list[Check]:
    """Check every lemma that needs the visited points alone.

    The checks factorise dense matrices. They are independent of the agent's own posteriors.

    Args:
        stored: The run as its folder has it.
        replayed: The same run, replayed.

    Returns:
        The checks.
    """
    agent = replayed.agent
    beliefs = agent.learner.beliefs(agent.state)
    reason: str | None = None
    if beliefs is None or not agent.learns:
        reason = "the agent learns no posteriors"
    elif not agent.confidence.plans_in_sets:
        reason = "the columns are those of several kernels"
    elif agent.learner.broken_assumptions:
        reason = f"{agent.learner.broken_assumptions[0]}: no lemma is about such posteriors"
    elif len({len(z) for z in stored.points}) > 1:
        reason = "episodes are of different lengths"
    if reason is not None:
        return [not_applicable("(a) to (g), (l), (m): variances and gains", reason)]
    assert beliefs is not None
    checks: list[Check] = []
    posteriors = beliefs.learned
    for role in ("reward", "transition"):
        if role not in posteriors:
            checks.append(not_applicable(f"(a) to (g): {role}", "it is known, not learned"))
        else:
            checks += _posterior_checks(role, posteriors[role], stored, replayed)
    learned = list(posteriors.values())
    points = np.concatenate(stored.points)[:MATRIX_SIZE]
    matrices = [np.asarray(_output_kernel(p)(points)) / float(_noise(p).min()) for p in learned]
    checks.append(determinant_of_a_sum(matrices[0], matrices[-1]))
    return checks


def _posterior_checks(
    role: str, posterior: Posterior, stored: StoredRun, replayed: ReplayedRun
) -> list[Check]:
    """Check the lemmas about one posterior: that of the reward or of the transition."""
    points, outputs = np.stack(stored.points), posterior.outputs
    episodes = max(1, min(len(points), MAX_ROWS // (points.shape[1] * outputs)))
    points = points[:episodes]
    noise = _noise(posterior)
    variances = variance_history(posterior.kernel, points, noise_variance=noise)
    # ln|I + K/λ| − ln|I + K_r/λ| ≤ tr(K − K_r)/λ for the compiled k_r ⪯ k.
    rows = np.prod(points.shape[:2]) * outputs
    gain_error = posterior.error * float(rows) / (2 * float(noise.min()))
    gains = stored.columns[f"gain_{role}"][:episodes]
    checks = [chain_rule(variances, gains, tolerance=gain_error), *variance_lemmas(variances)]
    checks.append(_stored_widths(role, posterior, variances, stored, replayed))
    visited = points.reshape(-1, points.shape[2])[-PAIRS:]
    spread = np.asarray(replayed.agent.problem.points.spread_points(len(visited)))[: len(visited)]
    smoothness = deviation_smoothness(
        posterior,
        _output_kernel(posterior),
        visited[: len(spread)],
        spread,
        tolerance=2 * math.sqrt(posterior.error),
    )
    checks.append(smoothness)
    prefix = "" if episodes == len(stored.points) else f"first {episodes} episodes; "
    return [
        dataclasses.replace(check, name=f"{check.name}, {role}", note=prefix + check.note)
        for check in checks
    ]


def _stored_widths(
    role: str,
    posterior: Posterior,
    variances: VarianceHistory,
    stored: StoredRun,
    replayed: ReplayedRun,
) -> Check:
    """Compare the stored widths, left side of (e), with β times dense standard deviations."""
    name = "(e) stale deviations, from a dense factor"
    widths = stored.columns[f"width_{role}"][: variances.episodes]
    if replayed.agent.plans_made is not None:
        return not_applicable(name, "sets are kept for several episodes")
    if not np.isfinite(widths).all():
        return not_applicable(name, "the run did not store its widths")
    if len(variances.noise_variances) > 1 or variances.block != variances.horizon:
        return not_applicable(name, "outputs are not alike")
    sums = np.sum(np.sqrt(variances.stale[0]), axis=1)
    joint = math.sqrt(variances.outputs)
    if replayed.sets is None:
        expected = sums * (joint if role == "transition" else 1.0)
    else:
        plausible = replayed.sets.plausible
        if not isinstance(plausible, Plausible):
            return not_applicable(name, "the sets have several widths")
        if plausible.net is not None:
            return not_applicable(name, "the sets are those of a net")
        factor = joint if role == "transition" and plausible.shape == "trace" else 1.0
        slack = float(getattr(plausible, f"slack_{role}"))
        beta = stored.columns[f"beta_{role}"][: variances.episodes]
        expected = beta * factor * sums + slack * variances.horizon
    left, right = float(np.sum(widths)), float(np.sum(expected))
    share = COMPILED_TOLERANCE if posterior.error > 0 else 1e-6
    holds = abs(left - right) <= share * right + 1e-9
    note = f"sums over the run: stored, and with dense deviations; within {share:g}"
    if not holds and right > 0:
        note += f"; stored is {left / right:.3g} times"
    return Check(name, left, right, bool(holds), note)


def _noise(posterior: Posterior) -> np.ndarray:
    """Return the noise variance with the jitter that was added to it."""
    return np.asarray(posterior.noise_variance, float) + posterior.jitter


def _output_kernel(posterior: Posterior) -> Any:
    """Return the kernel of each output on points; the first one if outputs differ."""
    kernel = posterior.kernel
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Coregionalised) and not isinstance(kernel.index, Index):
        # Output 0 of k ⊗ B has the kernel B_00 k.
        return float(np.sum(np.asarray(kernel.index.root)[0] ** 2)) * kernel.kernel
    return kernel.parts()[0]
