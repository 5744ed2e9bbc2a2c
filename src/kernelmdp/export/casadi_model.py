"""Write a learned model as a Python file that needs casadi only, for other people's MPC."""

import base64
import json

import numpy as np

from kernelmdp.export.prediction_model import PredictionModel

#: Characters in a line of encoded numbers.
LINE = 96

#: The file. ``{description}`` and ``{arrays}`` are literals of Python.
SOURCE = '''\
"""A model that was learned with kernelmdp, as a function of CasADi.

``model(state, action)`` returns next_mean, next_std and, unless the reward was a known function,
reward_mean and reward_std. It is symbolic and can be differentiated. Angles are angles here, not
cosines and sines. Next states are not wrapped. ``DESCRIPTION`` says what the model is of.
"""

import array
import base64

import casadi

DESCRIPTION = {description}

#: Numbers by name: the shape, and doubles in base 64, row by row.
ARRAYS = {{
{arrays}}}


def _numbers(name):
    """The matrices of an array: one for each index of its first axis if it has three axes."""
    shape, text = ARRAYS[name]
    numbers = array.array("d", base64.b64decode(text))
    rows, columns = (shape[-2], shape[-1]) if len(shape) > 1 else (shape[0], 1)
    size = rows * columns
    parts = [
        casadi.reshape(casadi.DM(list(numbers[at : at + size])), columns, rows).T
        for at in range(0, len(numbers), size)
    ]
    return parts if len(shape) == 3 else parts[0]


def _posterior(name, point):
    """Mean and standard deviation: an affine part plus sums of squared exponentials."""
    angles = _numbers(name + "_angular") * point
    embedded = casadi.vertcat(point, casadi.cos(angles), casadi.sin(angles))
    mean = _numbers(name + "_level") + casadi.mtimes(_numbers(name + "_slopes"), point)
    precisions, shares = _numbers(name + "_precisions"), _numbers(name + "_shares")
    prior, sign = _numbers(name + "_prior"), _numbers(name + "_sign")
    weights, variance = _numbers(name + "_weights"), 0
    pairs = zip(_numbers(name + "_centres"), _numbers(name + "_roots"))
    for e, (centres, root) in enumerate(pairs):
        differences = centres - casadi.repmat(embedded.T, centres.shape[0], 1)
        exponents = casadi.mtimes(differences**2, precisions[e, :].T)
        values = casadi.exp(-0.5 * exponents)
        rows = casadi.vertcat(*[each[e, :] for each in weights])
        mean += casadi.mtimes(rows, values)
        square = casadi.sumsqr(casadi.mtimes(root.T, values))
        # The lower limit keeps the derivative of the root finite.
        variance += shares[:, e] * casadi.fmax(prior[e] + sign[e] * square, 1e-300)
    return mean, casadi.sqrt(variance)


def make(name="model"):
    """Make the function again, for example under another name."""
    state = casadi.MX.sym("state", len(DESCRIPTION["states"]))
    action = casadi.MX.sym("action", len(DESCRIPTION["actions"]))
    point = casadi.vertcat(state, action)
    outputs = list(_posterior("transition", point))
    if "reward_level" in ARRAYS:
        outputs += _posterior("reward", point)
    names = ["state", "action"], DESCRIPTION["outputs"]
    return casadi.Function(name, [state, action], outputs, *names)


model = make()
'''


def casadi_source(model: PredictionModel) -> str:
    """Write a model as Python.

    Args:
        model: The model.

    Returns:
        The text of the file.
    """
    entries = []
    for name, values in model.arrays.items():
        if name.startswith("check_"):
            continue
        text = base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
        lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
        content = "\n".join(f'        "{line}"' for line in lines)
        entries.append(f'    "{name}": (\n        {values.shape},\n{content},\n    ),\n')
    description = repr(json.loads(json.dumps(model.description)))
    return SOURCE.format(description=description, arrays="".join(entries))
