"""The formats of ``Agent.export``, by the ending of a file: controllers and learned models."""

import dataclasses
import io
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from kernelmdp.agents.saving import EXPORTERS
from kernelmdp.errors import ArgumentError
from kernelmdp.export.c_source import c_source
from kernelmdp.export.casadi_model import casadi_source
from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.export.exporting import (
    Writer,
    write_stablehlo,
    write_table,
    write_to,
)
from kernelmdp.export.numpy_archive import numpy_archive
from kernelmdp.export.onnx_model import onnx_model, require_onnx
from kernelmdp.export.onnx_prediction import onnx_prediction
from kernelmdp.export.prediction_model import PredictionModel, prediction_model
from kernelmdp.export.self_check import SelfCheck
from kernelmdp.numerics.checks import choice

#: From a learned model to the content of a file.
ModelWriter: TypeAlias = Callable[[PredictionModel], bytes]
#: What of an agent a file may hold.
PARTS = ("controller", "model")


def _c(table: ControllerTable, check: SelfCheck) -> bytes:
    return c_source(table, check).encode()


def _casadi(model: PredictionModel) -> bytes:
    return casadi_source(model).encode()


def _model_archive(model: PredictionModel) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **model.saved())  # type: ignore[arg-type]
    return buffer.getvalue()


#: How each format holds a controller. ``.stablehlo`` holds the policy itself, and has no writer.
CONTROLLERS: dict[str, Writer] = {".c": _c, ".npz": numpy_archive, ".onnx": onnx_model}
#: How each format holds a learned model.
MODELS: dict[str, ModelWriter] = {
    ".npz": _model_archive,
    ".onnx": onnx_prediction,
    ".py": _casadi,
}


def exporter(ending: str) -> Callable[..., Any]:
    """Make the function that writes files of one format.

    Args:
        ending: The ending of the files.

    Returns:
        A function of an agent, a path and options. The option ``of`` is "controller" or "model".

    >>> import kernelmdp as km
    >>> exporter(".c")(km.Greedy("riverswim", seed=0), "model.c", of="model")
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: of: expected 'controller' for '.c', got 'model'
    """

    def write(agent: Any, path: object, *, of: str = "controller", **options: Any) -> Any:
        if ending == ".onnx":
            require_onnx()  # before the plan is made, which may take long
        if choice("of", of, PARTS) == "model":
            return _write_model(ending, agent, path, **options)
        if ending == ".stablehlo":
            return write_stablehlo(agent, path, **options)
        if ending not in CONTROLLERS:
            raise ArgumentError("of", f"'model' for {ending!r}", repr(of))
        return write_table(CONTROLLERS[ending], agent, path, **options)

    return write


def _write_model(ending: str, agent: Any, path: object, **options: Any) -> PredictionModel:
    if ending not in MODELS:
        raise ArgumentError("of", f"'controller' for {ending!r}", repr("model"))
    for name, value in options.items():
        raise ArgumentError(name, "None, as a model has no options", value)
    model = prediction_model(agent)
    return dataclasses.replace(model, path=write_to(path, MODELS[ending](model)))


for each in (".c", ".onnx", ".npz", ".stablehlo", ".py"):
    EXPORTERS.register(each, exporter(each))
