"""From observations to states in every format: shifts, angles, wrapping, clipping, no limits."""

import ctypes

import numpy as np
import onnxruntime
import pytest

from kernelmdp.export import ControllerTable, Inputs, NumpyController, SelfCheck
from kernelmdp.export.c_source import c_source
from kernelmdp.export.numpy_archive import numpy_archive
from kernelmdp.export.onnx_model import onnx_model
from tests.export.test_formats import c_actions, compiled

# An observation is (level, cosine, speed, sine, turn); a state is (level, angle, speed,
# turn). The turn is periodic without a cosine, and the speed has no limits.
INPUTS = Inputs(
    names=("level", "cosine", "speed", "sine", "turn"),
    shift=np.array([3.0, 0.0, 0.0, 0.0, 0.0]),
    angle_pairs=((1, 3),),
    low=np.array([-1.0, -np.pi, -np.inf, 0.0]),
    high=np.array([1.0, np.pi, np.inf, 2.0]),
    periodic=(1, 3),
)
IDENTITY = {"gains": -np.eye(4)[None], "offsets": np.zeros((1, 4))}


def states(observations):
    """The states, in complex numbers and without the code of the package."""
    level, cosine, speed, sine, turn = observations.T
    level, angle = np.minimum(np.maximum(level - 3.0, -1.0), 1.0), np.angle(cosine + 1j * sine)
    return np.stack([level, angle, speed, turn - 2.0 * np.floor(turn / 2.0)], axis=1)


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(3)
    drawn = generator.uniform(-5, 8, (200, 5))
    angles = np.concatenate([generator.uniform(-np.pi, np.pi, 192), np.arange(-3, 5) * np.pi / 4])
    radii = generator.uniform(0.1, 3.0, 200)  # sensors are not exactly on the circle
    drawn[:, 1], drawn[:, 3] = radii * np.cos(angles), radii * np.sin(angles)
    return drawn


@pytest.fixture(scope="module")
def table():
    """A controller whose action is the state."""
    free, rows = np.full(4, np.inf), np.zeros(3, int)
    return ControllerTable(INPUTS, "linear", IDENTITY, rows, tuple("abcd"), -free, free, {})


@pytest.fixture(scope="module")
def check(rows):
    return SelfCheck(rows, np.zeros(len(rows), int), states(rows))


def close(chosen, rows):
    """Two ends of a periodic axis are the same."""
    difference = np.abs(np.asarray(chosen) - states(rows))
    width = np.array([np.inf, 2 * np.pi, np.inf, 2.0])
    assert np.minimum(difference, width - difference).max() < 1e-12


def test_c(table, check, rows, tmp_path):
    path = compiled(c_source(table, check), tmp_path / "inputs.so", "-shared", "-fPIC")
    close(c_actions(ctypes.CDLL(str(path)), rows, np.zeros(len(rows)), 4), rows)


def test_onnx(table, check, rows):
    session = onnxruntime.InferenceSession(onnx_model(table, check))
    given = [{"observation": row, "period": np.array(0)} for row in rows]
    close([session.run(None, each)[0] for each in given], rows)


def test_numpy(table, check, rows, tmp_path):
    (tmp_path / "inputs.npz").write_bytes(numpy_archive(table, check))
    controller = NumpyController.load(tmp_path / "inputs.npz")
    close([controller(row) for row in rows], rows)
    assert controller.description["state_high"] == [1.0, np.pi, None, 2.0]
