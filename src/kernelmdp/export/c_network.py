"""The part of a controller in C that evaluates a network."""

from collections.abc import Iterable

import numpy as np

from kernelmdp.export.controller_table import ControllerTable

#: Variables of a network. ``network_sizes`` fills them in, as it does with the statements.
NETWORK_VARIABLES = "    double inputs[{features}]{hidden};\n{choice}"
#: The network, between the state and the limits of the action.
NETWORK = """\
    (void)row;
{inputs}{layers}"""

#: A layer of tanh.
HIDDEN = """\
    for (j = 0; j < {outputs}; j++) {{
        double sum = kmdp_biases{layer}[j];
        for (i = 0; i < {inputs}; i++) sum += kmdp_weights{layer}[j * {inputs} + i] * {given}[i];
        hidden{layer}[j] = tanh(sum);
    }}
"""
#: The last layer, whose outputs are actions.
ACTIONS = HIDDEN.replace("hidden{layer}[j] = tanh(sum)", "action[j] = sum")
#: The last layer, whose outputs are scores of finite actions. The first of equal scores counts.
SCORES = HIDDEN.replace(
    "        hidden{layer}[j] = tanh(sum);\n",
    "        if (j == 0 || sum > highest) {{\n"
    "            highest = sum;\n"
    "            best = j;\n"
    "        }}\n",
)
#: The finite action with the highest score.
BEST = "    for (j = 0; j < {q}; j++) action[j] = kmdp_choices[best * {q} + j];\n"
#: Variables of the choice of a finite action.
CHOICE = "    int best = 0;\n    double highest = 0.0;\n"


def network_sizes(table: ControllerTable) -> dict[str, object]:
    """Write the parts of ``NETWORK`` that depend on the network.

    Args:
        table: The controller.

    Returns:
        Statements and sizes by name.
    """
    law, last = table.law, 0
    while f"weights{last + 1}" in law:
        last += 1
    finite, layers = "choices" in law, []
    for layer in range(last + 1):
        outputs, inputs = law[f"weights{layer}"].shape
        text = HIDDEN if layer < last else SCORES if finite else ACTIONS
        given = f"hidden{layer - 1}" if layer else "inputs"
        layers.append(text.format(outputs=outputs, inputs=inputs, given=given, layer=layer))
    if finite:
        layers.append(BEST.format(q=len(table.action_low)))
    widths = [law[f"biases{layer}"].shape[0] for layer in range(last)]
    return {
        "features": law["weights0"].shape[1],
        "hidden": "".join(f", hidden{layer}[{width}]" for layer, width in enumerate(widths)),
        "choice": CHOICE if finite else "",
        "inputs": "".join(_inputs(table)),
        "layers": "".join(layers),
    }


def _inputs(table: ControllerTable) -> Iterable[str]:
    """Statements that make the inputs of the network: cosines, and sines behind all coordinates."""
    factors = table.law.get("angular", np.zeros(len(table.inputs.low)))
    angles = [f"kmdp_angular[{axis}] * state[{axis}]" for axis in range(len(factors))]
    values = [
        f"cos({angle})" if factor else f"state[{axis}]"
        for axis, (angle, factor) in enumerate(zip(angles, factors, strict=True))
    ]
    pairs = zip(angles, factors, strict=True)
    values += [f"sin({angle})" for angle, factor in pairs if factor]
    if len(values) < table.law["weights0"].shape[1]:
        values.append(f"period / {float(table.horizon)!r}")
    return (f"    inputs[{place}] = {value};\n" for place, value in enumerate(values))
