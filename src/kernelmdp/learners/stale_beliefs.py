"""Which beliefs a kept plan was made from: those before an earlier episode (theory, Theorem 10).

A plan is kept while the information gain since it was made is at most c. Standard deviations of
the beliefs it was made from are then at most e^c times those of the newest beliefs (note A8, f).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernelmdp.confidence import Beliefs
from kernelmdp.gp.output_layouts import SharedLayout
from kernelmdp.mdp import Episode


class StaleBeliefs(NamedTuple):
    """The beliefs that a plan was made from.

    Attributes:
        episode: The number of episodes before the plan.
        state: The learner's state then.
        gains: The information gains then, from ``deviation_gains``.
        plans: The number of plans until then, with this one.

    >>> StaleBeliefs(0, None, (0.0, 0.0), 1).plans
    1
    """

    episode: int
    state: Any
    gains: tuple[float, ...]
    plans: int


def deviation_gains(beliefs: Beliefs) -> tuple[float, ...]:
    """Compute what bounds the drop of standard deviations: the gain of each learned function.

    Outputs that share a kernel have one deviation, so the gain of one of them counts. Otherwise the
    gain of all outputs together is a bound.

    Args:
        beliefs: Posteriors of reward and transition.

    Returns:
        One number for each learned posterior.
    """
    return tuple(
        float(posterior.information_gain)
        / (posterior.outputs if isinstance(posterior.layout, SharedLayout) else 1)
        for posterior in beliefs.learned.values()
    )


def advanced(
    stale: StaleBeliefs,
    *,
    episode: int,
    state: object,
    gains: tuple[float, ...],
    allowed: float,
    doubles: bool,
) -> StaleBeliefs:
    """Decide from which beliefs the next episode is planned.

    Args:
        stale: The beliefs of the last plan.
        episode: The number of episodes so far.
        state: The learner's newest state.
        gains: Its information gains.
        allowed: c, the largest growth of a gain for which a plan is kept.
        doubles: Whether plans are also renewed when the number of episodes has doubled.

    Returns:
        The beliefs of the next plan: the newest, or those of the last plan.

    >>> first = StaleBeliefs(0, None, (0.0,), 1)
    >>> kept = advanced(first, episode=1, state=1, gains=(0.4,), allowed=0.5, doubles=False)
    >>> renewed = advanced(kept, episode=2, state=2, gains=(0.6,), allowed=0.5, doubles=False)
    >>> kept.episode, renewed.episode, renewed.plans
    (0, 2, 2)
    """
    grown = any(now - then > allowed for now, then in zip(gains, stale.gains, strict=True))
    # Episode l = episode + 1 is planned next. The plan was made for episode k = stale.episode + 1.
    doubled = doubles and episode + 1 >= 2 * (stale.episode + 1)
    return StaleBeliefs(episode, state, gains, stale.plans + 1) if grown or doubled else stale


def replayed(
    first: StaleBeliefs,
    history: Sequence[Episode],
    *,
    update: Callable[[Any, Episode, int], Any],
    advance: Callable[[StaleBeliefs, int, Any], StaleBeliefs],
) -> StaleBeliefs:
    """Find the beliefs of the last plan by learning from all episodes again.

    Args:
        first: The beliefs before any data.
        history: All episodes.
        update: From the learner's state, an episode and its index to the next state.
        advance: From the beliefs of a plan, the number of episodes and the newest state to the
            beliefs of the next plan.

    Returns:
        The beliefs of the last plan.
    """
    stale, state = first, first.state
    for index, episode in enumerate(history):
        state = update(state, episode, index)
        stale = advance(stale, index + 1, state)
    return stale
