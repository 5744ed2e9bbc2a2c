"""Side by side with other libraries: run cells, keep them, write tables and figures.

    make compare                     # everything: 80 minutes on one core, may be interrupted
    .venv-bench/bin/python benchmarks/compare/run.py --only gp --only bandits
    .venv-bench/bin/python benchmarks/compare/run.py --quick      # a tiny budget, kept apart
    .venv-bench/bin/python benchmarks/compare/run.py --write      # tables, figures and the page

A part is a module with ``cells(quick)`` (what there is to run, as dictionaries), ``run(cell)``,
``limit(cell)`` (seconds it may take), ``table(found)`` and ``figure(found, path)``; PART.md is its
text. Every cell runs in a process of its own, in at most 10 GB, and is kept in results/PART.json;
one that is there is not run again. A peer that cannot be installed, that fails or that takes too
long is a result too: its message is kept (``--again`` tries those once more).
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parents[1] / "docs" / "compare.md"
FIGURES = PAGE.parent / "figures"
PARTS = ("gp", "speed", "control", "tables", "bandits", "growth", "hot_path")
MEMORY = 10 * 10**9
PACKAGES = (
    "kernelmdp", "jax", "jaxlib", "numpy", "scipy", "scikit-learn", "torch", "gpytorch",
    "linear_operator", "botorch", "gpjax", "gymnasium", "stable-baselines3", "rlberry",
    "rlberry-scool",
)  # fmt: skip


def load(part: str, quick: bool) -> dict[str, Any]:
    path = place(part, quick)
    return json.loads(path.read_text()) if path.exists() else {"part": part, "cells": []}


def place(part: str, quick: bool) -> pathlib.Path:
    return RESULTS / f"{part}{'-quick' if quick else ''}.json"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, Any]:
    lines = pathlib.Path("/proc/cpuinfo")
    text = lines.read_text().splitlines() if lines.exists() else []
    model = next((x.split(":")[1].strip() for x in text if x.startswith("model name")), "unknown")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": model, "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def played(part: str, cell: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The result of one cell, or how it failed."""
    command = [sys.executable, str(HERE / "run.py"), "--cell", part, json.dumps(cell)]
    begin, load = time.perf_counter(), os.getloadavg()[0]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {seconds:g} s"}
    if ended.returncode:
        said = [line for line in ended.stderr.splitlines() if line.strip()]
        return {"failed": said[-1] if said else f"ended with code {ended.returncode}"}
    found = json.loads(ended.stdout.splitlines()[-1])
    return found | {"process_seconds": round(time.perf_counter() - begin, 1), "load": load}


def run_part(part: str, *, quick: bool, again: bool, match: str) -> None:
    module = importlib.import_module(part)
    kept = load(part, quick)
    kept |= {"machine": machine(), "versions": versions()}
    if again:
        kept["cells"] = [one for one in kept["cells"] if "failed" not in one["found"]]
    done = [one["cell"] for one in kept["cells"]]
    for cell in module.cells(quick):
        if cell in done or match not in json.dumps(cell):
            continue
        found = played(part, cell, module.limit(cell))
        kept["cells"].append({"cell": cell, "found": found})
        print(part, cell, found.get("failed", f"{found.get('process_seconds')} s"), flush=True)
        RESULTS.mkdir(exist_ok=True)
        place(part, quick).write_text(json.dumps(kept, indent=0) + "\n")


def write(quick: bool) -> None:
    """The page, from what is there."""
    import matplotlib

    matplotlib.use("Agg")
    texts = [(HERE / "opening.md").read_text().rstrip()]
    for part in PARTS:
        kept = load(part, quick)
        if not kept["cells"]:
            continue
        module = importlib.import_module(part)
        figure = FIGURES / f"compare-{part}.png"
        module.figure(kept["cells"], figure)
        text = (HERE / f"{part}.md").read_text().strip()
        failures = [one for one in kept["cells"] if "failed" in one["found"]]
        texts.append(
            f"## {module.TITLE}\n\n{text}\n\n{module.table(kept['cells'])}\n\n"
            f"![{module.TITLE}](figures/{figure.name})\n\n"
            f"`.venv-bench/bin/python benchmarks/compare/run.py --only {part}`. {described(kept)}"
        )
        if failures:
            rows = sorted({f"- {label(one['cell'])}: {one['found']['failed']}" for one in failures})
            texts.append("Not done, and why:\n\n" + "\n".join(rows))
    text = "\n\n".join(texts) + "\n"
    if quick:
        print(text)
    else:
        PAGE.write_text(text)


def described(kept: dict[str, Any]) -> str:
    own, loads = kept["machine"], [one["found"].get("load", 0.0) for one in kept["cells"]]
    names = ", ".join(f"{k} {v}" for k, v in kept["versions"].items() if v != "not installed")
    return (
        f"{own['cpu']}, {own['cores']} core(s); load {min(loads):.1f} to {max(loads):.1f} when "
        f"cells began. Versions: {names}."
    )


def label(cell: dict[str, Any]) -> str:
    return ", ".join(
        f"{value}" if isinstance(value, str) else f"{k} = {value}" for k, value in cell.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="a tiny budget; kept apart")
    parser.add_argument("--again", action="store_true", help="try what failed once more")
    parser.add_argument("--match", default="", help="only cells with this in their JSON")
    parser.add_argument("--write", action="store_true", help="write the page, run nothing")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if chosen.cell:
        part, text = chosen.cell
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(importlib.import_module(part).run(json.loads(text))))
        return
    if not chosen.write:
        for part in chosen.only or PARTS:
            run_part(part, quick=chosen.quick, again=chosen.again, match=chosen.match)
    write(chosen.quick)


if __name__ == "__main__":
    main()
