"""Controllers: a policy as an object that runs on a machine, within a time limit.

>>> import kernelmdp as km
>>> agent = km.Greedy("riverswim", seed=0)
>>> with agent.controller() as controller:
...     action = controller([0])
>>> controller.log.steps[0].source
'plan'
"""

from kernelmdp.controllers.controller import Controller
from kernelmdp.controllers.step_log import LoggedStep, StepLog
from kernelmdp.controllers.watchdog import Watchdog

__all__ = ["Controller", "LoggedStep", "StepLog", "Watchdog"]
