"""The assumptions of every theorem. They alone decide what the library says is covered.

Each assumption names the settings that it reads. A test compares them with all settings there are:
a new setting must be added to an assumption, or to ``UNRELATED_SETTINGS`` with a reason.
"""

from kernelmdp.confidence.family_assumptions import THEOREM_11
from kernelmdp.confidence.noise_assumptions import THEOREM_16, THEOREM_16_BONUS
from kernelmdp.confidence.plan_assumptions import (
    OF_ALL_PLANS,
    OF_BALL_SAMPLING,
    OF_DRAWN_REWARDS,
    OF_GP_PRIOR,
    OF_LEARNED_REWARDS,
    OF_OPTIMISM,
    OF_SAMPLING,
)
from kernelmdp.confidence.run_assumptions import (
    OF_ALL_RUNS,
    OF_BETA,
    OF_DRAWN_MEANS,
    OF_GAUSSIAN_NOISE,
    OF_GP_POSTERIORS,
    OF_NOISE,
    OF_NORM_BALLS,
    OF_NORMS,
)
from kernelmdp.confidence.safety_assumptions import THEOREM_5
from kernelmdp.confidence.theorem import Theorem

#: GP-UCRL for means of bounded norm.
THEOREM_1 = Theorem(
    "Theorem 1 (bounded norms)",
    (*OF_ALL_RUNS, *OF_BETA, *OF_NORMS, *OF_NOISE, *OF_ALL_PLANS, *OF_OPTIMISM),
    has_sets=True,
)
#: PSRL for a prior on norm balls.
THEOREM_2 = Theorem(
    "Theorem 2 (Bayes regret, norm balls)",
    (
        *OF_ALL_RUNS,
        *OF_NORM_BALLS,
        *OF_NOISE,
        *OF_GAUSSIAN_NOISE,
        *OF_ALL_PLANS,
        *OF_SAMPLING,
        *OF_BALL_SAMPLING,
        *OF_LEARNED_REWARDS,
    ),
    has_sets=False,
)
#: GP-UCRL for means drawn from Gaussian processes.
THEOREM_3 = Theorem(
    "Theorem 3 (GP prior)",
    (
        *OF_ALL_RUNS,
        *OF_DRAWN_MEANS,
        *OF_DRAWN_REWARDS,
        *OF_BETA,
        *OF_NOISE,
        *OF_GAUSSIAN_NOISE,
        *OF_GP_POSTERIORS,
        *OF_ALL_PLANS,
        *OF_OPTIMISM,
        *OF_LEARNED_REWARDS,
    ),
    has_sets=True,
)
#: PSRL for means drawn from Gaussian processes.
THEOREM_4 = Theorem(
    "Theorem 4 (Bayes regret)",
    (
        *OF_GP_PRIOR,
        *OF_ALL_RUNS,
        *OF_DRAWN_MEANS,
        *OF_DRAWN_REWARDS,
        *OF_NOISE,
        *OF_GAUSSIAN_NOISE,
        *OF_ALL_PLANS,
        *OF_SAMPLING,
        *OF_LEARNED_REWARDS,
    ),
    has_sets=False,
)
#: All theorems.
THEOREMS = (
    THEOREM_1,
    THEOREM_2,
    THEOREM_3,
    THEOREM_4,
    THEOREM_5,
    THEOREM_11,
    THEOREM_16,
    THEOREM_16_BONUS,
)

#: Settings that no assumption reads, and why none has to.
UNRELATED_SETTINGS = {
    "agent.confidence": "its fields are settings of their own",
    "agent.pessimism": "it changes predict, and no episode",
    "agent.history": "the past is learned with fitted kernels only, which no theorem covers",
    "agent.delay": "the past is learned with fitted kernels only, which no theorem covers",
    "agent.known": "known motion is used with fitted kernels only, which no theorem covers",
    "agent.prior_model": "it is used with fitted kernels only, which no theorem covers",
    "agent.prior_error": "it is used with fitted kernels only, which no theorem covers",
    "confidence.setting": "it chooses the theorem",
    "confidence.gain": "β is valid with either gain (note B9)",
    "confidence.beta": "both are proved, and the regret bound takes the one that ran",
    "confidence.delta": "the theorem holds for every δ",
    "planner.state_points": "plans are optimal up to the grid, and the theorems say so",
    "planner.action_points": "plans are optimal up to the grid, and the theorems say so",
    "planner.slopes": "they follow from norm and kernel if they are certified",
    "planner.offset_slope": "it follows from the offset",
    "planner.optimistic": "it changes values, and no bound of a risk",
    "planner.risk": "it is a share of the agent's",
    "planner.fallback": "it is the agent's",
    "planner.refine": "it changes actions, and no value",
    "problem.name": "it is a label",
    "problem.coordinates": "they are labels",
    "problem.observation": "constraints and fallbacks are converted to states before they are read",
    "problem.measured": "costs are measured with fitted kernels only, which no theorem covers",
    "problem.motion": "it is used with fitted kernels only, which no theorem covers",
    "problem.memory": "it is used with fitted kernels only, which no theorem covers",
    "problem.prior_error": "it is used with fitted kernels only, which no theorem covers",
    "problem.actions": "theorems hold for every set of actions",
    "problem.offset": "a known part of the transition needs no set",
    "problem.state_points": "plans are optimal up to the grid, and the theorems say so",
    "problem.action_points": "plans are optimal up to the grid, and the theorems say so",
    "prior.chains": "rejection has no chains",
    "prior.steps": "rejection has no chains",
}
