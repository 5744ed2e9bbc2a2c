"""Benchmark of the GP layer against its peers: one run, one machine, ratios.

    python benchmarks/gp/run.py [--quick] [--only NAME ...] [--out PATH]

Every library runs in a process of its own, because the thread pools of torch, JAX and OpenBLAS
spin on each other's cores and BoTorch changes GPyTorch's defaults; all processes may use all
cores. They are timed in turn, round after round, one at a time, so that the noise of the machine
hits all alike, and in a new order each round. Nothing is asserted about time: the table says
whether a bar is met.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
import problem

HERE = Path(__file__).resolve().parent
STD_TOLERANCE = 0.005  # "equal accuracy" for mean and std
COVARIANCE_TOLERANCE = 0.02  # and for draws, on top of the Monte-Carlo error
DISTURBED = 0.3  # cores kept busy by others while a timing ran
CHECKED = 1_000  # test points on which an append is checked
COVARIANCE_POINTS = 20
SMALL, LARGE = 1_000, problem.LARGEST
GEMM_SHAPES = ((2000, 2000, 10000), (2000, 2000, 2000), (4000, 4000, 4000))
#: Goals against the fastest accurate peer, as shares of its time.
GOALS = {"append": 1 / 10, "predict": 1 / 12, "draw": 1 / 10}
#: Other numbers of data and dimensions, where the goal is to be faster than every accurate peer:
#: few data, and a dimension in which the kernel does not compile.
OTHERS = {"few": (200, problem.DIMENSION), "wide": (problem.TRAIN, 8)}
#: Peak memory allowed for the exact posterior of ``LARGE`` points, whose factor takes 3.2 GB.
LARGE_GIGABYTES = 4.0
TABLE_ROWS = (
    "append", "predict", "scaling", "exact", "draw", *OTHERS, "memory", "large", "retraces"
)  # fmt: skip
MODULES = {"kernelmdp": "ours"}  # the others live in peers.py


@dataclass(frozen=True)
class Task:
    """One thing to time: a contender at a number of data points, or the matrix product."""

    library: str
    contender: str
    work: str  # "append", "predict", "draw" or "gemm"
    n: int = problem.TRAIN
    d: int = problem.DIMENSION

    @property
    def label(self) -> str:
        return self.contender + size(self.n, self.d)


def size(n: int, d: int) -> str:
    """Where a row differs from the common problem."""
    at = "" if n == problem.TRAIN else f" at n = {n:,}"
    return at if d == problem.DIMENSION else f"{at} at d = {d}"


# --- in the process of one library -----------------------------------------------------------


class Neighbours:
    """Cores that other processes kept busy meanwhile (Linux; elsewhere 0).

    A busy neighbour slows threads that wait for one another far more than its share, and so
    spoils the ratios, not only the times.
    """

    cores = 0.0

    def _now(self) -> tuple[float, float, float]:
        stat = Path("/proc/stat")
        busy = 0.0
        if stat.exists():
            fields = [float(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
            busy = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, time.process_time()

    def __enter__(self) -> Neighbours:
        self.before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        wall, busy, own = (b - a for a, b in zip(self.before, self._now(), strict=True))
        self.cores = max(0.0, (busy - own) / wall) if busy else 0.0


class Host:
    """Holds the fitted contenders of one library and runs what the parent asks for."""

    def __init__(self) -> None:
        self.fitted: dict[tuple[str, int], Any] = {}

    def contender(self, task: Task) -> Any:
        key = (task.contender, task.n)
        if key not in self.fitted:
            module = import_module(MODULES.get(task.library, "peers"))
            kind = next(k for k in module.CONTENDERS if k.name == task.contender)
            data = problem.data(task.n)
            self.fitted[key] = kind(data.X, data.y)
        return self.fitted[key]

    def job(self, task: Task) -> Callable[[int], Any]:
        data = problem.data(task.n)
        model = self.contender(task)
        if task.work == "append":
            # Conditioned *and* ready: a cache left to the first prediction counts too.
            return lambda _: model.append(data.X_new, data.y_new).mean(data.Z[:1])
        if task.work == "predict":
            return lambda _: model.predict(data.Z)
        Z = data.Z[: model.draw_points]
        return lambda seed: model.draw(Z, seed)

    def prime(self, task: Task, draws: int) -> dict[str, Any]:
        """Fit, and give the answers whose accuracy the parent judges."""
        data, model = problem.data(task.n), self.contender(task)
        answer: dict[str, Any] = {"facts": model.facts()}
        if task.work == "draw" and model.draw_points != problem.TEST:
            answer["facts"]["points"] = model.draw_points
        if task.work == "append":
            answer["got"] = model.append(data.X_new, data.y_new).predict(data.Z[:CHECKED])
        elif task.work == "predict":
            answer["got"] = model.predict(data.Z)
        else:
            answer["got"] = model.draws(data.Z[:COVARIANCE_POINTS], draws)
        return answer

    def reference(self, task: Task) -> Any:
        """The exact answer, in the dimension of this process."""
        data = problem.data(task.n)
        X, y, Z = data.X, data.y, data.Z
        if task.work == "append":
            X, y = np.concatenate([X, data.X_new]), np.concatenate([y, data.y_new])
            Z = Z[:CHECKED]
        return problem.Reference(X, y).predict(Z)

    def seconds(self, task: Task, seed: int) -> tuple[float, float]:
        """Mean time of a few calls when a call is short, else of one; and what others used.

        The call before is not timed. It compiles, the first time; and memory that the system
        took back while others had their turn is expensive to touch again, on virtual machines by
        more than the work itself.
        """
        job = self.job(task)
        gc.collect()
        with Neighbours() as neighbours:
            job(0)
            count, total = 0, 0.0
            while count == 0 or (total < 0.05 and count < 50):
                start = time.perf_counter()
                job(1000 * seed + count)
                total += time.perf_counter() - start
                count += 1
        return total / count, neighbours.cores

    def gemm(self, repeats: int) -> tuple[float, float]:
        """The best rate of float64 matrix products, in flops per second."""
        rng, best = np.random.default_rng(0), 0.0
        with Neighbours() as neighbours:
            for m, k, n in GEMM_SHAPES:
                A, B, C = rng.random((m, k)), rng.random((k, n)), np.empty((m, n))
                for _ in range(repeats):
                    start = time.perf_counter()
                    np.matmul(A, B, out=C)
                    best = max(best, 2.0 * m * k * n / (time.perf_counter() - start))
        return best, neighbours.cores


def serve(connection: Any) -> None:
    warnings.simplefilter("ignore")  # jitter and deprecation notes of the peers
    host = Host()
    while (request := connection.recv()) is not None:
        method, arguments = request
        try:
            connection.send((True, getattr(host, method)(*arguments)))
        except ImportError as error:
            connection.send((False, f"not installed: {error}"))
        except Exception as error:
            connection.send((False, f"{type(error).__name__}: {error}"))


# --- in the parent ---------------------------------------------------------------------------


class FailedError(Exception):
    """A contender could not do its work; the message goes into the results."""


class Hosts:
    """One process per library and dimension, started when first needed, asked one at a time."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.running: dict[tuple[str, int], tuple[Any, Any]] = {}

    def ask(self, library: str, d: int, method: str, *arguments: Any) -> Any:
        if (library, d) not in self.running:
            near, far = self.context.Pipe()
            process = self.context.Process(target=serve, args=(far,), daemon=True)
            os.environ["GP_DIMENSION"] = str(d)  # a new process reads it; this one has done so
            process.start()
            os.environ["GP_DIMENSION"] = str(problem.DIMENSION)
            far.close()
            self.running[library, d] = (process, near)
        connection = self.running[library, d][1]
        try:
            connection.send((method, arguments))
            good, answer = connection.recv()
        except (EOFError, OSError) as error:
            raise FailedError(f"the process of {library} died") from error
        if not good:
            raise FailedError(answer)
        return answer

    def close(self) -> None:
        for process, connection in self.running.values():
            with contextlib.suppress(OSError):
                connection.send(None)
            process.join(5)
            if process.is_alive():
                process.terminate()


