"""Limits of coordinates that explain where episodes ended.

Many plants end an episode when one coordinate leaves its range: a pole that has fallen, a cart at
the end of its track. A smooth regression learns such an edge slowly, as the last state before it
and the first one beyond it are close together.
"""

import numpy as np
from jaxtyping import Bool, Float

#: A limit that a single end explains must be at least this share as far from the centre as its
#: mirror image. Limits of most plants are symmetric, and a limit that is not may cost many plans.
MIRROR_SHARE = 0.5


def survival_limits(
    survived: Float[np.ndarray, "n m"],
    ended: Float[np.ndarray, "e m"],
    centre: Float[np.ndarray, " m"] | None = None,
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Find limits of coordinates such that episodes ended beyond them and nowhere else.

    A limit explains an end if the last state lies beyond all states that episodes survived. It is
    accepted if it is the only explanation of an end. It is also accepted if it explains ends that
    no accepted one does: at least two, or one if its mirror image is accepted and lies at most
    twice as far from the centre. It lies half way between the states that were survived and the
    nearest end.

    Until a state beyond it is survived, the mirror image of a limit is a limit too: most plants are
    symmetric about where they start, and to find each limit costs an episode.

    Args:
        survived: States from which episodes continued, (n, m) with n ≥ 1.
        ended: The last states of episodes that were terminated, (e, m).
        centre: A state from which episodes start, (m,). None: there are no mirror images.

    Returns:
        Lower and upper limits, (m,) each; infinite where there is none.

    >>> survived = np.array([[0.0, 0.1], [2.3, -0.1]])
    >>> low, high = survival_limits(survived, np.array([[2.5, 0.0]]), np.zeros(2))
    >>> low.round(1).tolist(), high.round(1).tolist()
    ([-2.4, -inf], [2.4, inf])
    """
    m = survived.shape[1]
    # Lower limits are upper limits of the negative coordinates.
    survived, ended = (np.concatenate([-each, each], axis=1) for each in (survived, ended))
    most = survived.max(axis=0)
    explains = ended > most
    accepted = _accepted(explains, (ended - most) / np.maximum(np.ptp(survived, axis=0), 1e-12))
    nearest = np.min(np.where(explains, ended, np.inf), axis=0, initial=np.inf)
    limits = (most + nearest) / 2
    if centre is None:
        limits = np.where(accepted, limits, np.inf)
        return -limits[:m], limits[m:]
    middle = np.concatenate([-centre, centre])
    left = ~explains[:, accepted].any(axis=1)
    near_mirror = limits - middle >= MIRROR_SHARE * np.roll(limits - middle, m)
    accepted |= explains[left].any(axis=0) & np.roll(accepted, m) & near_mirror
    limits = np.where(accepted, limits, np.inf)
    mirrored = np.roll(limits, m) + 2 * middle
    limits = np.where(~accepted & (mirrored > most), mirrored, limits)
    return -limits[:m], limits[m:]


def familiar_limits(
    visited: Float[np.ndarray, "n m"],
    low: Float[np.ndarray, " m"],
    high: Float[np.ndarray, " m"],
    *,
    free: Bool[np.ndarray, " m"],
    margin: float,
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Replace infinite limits of free coordinates by the ends of what was visited and a margin.

    Nothing is known beyond. A track may end there, and to find its end costs an episode.

    Args:
        visited: All states so far, (n, m) with n ≥ 1.
        low: Lower limits, (m,); −∞ where there is none.
        high: Upper limits.
        free: The coordinates on which the motion does not depend (``free_coordinates``).
        margin: The margin on both sides, as a share of half the width of what was visited.

    Returns:
        Lower and upper limits.

    >>> visited, free = np.array([[0.0, 0.1], [2.0, -0.1]]), np.array([True, False])
    >>> none = np.full(2, np.inf)
    >>> low, high = familiar_limits(visited, -none, none, free=free, margin=0.5)
    >>> low.tolist(), high.tolist()
    ([-0.5, -inf], [2.5, inf])
    """
    middle = (visited.max(axis=0) + visited.min(axis=0)) / 2
    half_width = (1 + margin) * np.ptp(visited, axis=0) / 2
    return (
        np.where(free & np.isinf(low), middle - half_width, low),
        np.where(free & np.isinf(high), middle + half_width, high),
    )


def _accepted(
    explains: Bool[np.ndarray, "e k"], overshoots: Float[np.ndarray, "e k"]
) -> Bool[np.ndarray, " k"]:
    """Which of k limits are accepted. Of equally good ones, that with the least overshoot is."""
    accepted = explains[explains.sum(axis=1) == 1].any(axis=0)
    while True:
        left = ~explains[:, accepted].any(axis=1)
        counts = explains[left].sum(axis=0)
        if not len(counts) or counts.max() < 2:
            return accepted
        tied = np.flatnonzero(counts == counts.max())
        overshoot = [np.mean(overshoots[left & explains[:, k], k]) for k in tied]
        accepted[tied[np.argmin(overshoot)]] = True
