"""Segments of Markov chains: one in every episode, and a longer one if the first did not mix."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.numerics.modules import replace_fields
from kernelmdp.priors.diagnostics import EXACT, Diagnostics, diagnose, mixing
from kernelmdp.types import Key

S = TypeVar("S")

#: Number of segments of a longer run. The same program runs again, because compiling a program with
#: more steps takes far longer than running it.
LONGER = 4


class Segment(NamedTuple):
    """What a program of chains reports, besides their last positions.

    Attributes:
        watched: Quantities by which mixing is judged.
        average: The mean of all draws.
        acceptance: The share of proposals that were accepted.
        divergences: The number of divergent trajectories.
        sound: Whether all positions are valid.
    """

    watched: Float[Array, "chains steps k"]
    average: Array
    acceptance: Float[Array, ""]
    divergences: Array
    sound: Bool[Array, ""]


def run_segment(
    state: S, run: Callable[[S, Key], tuple[S, Segment]], *, key: Key
) -> tuple[S, Diagnostics]:
    """Run a segment of chains, and four more if it did not mix.

    The four are judged as one segment. The first then only provides their starts. If a segment is
    not sound, the state stays unchanged.

    Args:
        state: The state of the chains, with an attribute ``average``.
        run: Runs one segment: from state and key to state and report.
        key: Decides everything random.

    Returns:
        The state with a new ``average``, and diagnostics.
    """
    first_key, *other_keys = jax.random.split(key, 1 + LONGER)
    diagnostics = EXACT
    for keys in ([first_key], other_keys):
        after, segments = state, []
        for segment_key in keys:
            after, segment = run(after, segment_key)
            segments.append(segment)
            if not bool(segment.sound):
                break
        diagnostics = _joint_diagnostics(segments)
        if bool(segments[-1].sound):
            average = sum((segment.average for segment in segments[1:]), segments[0].average)
            state = replace_fields(after, average=average / len(segments))
        if diagnostics.mixed:
            break
    return state, diagnostics


def _joint_diagnostics(segments: list[Segment]) -> Diagnostics:
    """Diagnostics of consecutive segments as one."""
    watched = np.concatenate([np.asarray(segment.watched) for segment in segments], axis=1)
    diagnostics = diagnose(
        mixing(watched),
        acceptance=float(np.mean([segment.acceptance for segment in segments])),
        divergences=int(np.sum([segment.divergences for segment in segments])),
        moves=watched.shape[0] * watched.shape[1],
    )
    if bool(segments[-1].sound):
        return diagnostics
    return diagnostics._replace(r_hat=float("nan"), mixed=False)
