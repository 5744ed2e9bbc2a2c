"""Markov decision processes: spaces, noise, models, policies, episodes and values of policies.

>>> import kernelmdp as km
>>> km.mdp.Gaussian(0.1).standard_deviations(1)
array([0.1])
"""

from kernelmdp.mdp.constraint_parsing import as_constraints
from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.episode import Episode, state_action
from kernelmdp.mdp.evaluation import (
    Value,
    action_grid,
    grid_value,
    monte_carlo_value,
    optimal_value,
    optimal_values,
    policy_values,
)
from kernelmdp.mdp.fallback import Fallback, as_fallback
from kernelmdp.mdp.mdp import MDP, play, rollout, step
from kernelmdp.mdp.model import MeanModel, Model, Prediction
from kernelmdp.mdp.noise import NO_NOISE, Categorical, Gaussian, Noise, Uniform
from kernelmdp.mdp.pid import PID
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.state_grid import StateGrid, Stencil, TablePositions
from kernelmdp.mdp.student_t import StudentT

__all__ = [
    "MDP",
    "NO_NOISE",
    "PID",
    "Categorical",
    "Constraint",
    "Episode",
    "Fallback",
    "Gaussian",
    "MeanModel",
    "Model",
    "Noise",
    "Policy",
    "Prediction",
    "Problem",
    "StateGrid",
    "Stencil",
    "StudentT",
    "TablePositions",
    "Uniform",
    "Value",
    "Violation",
    "action_grid",
    "as_constraints",
    "as_fallback",
    "grid_value",
    "monte_carlo_value",
    "optimal_value",
    "optimal_values",
    "play",
    "policy_values",
    "rollout",
    "state_action",
    "step",
]