def tasks_for(only: list[str]) -> list[Task]:
    """All tasks, or those of the rows and contenders named in `only`."""
    ours = import_module("ours").CONTENDERS
    kinds = [*ours, *import_module("peers").CONTENDERS]
    rows = [name for name in only if name in TABLE_ROWS]
    names = [name.lower() for name in only if name not in TABLE_ROWS]

    def wanted(row: str, contender: str) -> bool:
        return (not rows or row in rows) and (
            not names or any(name in contender.lower() for name in names)
        )

    tasks = [
        Task(kind.library, kind.name, work)
        for work in ("append", "predict", "draw")
        for kind in kinds
        if work in kind.rows and wanted(work, kind.name)
    ]
    default, exact = ours[0], ours[-1]
    for row, (n, d) in OTHERS.items():
        tasks += [
            Task(kind.library, kind.name, work, n, d)
            for work in ("append", "predict")
            for kind in (default, *kinds[len(ours) :])
            if work in kind.rows and wanted(row, kind.name)
        ]
    if wanted("scaling", default.name):
        for work in ("append", "predict"):
            tasks += [Task(default.library, default.name, work, n) for n in (SMALL, LARGE)]
    if wanted("exact", exact.name):
        needed = Task(exact.library, exact.name, "predict")
        tasks += [needed] * (needed not in tasks) + [Task("numpy", "numpy", "gemm")]
    return tasks


