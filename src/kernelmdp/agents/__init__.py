"""Agents: the two algorithms and what they are compared with.

>>> import kernelmdp as km
>>> sorted(km.agents.AGENTS)[:3]
['certainty-equivalence', 'dirichlet-psrl', 'frugal']
"""

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.baselines import Greedy, Random
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.frugal import Frugal, FrugalConfig
from kernelmdp.agents.gp_ucrl import GPUCRL
from kernelmdp.agents.psrl import PSRL, PSRLConfig
from kernelmdp.agents.saving import AGENTS
from kernelmdp.agents.sombrl import SOMBRL, SOMBRLConfig
from kernelmdp.numerics.random_keys import episode_key, numpy_generator

__all__ = [
    "AGENTS",
    "GPUCRL",
    "PSRL",
    "SOMBRL",
    "Agent",
    "AgentConfig",
    "Frugal",
    "FrugalConfig",
    "Greedy",
    "PSRLConfig",
    "Random",
    "SOMBRLConfig",
    "episode_key",
    "numpy_generator",
]
