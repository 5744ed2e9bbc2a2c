"""Controllers that leave Python: files of C, ONNX, NumPy and StableHLO.

``Agent.export`` writes them. Grid plans are exported as tables, Riccati plans and arms exactly.

>>> import kernelmdp as km
>>> agent = km.Greedy("lqr-1d", seed=0, planner="riccati")
>>> print(km.export.controller_of(agent))  # what agent.export("controller.c") would write
controller of 'lqr-1d' (linear, H = 10): exactly that of predict
"""

from kernelmdp.export.controller_inputs import inputs_of
from kernelmdp.export.controller_table import ControllerTable, Inputs
from kernelmdp.export.exporting import Export, controller_of
from kernelmdp.export.numpy_controller import NumpyController
from kernelmdp.export.self_check import SelfCheck
from kernelmdp.export.tabulated_policy import TabulatedPolicy
from kernelmdp.export.export_loss import ExportLoss

__all__ = [
    "ControllerTable",
    "Export",
    "Inputs",
    "NumpyController",
    "SelfCheck",
    "TabulatedPolicy",
    "ExportLoss",
    "controller_of",
    "inputs_of",
]