def judge(task: Task, answer: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    if task.work == "draw":
        errors: dict[str, float] = exact["draw"].errors(answer["got"])
        return errors
    return problem.prediction_errors(answer["got"], exact[task.work])


def references(draws: int) -> dict[str, Any]:
    data = problem.data()
    reference = problem.Reference(data.X, data.y)
    after = problem.Reference(
        np.concatenate([data.X, data.X_new]), np.concatenate([data.y, data.y_new])
    )
    few = data.Z[:COVARIANCE_POINTS]
    return {
        "predict": reference.predict(data.Z),
        "append": after.predict(data.Z[:CHECKED]),
        "draw": problem.DrawJudge(reference.predict(few)[0], reference.covariance(few), draws),
    }


def measure(tasks: list[Task], rounds: int, draws: int) -> list[dict[str, Any]]:
    """Prime everything, then time it round by round."""
    exact, hosts = references(draws), Hosts()
    others: dict[tuple[str, int, int], Any] = {}
    entries: dict[Task, dict[str, Any]] = {}
    try:
        for task in tasks:
            entry: dict[str, Any] = {"row": task.work, "contender": task.contender}
            entry |= {"n": task.n, "d": task.d, "facts": {}, "rounds": [], "busy_neighbours": []}
            entries[task] = entry
            if task.work == "gemm":
                continue
            print(f"  preparing {task.work}: {task.label}", file=sys.stderr, flush=True)
            try:
                answer = hosts.ask(task.library, task.d, "prime", task, draws)
            except FailedError as failure:
                entry["failed"] = str(failure)
                continue
            entry["facts"] = answer["facts"]
            if (task.n, task.d) == (problem.TRAIN, problem.DIMENSION):
                entry["accuracy"] = judge(task, answer, exact)
            elif (task.n, task.d) in OTHERS.values():
                key = (task.work, task.n, task.d)
                if key not in others:
                    others[key] = hosts.ask("numpy", task.d, "reference", task)
                entry["accuracy"] = problem.prediction_errors(answer["got"], others[key])
        for index in range(rounds):
            print(f"  round {index + 1} of {rounds}", file=sys.stderr, flush=True)
            shift = index * len(tasks) // rounds
            for task in [*tasks[shift:], *tasks[:shift]]:
                entry = entries[task]
                if "failed" in entry:
                    continue
                time.sleep(0.05)  # idle threads of the last process stop spinning
                try:
                    call = ("gemm", 2) if task.work == "gemm" else ("seconds", task, index)
                    value, neighbours = hosts.ask(task.library, task.d, *call)
                    entry["rounds"].append(value)
                    entry["busy_neighbours"].append(round(neighbours, 2))
                except FailedError as failure:
                    entry["failed"] = str(failure)
    finally:
        hosts.close()
    for entry in entries.values():
        if entry["rounds"]:
            values = entry["rounds"]
            entry["median"] = statistics.median(values)
            entry["min"], entry["max"] = min(values), max(values)
    return list(entries.values())


def probe(name: str) -> dict[str, Any]:
    """Memory and retraces are counted in a fresh process."""
    command = [sys.executable, str(HERE / "ours.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return {"failed": lines[-1]}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


# --- what it means ---------------------------------------------------------------------------


def accurate(entry: dict[str, Any]) -> bool:
    accuracy = entry.get("accuracy", {})
    if entry["row"] == "draw":
        entry_slack, scale_slack = accuracy["monte_carlo_q99"], accuracy["scale_monte_carlo_q99"]
        return bool(
            accuracy["over_posterior_variance"] <= COVARIANCE_TOLERANCE + entry_slack
            and accuracy["scale"] <= COVARIANCE_TOLERANCE + scale_slack
        )
    return bool(accuracy["std_max"] <= STD_TOLERANCE)


def bar(
    row: str, what: str, value: float, limit: str, met: bool, best: float | None = None
) -> dict[str, Any]:
    """`value` is of medians; `best` the same of minima, which a busy machine disturbs less."""
    return {"row": row, "what": what, "value": value, "of_minima": best, "bar": limit, "met": met}


def verdicts(
    entries: list[dict[str, Any]], probes: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    ours = [kind.name for kind in import_module("ours").CONTENDERS]
    done = [e for e in entries if "median" in e and "failed" not in e]
    bars: list[dict[str, Any]] = []

    def at(row: str, n: int = problem.TRAIN, d: int = problem.DIMENSION) -> list[dict[str, Any]]:
        return [e for e in done if (e["row"], e["n"], e["d"]) == (row, n, d)]

    def find(row: str, name: str, n: int = problem.TRAIN) -> dict[str, Any] | None:
        return next((e for e in at(row, n) if e["contender"] == name), None)

    for row, goal in GOALS.items():
        rivals = [e for e in at(row) if e["contender"] not in ours and accurate(e)]
        # Against the libraries as they ship, and against what our repair makes of one.
        shipped = [e for e in rivals if "repaired" not in e["contender"]]
        for peers in (shipped, rivals) if len(shipped) < len(rivals) else (rivals,):
            if not peers:
                continue
            fastest = min(peers, key=lambda e: e["median"])
            for name in ours[:2]:  # the exact engine has a bar of its own
                if entry := find(row, name):
                    ratio, good = entry["median"] / fastest["median"], accurate(entry)
                    best = entry["min"] / min(e["min"] for e in peers)
                    what = f"{name} / {fastest['contender']}" + ("" if good else " (inaccurate)")
                    bars.append(
                        bar(row, what, ratio, f"<= {goal:.2g}", good and ratio <= goal, best)
                    )
    for row, (n, d) in OTHERS.items():
        for work in ("append", "predict"):
            good = [e for e in at(work, n, d) if accurate(e)]
            own = [e for e in good if e["contender"] == ours[0]]
            rivals = [e for e in good if e["contender"] not in ours]
            if own and rivals:
                fastest = min(rivals, key=lambda e: e["median"])
                ratio = own[0]["median"] / fastest["median"]
                best = own[0]["min"] / min(e["min"] for e in rivals)
                what = f"{work}{size(n, d)}: {ours[0]} / {fastest['contender']}"
                bars.append(bar(row, what, ratio, "< 1", ratio < 1, best))
    for work in ("append", "predict"):
        small, large = find(work, ours[0], SMALL), find(work, ours[0], LARGE)
        if small and large:
            ratio, best = large["median"] / small["median"], large["min"] / small["min"]
            what = f"{work}, n = {LARGE:,} / n = {SMALL:,}"
            bars.append(bar("scaling", what, ratio, "<= 1.5", ratio <= 1.5, best))
    exact, gemm = find("predict", ours[-1]), find("gemm", "numpy")
    if exact and gemm:
        # Triangular solve and mean; evaluating the kernel costs time but counts for nothing.
        flops = problem.TEST * (problem.TRAIN**2 + 2.0 * problem.TRAIN)
        share, best = (flops / exact[key] / gemm["max"] for key in ("median", "min"))
        what = f"{ours[-1]} / GEMM peak of {gemm['max'] / 1e9:.1f} Gflop/s"
        bars.append(bar("exact", what, share, ">= 0.6", share >= 0.6, best))
    if "peak_bytes" in probes.get("memory", {}):
        gib = probes["memory"]["peak_bytes"] / 2**30
        what = f"peak of {probes['memory']['points']:,} points, in GiB"
        bars.append(bar("memory", what, gib, "< 1", gib < 1.0))
    if "peak_bytes" in probes.get("large", {}):
        peak = probes["large"]["peak_bytes"] / 1e9
        what = f"peak of the exact posterior of {probes['large']['points']:,} points, in GB"
        bars.append(bar("large", what, peak, f"< {LARGE_GIGABYTES:g}", peak < LARGE_GIGABYTES))
    if "compilations_after" in probes.get("retraces", {}):
        count = probes["retraces"]["compilations_after"]
        what = f"compilations in episodes 3 to {probes['retraces']['calls']}"
        bars.append(bar("retraces", what, count, "0", count == 0))
    return bars


def show(
    entries: list[dict[str, Any]], probes: dict[str, dict[str, Any]], bars: list[dict[str, Any]]
) -> None:
    units = {"gemm": (1e-9, "Gflop/s")}
    for row in ("append", "predict", "draw", "gemm"):
        here = [e for e in entries if e["row"] == row]
        if not here:
            continue
        scale, unit = units.get(row, (1e3, "ms"))
        print(f"\n{row} [{unit}], median (min..max)")
        for e in sorted(here, key=lambda e: e.get("median", np.inf)):
            label = e["contender"] + size(e["n"], e["d"])
            if "failed" in e:
                print(f"  {label:<50} {e['failed'][:120]}")
                continue
            low, mid, high = (scale * e[k] for k in ("min", "median", "max"))
            line = f"  {label:<50} {mid:>9.3g} ({low:.3g}..{high:.3g})"
            if accuracy := e.get("accuracy"):
                if row == "draw":
                    entry, noise = accuracy["over_posterior_variance"], accuracy["monte_carlo_q99"]
                    scale_noise = accuracy["scale_monte_carlo_q99"]
                    line += f"  cov entry {entry:.1%} (Monte Carlo {noise:.1%})"
                    line += f", scale {accuracy['scale']:.1%} ({scale_noise:.1%})"
                else:
                    line += f"  std {accuracy['std_max']:.1e}  mean {accuracy['mean_max']:.1e}"
                line += "" if accurate(e) else "  not accurate"
            if points := e["facts"].get("points"):
                line += f"  at {points:,} points only"
            if rank := e["facts"].get("rank"):
                line += f"  rank {rank}"
            print(line)
    busy = [cores for e in entries for cores in e["busy_neighbours"]]
    if busy and (share := sum(cores > DISTURBED for cores in busy) / len(busy)) > 0.1:
        print(f"\n{share:.0%} of the timings ran beside other busy processes: do not trust them.")
    for name, result in probes.items():
        print(f"\n{name}: " + ", ".join(f"{k} {v}" for k, v in result.items()))
    print(f"\n{'row':<9} {'what':<80} {'value':>6} {'of minima':>9} {'bar':>6}  met")
    for b in bars:
        best = "" if b["of_minima"] is None else f"{b['of_minima']:.3g}"
        met = "yes" if b["met"] else "no"
        print(f"{b['row']:<9} {b['what']:<80} {b['value']:>6.3g} {best:>9} {b['bar']:>6}  {met}")


def machine() -> dict[str, Any]:
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x.partition(":") for x in info.read_text().splitlines()]
        model = next((value.strip() for key, _, value in lines if "model name" in key), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model,
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def versions() -> dict[str, str]:
    found: dict[str, str] = {}
    modules = (import_module("ours"), import_module("peers"))
    packages = {p for module in modules for kind in module.CONTENDERS for p in kind.packages}
    for package in sorted(packages | {"numpy", "scipy"}):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark of the GP layer against its peers.")
    parser.add_argument("--quick", action="store_true", help="two rounds and fewer draws")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME",
        help=f"a row ({', '.join(TABLE_ROWS)}) or part of a contender's name; repeatable",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    rounds, draws = (2, 600) if options.quick else (5, 2_000)

    report: dict[str, Any] = {
        "command": " ".join(["python benchmarks/gp/run.py", *sys.argv[1:]]),
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "problem": {
            "dimension": problem.DIMENSION, "lengthscale": problem.LENGTHSCALE,
            "noise_variance": problem.NOISE_VARIANCE, "n": problem.TRAIN,
            "appended": problem.APPENDED, "test_points": problem.TEST, "seed": problem.SEED,
            "rounds": rounds, "draws": draws,
        },
    }  # fmt: skip
    entries = measure(tasks_for(options.only), rounds, draws)
    for entry in entries:
        entry["unit"] = "flop/s" if entry["row"] == "gemm" else "s"
    chosen = [
        name for name in ("memory", "large", "retraces") if not options.only or name in options.only
    ]
    probes = {name: probe(name) for name in chosen}
    bars = verdicts(entries, probes)
    report |= {"entries": entries, "probes": probes, "bars": bars}
    show(entries, probes, bars)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwritten to {options.out.name}")


if __name__ == "__main__":
    main()
