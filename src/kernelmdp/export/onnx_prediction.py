"""Write a learned model as an ONNX graph, in double precision."""

import json

import numpy as np

from kernelmdp.export.onnx_model import OnnxGraph, require_onnx
from kernelmdp.export.prediction_model import PredictionModel


def onnx_prediction(model: PredictionModel) -> bytes:
    """Write a model as ONNX.

    Inputs are ``state`` (n, m) and ``action`` (n, q), for any number n of rows. Outputs are
    ``next_mean`` and ``next_std``, (n, m). Unless the reward was a known function, there are
    ``reward_mean`` and ``reward_std`` too, (n,). All are doubles. The description is in the
    metadata, as JSON.

    Args:
        model: The model.

    Returns:
        The content of the file.
    """
    graph = OnnxGraph(require_onnx())
    point = graph.add("Concat", "state", "action", axis=1)
    m, q = model.dimensions
    outputs: list[tuple[str, list[str | int]]] = []
    for name in model.names:
        given = {
            key.removeprefix(f"{name}_"): values
            for key, values in model.arrays.items()
            if key.startswith(f"{name}_")
        }
        prefix = "next" if name == "transition" else "reward"
        for kind, result in zip(("mean", "std"), _posterior(graph, given, point), strict=True):
            shape: list[str | int] = ["n", m] if name == "transition" else ["n"]
            target = np.array([-1, m]) if name == "transition" else np.array([-1])
            graph.add("Reshape", result, target, output=f"{prefix}_{kind}")
            outputs.append((f"{prefix}_{kind}", shape))
    inputs: list[tuple[str, list[str | int]]] = [("state", ["n", m]), ("action", ["n", q])]
    metadata = {"description": json.dumps(model.description)}
    content: bytes = graph.model_of("model", inputs, outputs, metadata).SerializeToString()
    return content


def _posterior(graph: OnnxGraph, given: dict[str, np.ndarray], point: str) -> tuple[str, str]:
    """Means and standard deviations; ``export/kernel_sums.py`` has the formula."""
    angles = graph.add("Mul", point, given["angular"])
    parts = [point, graph.add("Cos", angles), graph.add("Sin", angles)]
    embedded = graph.add("Unsqueeze", graph.add("Concat", *parts, axis=1), np.array([1]))
    mean = graph.add("Add", graph.add("MatMul", point, given["slopes"].T), given["level"])
    variance = ""
    for e, precisions in enumerate(given["precisions"]):
        differences = graph.add("Sub", embedded, given["centres"][e])
        squares = graph.add("Mul", differences, differences)
        values = graph.add("Exp", graph.add("MatMul", squares, -0.5 * precisions))
        mean = graph.add("Add", mean, graph.add("MatMul", values, given["weights"][:, e].T))
        rows = graph.add("MatMul", values, given["roots"][e])
        square = graph.add("ReduceSum", graph.add("Mul", rows, rows), np.array([1]), keepdims=1)
        signed = graph.add("Mul", square, given["sign"][e : e + 1])
        part = graph.add("Max", graph.add("Add", signed, given["prior"][e : e + 1]), np.zeros(1))
        share = graph.add("Mul", part, given["shares"][None, :, e])
        variance = graph.add("Add", variance, share) if variance else share
    return mean, graph.add("Sqrt", variance)
