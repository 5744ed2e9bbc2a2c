"""Every format chooses the actions of the exported policy on 1,000 states: C, ONNX, NumPy."""

import ctypes
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

from kernelmdp.export import numpy_controller
from kernelmdp.export.c_source import c_source
from kernelmdp.export.numpy_archive import numpy_archive
from kernelmdp.export.onnx_model import onnx_model

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
TOLERANCE = 1e-6


def compiled(source, path, *flags):
    """Compile a file of C as strictly as the documentation says."""
    path.with_suffix(".c").write_text(source)
    command = ["gcc", *FLAGS, *flags, str(path.with_suffix(".c")), "-o", str(path), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def c_actions(library, observations, periods, size):
    action = np.zeros(size)
    pointer, rows = ctypes.POINTER(ctypes.c_double), np.ascontiguousarray(observations, float)
    chosen = []
    for row, period in zip(rows, periods, strict=True):
        place = row.ctypes.data_as(pointer)
        library.kmdp_action(place, ctypes.c_int(int(period)), action.ctypes.data_as(pointer))
        chosen.append(action.copy())
    return np.array(chosen)


@pytest.fixture
def library(exported, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    _, _, export = exported
    source = c_source(export.table, export.check)
    return ctypes.CDLL(str(compiled(source, tmp_path / "controller.so", "-shared", "-fPIC")))


def test_c(exported, thousand, library):
    observations, periods, actions = thousand
    chosen = c_actions(library, observations, periods, actions.shape[1])
    np.testing.assert_allclose(chosen, actions, rtol=TOLERANCE, atol=TOLERANCE)
    assert library.kmdp_self_check() == 0


def test_c_clamps_periods_and_survives_bad_numbers(exported, thousand, library):
    observations, _, actions = thousand
    last = exported[2].table.horizon - 1
    rows, size = observations[:20], actions.shape[1]
    for given, meant in ((-3, 0), (last + 5, last)):
        chosen = [c_actions(library, rows, [period] * 20, size) for period in (given, meant)]
        np.testing.assert_array_equal(*chosen)
    for number in (np.nan, np.inf, -np.inf, 1e300):
        bad = np.full((1, observations.shape[1]), number)
        library_action = c_actions(library, bad, [0], size)
        table = exported[2].table
        assert (library_action >= table.action_low).all()
        assert (library_action <= table.action_high).all()


def test_c_has_no_allocation_and_no_dependency(exported):
    source = c_source(exported[2].table, exported[2].check)
    assert not re.search(r"\b(malloc|calloc|alloca|free)\b", source)
    library_part = source.partition("#ifdef KMDP_MAIN")[0]
    assert re.findall(r"#include <(.*)>", library_part) == ["math.h"]


def test_the_self_check_of_c_finds_a_changed_number(exported, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    table, check = exported[2].table, exported[2].check
    source = c_source(table, check)
    numbers = re.search(r"kmdp_check_actions\[\d+\] = \{\s*([^,}]+)", source)
    changed = source[: numbers.start(1)] + "12345.0" + source[numbers.end(1) :]
    done = subprocess.run(
        [compiled(changed, tmp_path / "program", "-DKMDP_MAIN")], text=True, capture_output=True
    )
    assert done.returncode == 1
    assert "1 of 100 actions differ" in done.stdout


def test_onnx(exported, thousand):
    observations, periods, actions = thousand
    content = onnx_model(exported[2].table, exported[2].check)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    chosen = [
        session.run(None, {"observation": row, "period": np.array(period)})[0]
        for row, period in zip(observations, periods, strict=True)
    ]
    np.testing.assert_allclose(chosen, actions, rtol=TOLERANCE, atol=TOLERANCE)
    metadata = session.get_modelmeta().custom_metadata_map
    check = json.loads(metadata["self_check"])
    assert np.shape(check["observations"]) == (100, observations.shape[1])
    again = [
        session.run(None, {"observation": np.array(row), "period": np.array(period)})[0]
        for row, period in zip(check["observations"], check["periods"], strict=True)
    ]
    np.testing.assert_allclose(again, check["actions"], rtol=TOLERANCE, atol=TOLERANCE)


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from numpy_controller import NumpyController
controller = NumpyController.load("controller.npz")
assert controller.self_check() < 1e-6
given = np.load("given.npz")
rows = zip(given["observations"], given["periods"], strict=True)
np.save("chosen.npy", np.array([controller(row, period) for row, period in rows]))
assert "jax" not in sys.modules and "kernelmdp" not in sys.modules
"""


def test_numpy_alone(exported, thousand, tmp_path):
    observations, periods, actions = thousand
    (tmp_path / "controller.npz").write_bytes(numpy_archive(exported[2].table, exported[2].check))
    shutil.copy(numpy_controller.__file__, tmp_path)
    np.savez(tmp_path / "given.npz", observations=observations, periods=periods)
    program = PROGRAM.format(folder=str(pathlib.Path(tmp_path)))
    subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, check=True)
    chosen = np.load(tmp_path / "chosen.npy")
    np.testing.assert_allclose(chosen, actions, rtol=TOLERANCE, atol=TOLERANCE)
    controller = numpy_controller.NumpyController.load(tmp_path / "controller.npz")
    for bad in (np.nan, np.inf):
        observation = np.array(observations[0], float)
        observation[-1] = bad
        with pytest.raises(ValueError, match="observation: expected finite numbers"):
            controller(observation)
