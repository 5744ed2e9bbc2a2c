"""What else is promised of speed: a decision, nothing compiled twice, an exact answer near GEMM."""

import pathlib
import sys
import time

TITLE = "Decisions, compilations and matrix products"
HERE = pathlib.Path(__file__).resolve().parent
#: Milliseconds that a decision may take.
DECISIONS = {"Greedy": 10.0, "PSRL": 20.0, "GPUCRL": 60.0}
EXACT, SHARE, ROUNDS, POINTS = "kernelmdp exact", 0.6, 5, 10_000


def cells(quick):
    kinds = list(DECISIONS)[:1] if quick else list(DECISIONS)
    sizes = [500] if quick else [2_000]
    return [{"decision": kind} for kind in kinds] + [{"exact": n} for n in sizes]


def limit(cell):
    return 300.0


def run(cell):

    if "exact" in cell:
        return exact(cell["exact"])
    sys.path.insert(0, str(HERE.parent / "control"))
    import decision

    import kernelmdp as km

    middle, first, new = decision.decided(getattr(km, cell["decision"]))
    return {"milliseconds": middle, "first": first, "retraces": new}


def exact(n):
    """The share of the peak of matrix products, by rounds that alternate."""
    sys.path.insert(0, str(HERE.parent / "gp"))
    import numpy as np
    import ours
    import problem

    kind = next(kind for kind in ours.CONTENDERS if kind.name == EXACT)
    data = problem.data(n)
    model = kind(data.X, data.y)
    rng = np.random.default_rng(0)
    A, B, C = rng.random((n, n)), rng.random((n, POINTS)), np.empty((n, POINTS))

    def rate(flops, job):
        begin = time.perf_counter()
        job()
        return flops / (time.perf_counter() - begin)

    model.predict(data.Z)
    peak, own = [], []
    for _ in range(ROUNDS):
        peak.append(rate(2.0 * n * n * POINTS, lambda: np.matmul(A, B, out=C)))
        # One substitution: half of a square matrix's products.
        own.append(rate(1.0 * n * n * len(data.Z), lambda: model.predict(data.Z)))
    return {"peak": max(peak), "share": sorted(own)[ROUNDS // 2] / max(peak)}


def table(found):
    lines = ["| what | measured | goal |", "|---" * 3 + "|"]
    for one in found:
        cell, got = one["cell"], one["found"]
        if "failed" in got:
            continue
        if "exact" in cell:
            lines.append(
                f"| exact mean and std, n = {cell['exact']:,}: share of the GEMM peak of the same "
                f"run ({got['peak'] / 1e9:.0f} Gflop/s) | {got['share']:.0%} | {SHARE:.0%} |"
            )
            continue
        kind = cell["decision"]
        lines.append(
            f"| a decision of {kind} (MPC, m = 4, after 2,000 steps) | {got['milliseconds']:.1f} "
            f"ms | {DECISIONS[kind]:g} ms |"
        )
        lines.append(
            f"| {kind}: programs traced or compiled in episodes 3 to 6 | {sum(got['retraces'])} "
            "| 0 |"
        )
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    picture, axis = plt.subplots(figsize=(6, 2))
    shares = {
        one["cell"]["decision"]: one["found"]["milliseconds"] / DECISIONS[one["cell"]["decision"]]
        for one in found
        if "decision" in one["cell"] and "failed" not in one["found"]
    }
    axis.barh(list(shares), list(shares.values()))
    axis.invert_yaxis()
    axis.axvline(1.0, color="k", linestyle=":")
    axis.set_xlabel("time of a decision as a share of its goal")
    picture.tight_layout()
    picture.savefig(path, dpi=110)
