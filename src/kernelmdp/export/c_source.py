"""Write a controller as one file of C99, without dependencies beyond the standard library."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelmdp.export.c_network import NETWORK, NETWORK_VARIABLES, network_sizes
from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.export.self_check import TOLERANCE, SelfCheck

#: Numbers in a line of a table. A line stays short enough to read.
PER_LINE = 8

#: The beginning of a file: what the controller is, and what its functions do.
HEADER = """\
/* A controller that was learned with kernelmdp, as C99.

{comment}

void kmdp_action(const double *observation, int period, double *action);
  observation: {inputs} numbers in the order of "inputs". Pass finite numbers.
  period: counted from 0. Periods outside 0 to {last} count as the nearest of these.
  action: {actions} numbers in the order of "actions".
int kmdp_self_check(void);
  Returns how many of {checks} stored actions differ by more than {tolerance}. 0 is a success.

Compile with: gcc -std=c99 -O2 -c controller.c, and link with -lm.
With -DKMDP_MAIN it is a program that checks itself and measures the time of a decision. */

#include <math.h>

void kmdp_action(const double *observation, int period, double *action);
int kmdp_self_check(void);

"""

#: How numbers are limited. It is defined once, for states, actions and places in a table.
CLIP = """\
/* NaN becomes the lowest value, so that no index leaves a table. */
static double kmdp_clip(double x, double low, double high)
{
    if (!(x >= low)) return low;
    return x > high ? high : x;
}

"""

#: The self-check, and the program that runs it and measures the time of a decision.
SELF_CHECK = """\
int kmdp_self_check(void)
{{
    int i, j, different = 0;
    for (i = 0; i < {checks}; i++) {{
        double action[{q}];
        int wrong = 0;
        kmdp_action(kmdp_check_observations + i * {k}, kmdp_check_periods[i], action);
        for (j = 0; j < {q}; j++) {{
            double expected = kmdp_check_actions[i * {q} + j];
            if (!(fabs(action[j] - expected) <= {tolerance} * (1.0 + fabs(expected)))) wrong = 1;
        }}
        different += wrong;
    }}
    return different;
}}

#ifdef KMDP_MAIN
#include <stdio.h>
#include <time.h>

int main(void)
{{
    const long decisions = 1000000L;
    double action[{q}], sum = 0.0;
    int different = kmdp_self_check();
    long i;
    double seconds;
    clock_t start = clock();
    for (i = 0; i < decisions; i++) {{
        int row = (int)(i % {checks});
        kmdp_action(kmdp_check_observations + row * {k}, kmdp_check_periods[row], action);
        sum += action[0];
    }}
    printf("%d of {checks} actions differ\\n", different);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("%.3f us a decision\\n", 1e6 * seconds / (double)decisions);
    return different != 0 || sum != sum;
}}
#endif
"""

#: Actions that are an offset minus gains times the state.
LINEAR = """\
    for (j = 0; j < {q}; j++) {{
        double value = kmdp_offsets[row * {q} + j];
        for (i = 0; i < {m}; i++) value -= kmdp_gains[(row * {q} + j) * {m} + i] * state[i];
        action[j] = value;
    }}
"""

#: Actions of the nearest of listed states.
POINTS = """\
    for (i = 0; i < {nodes}; i++) {{
        double square = 0.0;
        for (j = 0; j < {m}; j++) {{
            double distance = kmdp_nodes[i * {m} + j] - state[j];
            square += distance * distance;
        }}
        if (i == 0 || square < least) {{
            least = square;
            nearest = i;
        }}
    }}
    place = (long)row * {nodes} + nearest;
    for (j = 0; j < {q}; j++) action[j] = {entry};
"""

#: Actions of the nearest node of a regular grid.
NEAREST = """\
    for (i = 0; i < {m}; i++) {{
        int n = kmdp_counts[i];
        int index = (int)floor((state[i] - kmdp_first[i]) / kmdp_spacing[i] + 0.5);
        if (index > n - 1) index = kmdp_periodic[i] ? 0 : n - 1;
        if (index < 0) index = 0;
        node = node * n + index;
    }}
    place = (long)row * {nodes} + node;
    for (j = 0; j < {q}; j++) action[j] = {entry};
"""

#: Actions that are interpolated between the corners of a cell of a regular grid.
INTERPOLATED = """\
    for (i = 0; i < {m}; i++) {{
        int last = kmdp_counts[i] - (kmdp_periodic[i] ? 1 : 2);
        double place = (state[i] - kmdp_first[i]) / kmdp_spacing[i];
        base[i] = (int)kmdp_clip(floor(place), 0.0, (double)last);
        fraction[i] = kmdp_clip(place - base[i], 0.0, 1.0);
    }}
    for (j = 0; j < {q}; j++) action[j] = 0.0;
    for (corner = 0; corner < {corners}; corner++) {{
        double weight = 1.0;
        long node = 0;
        for (i = 0; i < {m}; i++) {{
            int side = (corner >> i) & 1;
            weight *= side ? fraction[i] : 1.0 - fraction[i];
            node = node * kmdp_counts[i] + (base[i] + side) % kmdp_counts[i];
        }}
        for (j = 0; j < {q}; j++) {{
            action[j] += weight * kmdp_table[((long)row * {nodes} + node) * {q} + j];
        }}
    }}
