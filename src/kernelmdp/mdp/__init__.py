"""What an MDP is: spaces, noise, models, policies, episodes and the value of a policy.

>>> import kernelmdp as km
>>> km.mdp.Gaussian(0.1).standard_deviations(1)
array([0.1])
"""

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
from kernelmdp.mdp.grid import Places, StateGrid, Stencil
from kernelmdp.mdp.mdp import MDP, play, rollout, step
from kernelmdp.mdp.model import Known, Model, Outlook
from kernelmdp.mdp.noise import SILENT, Categorical, Gaussian, Noise, Uniform
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.student import StudentT

__all__ = [
    "MDP",
    "SILENT",
    "Categorical",
    "Episode",
    "Gaussian",
    "Known",
    "Model",
    "Noise",
    "Outlook",
    "Places",
    "Policy",
    "Problem",
    "StateGrid",
    "Stencil",
    "StudentT",
    "Uniform",
    "Value",
    "action_grid",
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
