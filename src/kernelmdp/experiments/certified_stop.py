"""A callback that stops learning as soon as a certificate says that the controller is good."""

from typing import Any

import numpy as np

from kernelmdp.agents.optimality import Certificate
from kernelmdp.experiments.callback import Callback


class StopWhenCertified(Callback):
    """Stops when ``agent.certificate`` is within a share of the span.

    Sets that a theorem covers hold the truth in all episodes at once. So the least bound of the
    optimum so far is kept, as long as all episodes begin in the same state.

    Args:
        share: The largest difference from optimal, as a share of the span.

    Attributes:
        certificate: The newest certificate; None before the first episode.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("riverswim", confidence="valid", seed=0)
    >>> stop = StopWhenCertified(0.96)
    >>> result = agent.learn(20, callback=stop, progress=False)
    >>> len(result.episodes) < 20 and stop.certificate.share <= 0.96
    True
    """

    def __init__(self, share: float) -> None:
        self.share = float(share)
        self.certificate: Certificate | None = None

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> bool | None:
        newest, before = agent.certificate(), self.certificate
        one_start = len(np.unique(agent.starts, axis=0)) == 1
        proved = before is not None and None not in (before.probability, newest.probability)
        if before is not None and proved and one_start:
            newest = newest.with_optimum(before.optimum)
        self.certificate = newest
        return not newest.share <= self.share