"""

#: Types of the arrays of a controller.
C_TYPES = {"float64": "double", "float32": "float", "int64": "int", "uint8": "unsigned char"}
#: Code and variables of each kind of controller.
KINDS = {
    "linear": (LINEAR, ""),
    "points": (POINTS, "    int nearest = 0;\n    long place;\n    double least = 0.0;\n"),
    "nearest": (NEAREST, "    long node = 0, place;\n"),
    "interpolated": (INTERPOLATED, "    int corner, base[{m}];\n    double fraction[{m}];\n"),
    "network": (NETWORK, NETWORK_VARIABLES),
}


def c_source(table: ControllerTable, check: SelfCheck) -> str:
    """Write a controller as C.

    Args:
        table: The controller.
        check: Its self-check, which the file carries.

    Returns:
        The text of the file.

    >>> import kernelmdp as km
    >>> from kernelmdp.export import controller_of
    >>> export = controller_of(km.Greedy("lqr-1d", seed=0, planner="riccati"))
    >>> "void kmdp_action" in c_source(export.table, export.check)
    True
    """
    k, m, q = len(table.inputs.names), len(table.inputs.low), len(table.action_low)
    sizes: dict[str, Any] = {
        "k": k,
        "m": m,
        "q": q,
        "corners": 2**m,
        "checks": len(check.periods),
    }
    sizes["tolerance"] = TOLERANCE
    if "table" in table.law:
        sizes |= {"nodes": table.law["table"].shape[1], "entry": f"kmdp_table[place * {q} + j]"}
    if "choices" in table.law:
        sizes["entry"] = f"kmdp_choices[kmdp_table[place] * {q} + j]"
    if "weights0" in table.law:
        sizes |= network_sizes(table)
    body, variables = KINDS[table.kind]
    comment = json.dumps(table.summary(), indent=1).replace("*/", "* /").replace("/*", "/ *")
    header = HEADER.format(
        comment=comment,
        inputs=k,
        last=table.horizon - 1,
        actions=q,
        checks=len(check.periods),
        tolerance=f"{TOLERANCE:g} * (1 + |action|)",
    )
    return "".join(
        [
            header,
            *_tables(table, check),
            CLIP,
            "void kmdp_action(const double *observation, int period, double *action)\n{\n",
            f"    double state[{m}];\n    int i, j, row;\n{variables.format(**sizes)}",
            f"    if (period > {table.horizon - 1}) period = {table.horizon - 1};\n",
            "    if (period < 0) period = 0;\n    row = kmdp_rows[period];\n",
            *_state(table),
            body.format(**sizes),
            *_limits("action", table.action_low, table.action_high),
            "}\n\n",
            SELF_CHECK.format(**sizes),
        ]
    )


def _tables(table: ControllerTable, check: SelfCheck) -> Iterable[str]:
    """Static arrays: those of the law, then those of the self-check."""
    yield _array("int", "rows", table.rows)
    for name, values in table.law.items():
        yield _array(C_TYPES[str(values.dtype)], name, values)
    if "counts" in table.law:
        yield _array("int", "periodic", table.inputs.arrays()["periodic"].astype(int))
    for name, values in check.arrays().items():
        yield _array(C_TYPES[str(values.dtype)], name, values)


def _state(table: ControllerTable) -> Iterable[str]:
    """Statements that make a state of an observation."""
    inputs, axis = table.inputs, 0
    seconds = dict(inputs.angle_pairs)
    for i, shift in enumerate(inputs.shift):
        if i in seconds.values():
            continue
        value = f"observation[{i}]"
        if i in seconds:
            value = f"atan2(observation[{seconds[i]}], observation[{i}])"
        yield f"    state[{axis}] = {value}{f' - {float(shift)!r}' if shift else ''};\n"
        if axis in inputs.periodic:
            low, high = float(inputs.low[axis]), float(inputs.high[axis])
            width, name = high - low, f"(state[{axis}] - ({low!r}))"
            yield f"    state[{axis}] -= {width!r} * floor({name} / {width!r});\n"
        axis += 1
    yield from _limits("state", inputs.low, inputs.high)


def _limits(name: str, low: np.ndarray, high: np.ndarray) -> Iterable[str]:
    """Statements that clip the coordinates that have limits."""
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if np.isfinite(a) and np.isfinite(b):
            place = f"{name}[{axis}]"
            yield f"    {place} = kmdp_clip({place}, {float(a)!r}, {float(b)!r});\n"


def _array(kind: str, name: str, values: np.ndarray) -> str:
    digits = {"float": ".9g", "double": ".17g"}.get(kind, "d")
    texts = [format(x, digits) for x in values.ravel().tolist()]
    lines = [", ".join(texts[i : i + PER_LINE]) for i in range(0, len(texts), PER_LINE)]
    content = ",\n    ".join(lines)
    return f"static const {kind} kmdp_{name}[{len(texts)}] = {{\n    {content}}};\n\n"
