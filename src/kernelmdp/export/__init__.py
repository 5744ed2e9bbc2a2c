"""Controllers that leave Python: files of C, ONNX, NumPy and StableHLO.

``Agent.export`` writes them. Grid plans are exported as tables, MPC plans as networks that imitate
them, Riccati plans and arms exactly. Learned models leave too, also as functions of CasADi.

>>> import kernelmdp as km
>>> agent = km.Greedy("lqr-1d", seed=0, planner="riccati")
>>> print(km.export.controller_of(agent))  # what agent.export("controller.c") would write
controller of 'lqr-1d' (linear, H = 10): exactly that of predict
"""

from kernelmdp.export.controller_inputs import inputs_of
from kernelmdp.export.controller_table import ControllerTable, Inputs
from kernelmdp.export.distillation import DistillationConfig
from kernelmdp.export.export_loss import ExportLoss
from kernelmdp.export.exporting import Export, controller_of
from kernelmdp.export.formats import exporter
from kernelmdp.export.network_policy import NetworkPolicy
from kernelmdp.export.numpy_controller import NumpyController
from kernelmdp.export.numpy_model import NumpyModel
from kernelmdp.export.prediction_model import PredictionModel, prediction_model
from kernelmdp.export.self_check import SelfCheck
from kernelmdp.export.tabulated_policy import TabulatedPolicy

__all__ = [
    "ControllerTable",
    "DistillationConfig",
    "Export",
    "ExportLoss",
    "Inputs",
    "NetworkPolicy",
    "NumpyController",
    "NumpyModel",
    "PredictionModel",
    "SelfCheck",
    "TabulatedPolicy",
    "controller_of",
    "exporter",
    "inputs_of",
    "prediction_model",
]
