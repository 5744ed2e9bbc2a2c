"""The size of a search whose decisions must not take longer than a given time."""

import time
import warnings
from collections.abc import Callable, Hashable

import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import ApproximationWarning
from kernelmdp.mdp.policy import Policy

#: A search may have at most so many times its default number of samples. Elites and iterations
#: stay, so more samples gain less and less.
MOST = 4
#: A smaller change of the number of samples is not worth a new compilation.
WORTHWHILE = 1.25

#: Decisions whose median time is taken.
DECISIONS = 7

_chosen: dict[Hashable, int] = {}


def samples_within(
    limit: float,
    *,
    default_samples: int,
    least: int,
    measure: Callable[[int], float],
    search: Hashable,
) -> int:
    """Choose the number of samples of a search, once for every kind of search in this process.

    The number depends on the machine and on what else it does. So two runs with the same seed may
    choose different numbers.

    Args:
        limit: Milliseconds that a decision may take.
        default_samples: The number of samples without a limit.
        least: The smallest number.
        measure: Measures the milliseconds of a decision with a number of samples.
        search: What the time depends on besides. The first choice for it is kept.

    Returns:
        The number: at most four times the default one, and the smallest one if none is fast enough.
        A warning then says so.

    >>> samples_within(
    ...     10.0, default_samples=40, least=13, measure=lambda samples: 0.2 * samples, search=0
    ... )
    50
    """
    if search in _chosen:
        return _chosen[search]
    samples, taken = default_samples, measure(default_samples)
    if limit >= WORTHWHILE * taken:
        # Part of the time does not depend on the samples, so this is on the safe side.
        samples = min(MOST * default_samples, int(default_samples * limit / taken))
    while taken > limit and samples > least:
        samples = max(least, int(samples * min(limit / taken, 1 / WORTHWHILE)))
        taken = measure(samples)
    if taken > limit:
        warnings.warn(
            f"decision_time: expected decisions within {limit:g} ms, got {taken:.1f} ms with the "
            f"smallest search of {samples} samples; shorten the planner's horizon",
            ApproximationWarning,
            stacklevel=4,
        )
    return _chosen.setdefault(search, samples)


def decision_milliseconds(policy: Policy, states: Domain) -> float:
    """Measure the median time of a decision that is not the first one of an episode.

    Args:
        policy: The policy. Its program is compiled before.
        states: The state space. Decisions in its middle are measured.

    Returns:
        Milliseconds.
    """
    low, high = states.bounds
    player, state, times = policy.player(), (low + high) / 2, []
    for period in range(1, DECISIONS + 2):  # the first one compiles
        begin = time.perf_counter()
        player(state, period)
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times[1:]))
