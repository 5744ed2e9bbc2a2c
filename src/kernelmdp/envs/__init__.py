"""Environments with a known true MDP, and conversion from and to Gymnasium environments.

>>> import kernelmdp as km
>>> km.envs.make("riverswim").mdp.horizon
20
"""

from kernelmdp.envs.angles import cos_sin_pairs
from kernelmdp.envs.bandits import bandit
from kernelmdp.envs.conformance import check_environment
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.gymnasium_env import GymnasiumEnvironment, register
from kernelmdp.envs.gymnasium_task import GymnasiumTask
from kernelmdp.envs.named_coordinates import NamedBox, NamedCoordinates
from kernelmdp.envs.observed_clock import ObservedClock
from kernelmdp.envs.pendulum_swingup import base_return
from kernelmdp.envs.registry import ENVIRONMENTS, make, names
from kernelmdp.envs.tabular import tabular
from kernelmdp.envs.task_construction import from_gymnasium

__all__ = [
    "ENVIRONMENTS",
    "Environment",
    "GymnasiumEnvironment",
    "GymnasiumTask",
    "NamedBox",
    "NamedCoordinates",
    "ObservedClock",
    "bandit",
    "base_return",
    "check_environment",
    "cos_sin_pairs",
    "from_gymnasium",
    "make",
    "names",
    "register",
    "tabular",
]
