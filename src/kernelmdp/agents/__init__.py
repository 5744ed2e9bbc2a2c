"""Agents: the two algorithms and what they are compared with.

>>> import kernelmdp as km
>>> sorted(km.agents.AGENTS)[:3]
['certainty-equivalence', 'dirichlet-psrl', 'gp-ucrl']
"""

from kernelmdp.agents.base import Agent
from kernelmdp.agents.baselines import Greedy, Oracle, Random
from kernelmdp.agents.conformance import Conformance, check_agent
from kernelmdp.agents.gp_ucrl import GPUCRL
from kernelmdp.agents.loading import AGENTS, load
from kernelmdp.agents.problem import Problem
from kernelmdp.agents.psrl import PSRL
from kernelmdp.agents.records import Result, Table

__all__ = [
    "AGENTS",
    "GPUCRL",
    "PSRL",
    "Agent",
    "Conformance",
    "Greedy",
    "Oracle",
    "Problem",
    "Random",
    "Result",
    "Table",
    "check_agent",
    "load",
]
