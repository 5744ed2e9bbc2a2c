"""How cost grows: processor seconds and memory against n, H, grid, rank and m, with slopes."""

import statistics
import time

import numpy as np

TITLE = "How cost grows"
SECONDS, QUICK_SECONDS = 900.0, 100.0
REPEATS = 5
#: Axis: its sizes, the work, the slope of the operation count.
AXES = {
    "n, exact append": ((250, 500, 1_000, 2_000, 4_000), "50 points into an exact posterior", 2.0),
    "n, exact predict": ((250, 500, 1_000, 2_000, 4_000), "mean and std at 1,000 points", 2.0),
    "n, compiled append": ((250, 1_000, 4_000, 16_000), "50 points into a compiled posterior", 0.0),
    "n, compiled predict": ((250, 1_000, 4_000, 16_000), "mean and std at 1,000 points", 0.0),
    "rank, append": ((0.5, 0.35, 0.25, 0.18, 0.13), "50 points, by lengthscale in d = 2", 2.0),
    "rank, predict": ((0.5, 0.35, 0.25, 0.18, 0.13), "mean and std at 1,000 points", 2.0),
    "H": ((10, 20, 40, 80), "an episode of PSRL on rkhs, plan and update", 1.0),
    "grid": ((61, 121, 241, 481), "plan of PSRL on rkhs, nodes of the state grid", 1.0),
    "m": ((1, 2), "an episode of PSRL on rkhs, 31 nodes an axis", None),
}  # fmt: skip


def cells(quick):
    return [
        {"axis": axis, "sizes": list(sizes[:2] if quick else sizes)}
        for axis, (sizes, _, _) in AXES.items()
        if not quick or axis in ("n, compiled append", "n, exact append")
    ]


def run(cell):
    rows = []
    for size in cell["sizes"]:
        name, _, work = cell["axis"].partition(", ")
        if name in ("n", "rank"):
            found = posterior(name, work, size)
        else:
            found = episode(name, int(size))
        rows.append(found | {"peak_bytes": peak()})
    return {"rows": rows}


def timed(job):
    job()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        job()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def posterior(name, work, size):
    import kernelmdp as km

    kind, _, job = work.rpartition(" ")
    rng = np.random.default_rng(0)
    lengthscale, n = (size, 1_000) if name == "rank" else (0.5, int(size))
    known = km.gp.posterior(
        km.kernels.SquaredExponential(lengthscale=lengthscale),
        noise_variance=0.01,
        domain=km.Box([0.0] * 2, [1.0] * 2),
        engine=kind or "compiled",
    ).condition(rng.random((n, 2)), rng.standard_normal(n))
    X, y, Z = rng.random((50, 2)), rng.standard_normal(50), rng.random((1_000, 2))
    one = np.full((1, 2), 0.5)
    jobs = {
        "append": lambda: np.asarray(known.condition(X, y).predict(one)[0]),
        "predict": lambda: np.asarray(known.predict(Z)[1]),
    }
    size = float(known.rank) if name == "rank" else n
    return {"size": size, "seconds": timed(jobs[job])}


def episode(name, size):
    import kernelmdp as km
    from kernelmdp.agents import AGENTS
    from kernelmdp.planners import GridPlanner

    options = {"dimension": size} if name == "m" else {"horizon": size} if name == "H" else {}
    nodes = {"grid": (size,), "m": (31,) * (size if name == "m" else 1)}.get(name, (61,))
    env = km.make("rkhs", **options)
    agent = AGENTS["psrl"](env, planner=GridPlanner(nodes, (11,)), seed=0)
    m, H = env.mdp.states.dimension, env.mdp.horizon
    rng = np.random.default_rng(0)

    def once():
        agent.ask(np.zeros(m))
        if name != "grid":
            states = rng.uniform(-1, 1, (H + 1, m))
            agent.tell(states, rng.uniform(-1, 1, (H, 1)), rng.standard_normal(H))
        else:
            agent._plan = None

    once()
    return {"size": size, "seconds": timed(once)}


def peak():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def slope(rows):
    half = rows[-max(2, (len(rows) + 1) // 2) :]
    x, y = np.log([r["size"] for r in half]), np.log([r["seconds"] for r in half])
    return float(np.polyfit(x, y, 1)[0])


def table(found):
    lines = ["| against | work | sizes | ms | slope | by count | peak MiB |", "|---" * 7 + "|"]
    for one in found:
        axis = one["cell"]["axis"]
        _, work, theory = AXES[axis]
        if "failed" in one["found"]:
            lines.append(f"| {axis} | {work} | | failed | | | |")
            continue
        rows = one["found"]["rows"]
        sizes = ", ".join(f"{row['size']:g}" for row in rows)
        times = ", ".join(f"{1e3 * row['seconds']:.3g}" for row in rows)
        expected = "exponential" if theory is None else f"{theory:g}"
        lines.append(
            f"| {axis} | {work} | {sizes} | {times} | {slope(rows):.2f} | {expected} | "
            f"{rows[-1]['peak_bytes'] / 2**20:.0f} |"
        )
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    good = [one for one in found if "failed" not in one["found"]]
    picture, axes = plt.subplots(2, -(-len(good) // 2), figsize=(11, 5.5), squeeze=False)
    for axis, one in zip(axes.flat, good, strict=False):
        rows, theory = one["found"]["rows"], AXES[one["cell"]["axis"]][2]
        x, y = (np.array([row[key] for row in rows]) for key in ("size", "seconds"))
        axis.loglog(x, y, "o-", label=f"slope {slope(rows):.2f}")
        if theory is not None:
            axis.loglog(x, y[-1] * (x / x[-1]) ** theory, "k:", label=f"by count {theory:g}")
        axis.set_title(one["cell"]["axis"], fontsize=9)
        axis.legend(fontsize=7)
    axes[0, 0].set_ylabel("processor seconds")
    axes[1, 0].set_ylabel("processor seconds")
    picture.tight_layout()
    picture.savefig(path, dpi=110)
