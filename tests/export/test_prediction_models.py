"""Exported models predict what the beliefs predict: NumPy, ONNX and CasADi at 1,000 points."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import types

import numpy as np
import onnxruntime
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.export import numpy_model
from kernelmdp.export.prediction_model import drawn_points, prediction_model, predictions
from tests.export import agents_to_export

TOLERANCE = 1e-6


def compiled_kernels():
    return agents_to_export.export_of(agents_to_export.interpolated)[0]


def fitted_angles():
    return agents_to_export.export_of(agents_to_export.angles)[0]


def known_reward():
    return agents_to_export.export_of(agents_to_export.nearest_choices)[0]


@pytest.fixture(scope="module", params=[compiled_kernels, fitted_angles, known_reward])
def agent(request):
    return request.param()


@pytest.fixture(scope="module")
def thousand(agent):
    """1,000 points, and what the beliefs predict at them."""
    beliefs = agent.learner.beliefs(agent.controller_state)
    points = drawn_points(agent.problem.points, 1000, seed=3)
    return points, predictions(beliefs, np.asarray(beliefs.scale), points)


def close(predicted, expected):
    rows = [np.asarray(each).reshape(len(expected), -1) for each in predicted]
    difference = np.abs(np.concatenate(rows, axis=1) - expected)
    assert (difference / (1e-12 + np.abs(expected).max(axis=0))).max() < TOLERANCE


def test_onnx(agent, thousand, tmp_path):
    points, expected = thousand
    export = agent.export(tmp_path / "model.onnx", of="model")
    session = onnxruntime.InferenceSession(str(export.path))
    m = agent.problem.states.dimension
    close(session.run(None, {"state": points[:, :m], "action": points[:, m:]}), expected)
    assert [each.name for each in session.get_outputs()] == export.description["outputs"]


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from numpy_model import NumpyModel
model = NumpyModel.load("model.npz")
assert model.self_check() < 1e-6
points, m = np.load("points.npy"), len(model.description["states"])
rows = [each.reshape(len(points), -1) for each in model(points[:, :m], points[:, m:])]
np.save("predicted.npy", np.concatenate(rows, axis=1))
assert "jax" not in sys.modules and "kernelmdp" not in sys.modules
"""


def test_numpy_alone(agent, thousand, tmp_path):
    points, expected = thousand
    agent.export(tmp_path / "model.npz", of="model")
    shutil.copy(numpy_model.__file__, tmp_path)
    np.save(tmp_path / "points.npy", points)
    program = PROGRAM.format(folder=str(pathlib.Path(tmp_path)))
    subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, check=True)
    close([np.load(tmp_path / "predicted.npy")], expected)


def numpy_casadi(values):
    """The part of casadi that a file uses, where symbols are numbers: columns of NumPy."""
    casadi = types.ModuleType("casadi")
    casadi.DM = lambda numbers: np.array(numbers, float)[:, None]
    casadi.reshape = lambda array, rows, columns: array.reshape(rows, columns, order="F")
    casadi.vertcat = lambda *parts: np.vstack(parts)
    casadi.mtimes = lambda a, b: (a @ b).reshape(len(a), -1)
    casadi.repmat = lambda row, rows, columns: np.tile(row, (rows, columns))
    casadi.sumsqr = lambda array: np.sum(array**2)
    casadi.cos, casadi.sin, casadi.exp, casadi.sqrt = np.cos, np.sin, np.exp, np.sqrt
    casadi.fmax = np.maximum
    casadi.MX = types.SimpleNamespace(sym=lambda name, size: values[name][:, None])
    casadi.Function = lambda name, given, results, *names: (results, names)
    return casadi


def load(path):
    spec = importlib.util.spec_from_file_location("exported_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_casadi_formulas(agent, thousand, tmp_path, monkeypatch):
    """Without casadi: what it would be told to compute, computed by NumPy at 20 points."""
    points, expected = thousand
    values, m = {}, agent.problem.states.dimension
    monkeypatch.setitem(sys.modules, "casadi", numpy_casadi(values))
    export = agent.export(tmp_path / "model.py", of="model")
    rows = []
    for point in points[:20]:
        values |= {"state": point[:m], "action": point[m:]}
        module = load(export.path)  # The file makes its function when it is imported.
        results, names = module.model
        rows.append(np.concatenate([each.ravel() for each in results]))
    assert names[1] == export.description["outputs"]
    close([rows + list(expected[20:])], expected)


def test_casadi(agent, thousand, tmp_path):
    casadi = pytest.importorskip("casadi")
    points, expected = thousand
    model = load(agent.export(tmp_path / "model.py", of="model").path).model
    m = agent.problem.states.dimension
    rows = [[np.ravel(each) for each in model(point[:m], point[m:])] for point in points]
    close([[np.concatenate(each) for each in rows]], expected)
    state, action = casadi.MX.sym("s", m), casadi.MX.sym("a", points.shape[1] - m)
    slopes = casadi.Function(
        "f", [state, action], [casadi.jacobian(model(state, action)[0], state)]
    )
    assert np.isfinite(np.array(slopes(points[0, :m], points[0, m:]))).all()


def test_a_known_reward_is_left_out():
    model = prediction_model(known_reward())
    assert model.description["outputs"] == ["next_mean", "next_std"]
    assert len(prediction_model(fitted_angles()).description["outputs"]) == 4


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(ArgumentError, match="expected products of squared exponentials"):
        km.Greedy("riverswim", seed=0).export(tmp_path / "model.npz", of="model")
    with pytest.raises(ArgumentError, match=r"of: expected 'controller' for '\.c'"):
        fitted_angles().export(tmp_path / "model.c", of="model")
    with pytest.raises(ArgumentError, match="state_points: expected None, as a model"):
        fitted_angles().export(tmp_path / "model.npz", of="model", state_points=3)
    with pytest.raises(ArgumentError, match="of: expected one of"):
        fitted_angles().export(tmp_path / "model.npz", of="reward")
