"""kernelmdp: GP-UCRL and PSRL for kernelised Markov decision processes.

Importing this package switches JAX to 64-bit floats (``jax_enable_x64``). Posteriors and
information gains lose digits to cancellation, and 32 bits are too few for them. You can still ask
for 32 bits where it is offered, as in ``kernelmdp.gp.posterior(..., dtype="float32")``.
"""

import jax

jax.config.update("jax_enable_x64", True)

from kernelmdp.numerics.compiled_programs import keep_compiled_programs  # noqa: E402  (as below)

keep_compiled_programs()

from kernelmdp import (  # noqa: E402  (64 bits must be enabled first)
    agents,
    classics,
    confidence,
    controllers,
    envs,
    errors,
    experiments,
    export,
    gp,
    information,
    kernels,
    learners,
    mdp,
    planners,
    priors,
    report,
    serving,
    theory,
)
from kernelmdp.agents import GPUCRL, PSRL, SOMBRL, Agent, Frugal, Greedy, Random  # noqa: E402
from kernelmdp.confidence import Confidence  # noqa: E402
from kernelmdp.domains import Box, Domain, FiniteSet, join  # noqa: E402
from kernelmdp.envs import Environment, from_gymnasium, make, register  # noqa: E402
from kernelmdp.experiments import Oracle, callbacks, study  # noqa: E402
from kernelmdp.kernels import kernel  # noqa: E402
from kernelmdp.mdp import PID, Constraint, Fallback, Problem  # noqa: E402
from kernelmdp.numerics.keywords import suggests_keywords  # noqa: E402
from kernelmdp.planners import GridPlanner, MPCPlanner  # noqa: E402
from kernelmdp.report import read  # noqa: E402
from kernelmdp.version import __version__  # noqa: E402

# A misspelt keyword of these is answered with the nearest one.
for _part in (Box, Confidence, Constraint, Fallback, FiniteSet, GridPlanner, MPCPlanner, Problem):
    suggests_keywords(_part)

#: Loads a saved agent; see ``Agent.load``.
load = Agent.load

# Make the environments known to Gymnasium: gymnasium.make("kernelmdp/PendulumSwingup-v0").
register()

__all__ = [
    "GPUCRL",
    "PID",
    "PSRL",
    "SOMBRL",
    "Agent",
    "Box",
    "Confidence",
    "Constraint",
    "Domain",
    "Environment",
    "Fallback",
    "FiniteSet",
    "Frugal",
    "Greedy",
    "GridPlanner",
    "MPCPlanner",
    "Oracle",
    "Problem",
    "Random",
    "__version__",
    "agents",
    "callbacks",
    "classics",
    "confidence",
    "controllers",
    "envs",
    "errors",
    "experiments",
    "export",
    "from_gymnasium",
    "gp",
    "information",
    "join",
    "kernel",
    "kernels",
    "learners",
    "load",
    "make",
    "mdp",
    "planners",
    "priors",
    "read",
    "report",
    "serving",
    "study",
    "theory",
]
