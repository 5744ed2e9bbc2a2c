"""Write a controller as an ONNX graph, in double precision.

ONNX has no arc tangent in double precision. The graph takes the one in single precision and
corrects it with one Newton step, which is exact to rounding.
"""

import importlib
import json
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.export.self_check import SelfCheck

#: Version of the operators. Every runtime since 2022 knows it, and newer ones add none that help.
OPERATORS = 17
#: Version of the file format that belongs to these operators.
FILE_FORMAT = 8
#: A positive number below every length that is measured, against division by zero.
SMALLEST = 1e-300


def require_onnx() -> Any:
    """Import the library that writes ONNX files.

    Returns:
        The module ``onnx``.

    Raises:
        ArgumentError: If it is not installed. The message says how to install it.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError:
        expected = "onnx to be installed for '.onnx' (pip install 'kernelmdp[export]')"
        raise ArgumentError("format", expected, "none") from None


def onnx_model(table: ControllerTable, check: SelfCheck) -> bytes:
    """Write a controller as ONNX.

    Inputs are ``observation``, (k,) doubles, and ``period``, an integer without axes. The output is
    ``action``, (q,) doubles. The description and the self-check are in the metadata, as JSON.

    Args:
        table: The controller.
        check: Its self-check, which the file carries.

    Returns:
        The content of the file.
    """
    onnx = require_onnx()
    graph = OnnxGraph(onnx)
    last = np.array(table.horizon - 1)
    period = graph.add("Min", graph.add("Max", "period", np.array(0)), last)
    row = graph.add("Gather", table.rows.astype(np.int64), period)
    state = _state(graph, table)
    action = _LAWS[table.kind](graph, table, state, row)
    action = graph.add("Max", action, table.action_low)
    graph.add("Min", action, table.action_high, output="action")
    metadata = {
        "description": json.dumps(table.summary()),
        "self_check": json.dumps(check.lists()),
    }
    inputs: list[Any] = [("observation", [len(table.inputs.names)]), ("period", [])]
    outputs: list[Any] = [("action", [len(table.action_low)])]
    model = graph.model_of("controller", inputs, outputs, metadata)
    content: bytes = model.SerializeToString()
    return content


class OnnxGraph:
    """Collects the nodes of an ONNX graph.

    Args:
        onnx: The module ``onnx``.

    Attributes:
        onnx: The module.
        nodes: The nodes.
        constants: The constants.
    """

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(
        self, operator: str, *inputs: str | np.ndarray, output: str | None = None, **options: Any
    ) -> str:
        """Add a node.

        Args:
            operator: The name of the operator.
            *inputs: Names of results, or constants.
            output: The name of the result; None for a new one.
            **options: Attributes of the operator.

        Returns:
            The name of the result.
        """
        names = [self._constant(x) if isinstance(x, np.ndarray) else x for x in inputs]
        name = output or f"result{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **options))
        return name

    def cast(self, result: str, kind: str) -> str:
        """Convert numbers.

        Args:
            result: The name of a result.
            kind: "FLOAT", "DOUBLE" or "INT64".

        Returns:
            The name of the converted result.
        """
        return self.add("Cast", result, to=getattr(self.onnx.TensorProto, kind))

    def model_of(
        self,
        name: str,
        inputs: list[tuple[str, list[str | int]]],
        outputs: list[tuple[str, list[str | int]]],
        metadata: dict[str, str],
    ) -> Any:
        """Make the model.

        Args:
            name: The name of the graph.
            inputs: Names and shapes of the inputs. The period is an integer, others are doubles.
            outputs: Names and shapes of the results, which are doubles.
            metadata: Texts by name.

        Returns:
            The model, which was checked.
        """
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        given, results = (
            [
                helper.make_tensor_value_info(
                    each, kinds.INT64 if each == "period" else kinds.DOUBLE, shape
                )
                for each, shape in pairs
            ]
            for pairs in (inputs, outputs)
        )
        graph = helper.make_graph(self.nodes, name, given, results, self.constants)
        operators = [helper.make_opsetid("", OPERATORS)]
        model = helper.make_model(graph, opset_imports=operators, producer_name="kernelmdp")
        model.ir_version = FILE_FORMAT
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model)
        return model

    def _constant(self, values: np.ndarray) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(
            self.onnx.numpy_helper.from_array(np.asarray(values, order="C"), name)
        )
        return name


def _state(graph: OnnxGraph, table: ControllerTable) -> str:
    """The state of the observation."""
    inputs = table.inputs
    vector = graph.add("Sub", "observation", inputs.shift.astype(float))
    seconds = dict(inputs.angle_pairs)
    if seconds:
        parts = []
        for axis in range(len(inputs.names)):
            if axis in seconds.values():
                continue
            part = graph.add("Gather", vector, np.array([axis]))
            if axis in seconds:
                part = _angle(graph, part, graph.add("Gather", vector, np.array([seconds[axis]])))
            parts.append(part)
        vector = graph.add("Concat", *parts, axis=0)
    if inputs.periodic:
        periodic = np.isin(np.arange(len(inputs.low)), inputs.periodic)
        width = np.where(periodic, inputs.high - inputs.low, 1.0)
        low = np.where(periodic, inputs.low, 0.0)
        turns = graph.add("Floor", graph.add("Div", graph.add("Sub", vector, low), width))
        wrapped = graph.add("Sub", vector, graph.add("Mul", turns, width))
        vector = graph.add("Where", periodic, wrapped, vector)
    return graph.add("Min", graph.add("Max", vector, inputs.low), inputs.high)


def _angle(graph: OnnxGraph, x: str, y: str) -> str:
    """The angle of a point, as atan2(y, x): that of the half plane x ≥ 0, then mirrored."""
    squares = graph.add("Add", graph.add("Mul", x, x), graph.add("Mul", y, y))
    radius = graph.add("Max", graph.add("Sqrt", squares), np.array([SMALLEST]))
    half = graph.add("Div", y, graph.add("Add", radius, graph.add("Abs", x)))
    single = graph.cast(graph.add("Atan", graph.cast(half, "FLOAT")), "DOUBLE")
    right = graph.add("Mul", single, np.array([2.0]))
    zero = np.array([0.0])
    turn = graph.add("Where", graph.add("Less", y, zero), np.array([-np.pi]), np.array([np.pi]))
    left = graph.add("Less", x, zero)
    rough = graph.add("Where", left, graph.add("Sub", turn, right), right)
    across = graph.add("Mul", y, graph.add("Cos", rough))
    along = graph.add("Mul", x, graph.add("Sin", rough))
    correction = graph.add("Div", graph.add("Sub", across, along), radius)
    return graph.add("Add", rough, correction)


def _linear(graph: OnnxGraph, table: ControllerTable, state: str, row: str) -> str:
    gains = graph.add("Gather", table.law["gains"].astype(float), row)
    offsets = graph.add("Gather", table.law["offsets"].astype(float), row)
    return graph.add("Sub", offsets, graph.add("MatMul", gains, state))


def _points(graph: OnnxGraph, table: ControllerTable, state: str, row: str) -> str:
    difference = graph.add("Sub", table.law["nodes"].astype(float), state)
    squares = graph.add("Mul", difference, difference)
    distances = graph.add("ReduceSum", squares, np.array([1]), keepdims=0)
    nearest = graph.add("ArgMin", distances, axis=0, keepdims=0)
    return _read(graph, table, row, nearest)


def _nearest(graph: OnnxGraph, table: ControllerTable, state: str, row: str) -> str:
    place = graph.add("Add", _place(graph, table, state), np.array(0.5))
    index = graph.cast(graph.add("Floor", place), "INT64")
    counts = table.law["counts"]
    inside = graph.add("Min", graph.add("Max", index, np.array([0])), counts - 1)
    periodic = table.inputs.arrays()["periodic"]
    index = graph.add("Where", periodic, graph.add("Mod", index, counts), inside)
    node = graph.add("ReduceSum", graph.add("Mul", index, _strides(counts)), keepdims=0)
    return _read(graph, table, row, node)


def _interpolated(graph: OnnxGraph, table: ControllerTable, state: str, row: str) -> str:
    counts, periodic = table.law["counts"], table.inputs.arrays()["periodic"]
    place, last = _place(graph, table, state), np.where(periodic, counts - 1, counts - 2)
    floor = graph.add("Max", graph.add("Floor", place), np.array([0.0]))
    base = graph.add("Min", floor, last.astype(float))
    inside = graph.add("Max", graph.add("Sub", place, base), np.array([0.0]))
    fraction = graph.add("Min", inside, np.array([1.0]))
    sides = np.array(list(np.ndindex(*(2,) * len(counts))))
    upper = graph.add("Mul", sides.astype(float), fraction)
    remaining = graph.add("Sub", np.array([1.0]), fraction)
    lower = graph.add("Mul", (1 - sides).astype(float), remaining)
    weights = graph.add("ReduceProd", graph.add("Add", upper, lower), axes=[1], keepdims=0)
    index = graph.add("Mod", graph.add("Add", graph.cast(base, "INT64"), sides), counts)
    strided = graph.add("Mul", index, _strides(counts))
    corners = graph.add("ReduceSum", strided, np.array([1]), keepdims=0)
    return graph.add("MatMul", weights, _read(graph, table, row, corners))


def _network(graph: OnnxGraph, table: ControllerTable, state: str, row: str) -> str:
    law, parts = table.law, [state]
    if "angular" in law:
        angles = graph.add("Mul", state, law["angular"])
        plain = graph.add("Where", law["angular"] > 0, graph.add("Cos", angles), state)
        sines = graph.add("Gather", graph.add("Sin", angles), np.flatnonzero(law["angular"]))
        parts = [plain, sines]
    width = len(table.inputs.low) + np.count_nonzero(law.get("angular", 0))
    if width < law["weights0"].shape[1]:
        # The row of a network is its period.
        period = graph.add("Reshape", graph.cast(row, "DOUBLE"), np.array([1]))
        parts.append(graph.add("Div", period, np.array([float(table.horizon)])))
    values, layer = graph.add("Concat", *parts, axis=0), 0
    while True:
        product = graph.add("MatMul", law[f"weights{layer}"].astype(float), values)
        values = graph.add("Add", product, law[f"biases{layer}"].astype(float))
        layer += 1
        if f"weights{layer}" not in law:
            break
        values = graph.add("Tanh", values)
    if "choices" not in law:
        return values
    best = graph.add("ArgMax", values, axis=0, keepdims=0)
    return graph.add("Gather", law["choices"].astype(float), best)


def _place(graph: OnnxGraph, table: ControllerTable, state: str) -> str:
    """The position of the state in units of the spacing, from the first node on."""
    return graph.add("Div", graph.add("Sub", state, table.law["first"]), table.law["spacing"])


def _read(graph: OnnxGraph, table: ControllerTable, row: str, node: str) -> str:
    """The entries of a table at nodes. Finite actions are stored by their number."""
    values = table.law["table"]
    place = graph.add("Add", graph.add("Mul", row, np.array(values.shape[1])), node)
    entries = graph.add("Gather", values.reshape(-1, *values.shape[2:]), place)
    if "choices" not in table.law:
        return graph.cast(entries, "DOUBLE")
    return graph.add("Gather", table.law["choices"], graph.cast(entries, "INT64"))


def _strides(counts: np.ndarray) -> np.ndarray:
    return np.append(np.cumprod(counts[:0:-1])[::-1], 1)


#: How the action of each kind of controller is computed.
_LAWS = {
    "linear": _linear,
    "points": _points,
    "nearest": _nearest,
    "interpolated": _interpolated,
    "network": _network,
}
