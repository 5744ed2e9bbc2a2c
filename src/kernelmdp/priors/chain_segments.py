"""What all chains do in an episode: a segment, and a longer one when the first did not mix."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.numerics.modules import changed
from kernelmdp.priors.diagnostics import EXACT, Diagnostics, diagnose, mixing
from kernelmdp.types import Key

S = TypeVar("S")

#: Segments that a longer one is made of. It is the same program again: compiling one of more steps
#: takes far longer than running it.
LONGER = 4


class Segment(NamedTuple):
    """What a program of chains reports besides their last positions."""

    watched: Float[Array, "chains steps k"]
    average: Array  # of all that was drawn
    acceptance: Float[Array, ""]
    divergences: Array
    sound: Bool[Array, ""]


def run_segment(
    state: S, run: Callable[[S, Key], tuple[S, Segment]], *, key: Key
) -> tuple[S, Diagnostics]:
    """A state with ``average`` after a segment; after four more, judged as one, if need be.

    The first segment is then forgotten but for where it ended. After one that is not sound the
    state is what it was.
    """
    first, *others = jax.random.split(key, 1 + LONGER)
    diagnostics = EXACT
    for keys in ([first], others):
        after, parts = state, []
        for each in keys:
            after, part = run(after, each)
            parts.append(part)
            if not bool(part.sound):
                break
        diagnostics = _joined(parts)
        if bool(parts[-1].sound):
            average = sum((part.average for part in parts[1:]), parts[0].average)
            state = changed(after, average=average / len(parts))
        if diagnostics.mixed:
            break
    return state, diagnostics


def _joined(parts: list[Segment]) -> Diagnostics:
    """Diagnostics of parts of one segment."""
    watched = np.concatenate([np.asarray(part.watched) for part in parts], axis=1)
    found = diagnose(
        mixing(watched),
        acceptance=float(np.mean([part.acceptance for part in parts])),
        divergences=int(np.sum([part.divergences for part in parts])),
        moves=watched.shape[0] * watched.shape[1],
    )
    return found if bool(parts[-1].sound) else found._replace(r_hat=float("nan"), mixed=False)
