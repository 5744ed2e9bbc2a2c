"""How far from optimal the controller of a stored run is: the best policy, after the fact."""

import math

import numpy as np

from kernelmdp.agents.optimality import Certificate
from kernelmdp.experiments.guarantee_checks import plans_not_optimistic
from kernelmdp.experiments.replay import ReplayedRun, StoredRun


def stored_certificate(stored: StoredRun, replayed: ReplayedRun) -> Certificate | None:
    """Compute the certificate of the controller that a run ends with.

    Sets that a theorem covers hold the truth in all episodes at once. So if all episodes begin in
    one state, the least planned value of an optimistic plan bounds the optimum.

    Args:
        stored: The run as its folder has it.
        replayed: The same run, replayed.

    Returns:
        The certificate. It is an estimate where no theorem covers the sets. None if the agent has
        no beliefs, or no value can be computed.
    """
    agent = replayed.agent
    if agent.learner.beliefs(agent.state) is None:
        return None
    certificate = agent.certificate()
    if not (math.isfinite(certificate.value) and math.isfinite(certificate.optimum)):
        return None
    proved = certificate.probability is not None and stored.coverage.covered
    one_start = len(np.unique(agent.starts, axis=0)) == 1
    if proved and one_start and plans_not_optimistic(agent) is None:
        values = stored.columns["planned_value"]
        planned = values[np.isfinite(values) & replayed.planned]
        if len(planned):
            certificate = certificate.with_optimum(float(planned.min()))
    return certificate
