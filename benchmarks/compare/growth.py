"""How cost grows: seconds and memory against n, rank, H, grid and m, with slopes; and cores."""

import os
import statistics
import time

import numpy as np

TITLE = "How cost grows"
REPEATS = 5
DATA, COMPILED = (250, 500, 1_000, 2_000, 4_000), (250, 1_000, 4_000, 16_000)
RANKS = (0.5, 0.35, 0.25, 0.18, 0.13)
NODES, STEPS = 15, 200
#: Axis: its sizes, the work, and what the count says of time and of memory kept: a power of the
#: size, or the factor that one more brings.
AXES = {
    "n, exact append": (DATA, "50 points into an exact posterior", 2.0, 2.0),
    "n, exact predict": (DATA, "mean and std at 1,000 points", 2.0, 2.0),
    "n, compiled append": (COMPILED, "50 points into a compiled posterior", 0.0, 0.0),
    "n, compiled predict": (COMPILED, "mean and std at 1,000 points", 0.0, 0.0),
    "rank, append": (RANKS, "50 points, by lengthscale in d = 2", 2.0, 2.0),
    "rank, predict": (RANKS, "mean and std at 1,000 points", 2.0, 2.0),
    "H": ((10, 40, 160, 640), "an episode, m = 1, 61 nodes", 1.0, 1.0),
    "grid": ((61, 241, 961, 3_841), "an episode, m = 1, H = 10, by nodes", 2.0, 1.0),
    "m, grid": ((1, 2, 3, 4), f"an episode, {NODES} nodes an axis, H = 10", "15", "15"),
    "m, MPC": ((1, 2, 4, 8), f"a decision after {STEPS} steps", 1.0, 1.0),
    "n, MPC": ((200, 500, 1_000, 2_000), "a decision, m = 2", 0.0, 0.0),
}  # fmt: skip
CORES = (1, 2)


def cells(quick):
    if quick:
        return [
            {"axis": f"n, {kind} append", "sizes": [250, 500]} for kind in ("exact", "compiled")
        ]
    found = [{"axis": axis, "sizes": list(sizes)} for axis, (sizes, *_) in AXES.items()]
    return found + [{"cores": count} for count in CORES]


def limit(cell):
    return 400.0


def run(cell):
    if "cores" in cell:
        return spread(cell["cores"])
    rows = []
    for size in cell["sizes"]:
        name, _, work = cell["axis"].partition(", ")
        size, job = made(name, work, size)
        rows.append({"size": size, "seconds": timed(job), "kept": kept(), "peak": peak()})
        del job
    return {"rows": rows}


def made(name, work, size):
    """The size, as it is shown, and the work."""
    if work == "MPC":
        options = {"m": size} if name == "m" else {"m": 2, "steps": size}
        return size, decision(**options)
    if name == "rank":
        known, job = posterior(1_000, work, lengthscale=size)
        return int(known.rank), job
    if name == "n":
        engine, work = work.split()
        return size, posterior(size, work, engine=engine)[1]
    options = {
        "H": {"horizon": size},
        "grid": {"nodes": size},
        "m": {"m": size, "nodes": NODES, "actions": 5},
    }
    return size, episode(**options[name])


def timed(job, clock=time.process_time, of=statistics.median):
    job()
    times = []
    for _ in range(REPEATS):
        begin = clock()
        job()
        times.append(clock() - begin)
    return of(times)


def posterior(n, work, *, engine="compiled", lengthscale=0.5):
    import kernelmdp as km

    rng = np.random.default_rng(0)
    known = km.gp.posterior(
        km.kernels.SquaredExponential(lengthscale=lengthscale),
        noise_variance=0.01,
        domain=km.Box([0.0] * 2, [1.0] * 2),
        engine=engine,
    ).condition(rng.random((n, 2)), rng.standard_normal(n))
    X, y, Z = rng.random((50, 2)), rng.standard_normal(50), rng.random((1_000, 2))
    one = np.full((1, 2), 0.5)
    jobs = {
        "append": lambda: np.asarray(known.condition(X, y).predict(one)[0]),
        "predict": lambda: np.asarray(known.predict(Z)[1]),
    }
    return known, jobs[work]


def system(m, horizon=10):
    """Springs in a row on [-1, 1]^m, the last one pushed; the reward wants all at rest."""
    import jax.numpy as jnp

    import kernelmdp as km
    from kernelmdp.envs import Environment
    from kernelmdp.mdp import MDP, Gaussian, MeanModel

    def motion(z):
        states, push = z[:, :m], z[:, m:]
        after = jnp.concatenate([states[:, 1:], push], axis=1)
        return states + 0.2 * jnp.sin(after - states)

    mdp = MDP(
        MeanModel(lambda z: jnp.exp(-jnp.sum(z[:, :m] ** 2, axis=1)), motion),
        states=km.Box([-1.0] * m, [1.0] * m),
        actions=km.Box([-1.0], [1.0]),
        horizon=horizon,
        reward_noise=Gaussian(0.1),
        transition_noise=Gaussian(0.05),
        reward_range=(0.0, 1.0),
    )
    smooth = km.kernels.SquaredExponential(lengthscale=2.0)
    return Environment.of(
        mdp,
        (1.0,) * m,
        name="springs",
        reward_kernel=smooth,
        transition_kernel=smooth @ km.kernels.Index(m),
    )


def told(env, rng):
    m, H = env.mdp.states.dimension, env.mdp.horizon
    return rng.uniform(-1, 1, (H + 1, m)), rng.uniform(-1, 1, (H, 1)), rng.standard_normal(H)


def episode(*, m=1, horizon=10, nodes=61, actions=11):
    """Learn from an episode, and plan the next, which is then kept."""
    import kernelmdp as km
    from kernelmdp.planners import GridPlanner

    env, rng = system(m, horizon), np.random.default_rng(0)
    agent = km.PSRL(env, planner=GridPlanner((nodes,) * m, (actions,)), seed=0)

    def once():
        agent.tell(*told(env, rng))
        agent.ask(np.zeros(m))

    once()
    return once


def decision(*, m, steps=STEPS):
    """One decision of MPC with kernels that fit themselves."""
    import kernelmdp as km

    env, rng = system(m, 20), np.random.default_rng(0)
    agent = km.PSRL(env, kernel="auto", planner="mpc", seed=0)
    for _ in range(steps // 20):
        agent.tell(*told(env, rng))
    player = agent.ask(np.zeros(m)).player()
    player(np.zeros(m), 0)
    periods = iter(range(1, 20))
    return lambda: player(np.full(m, 0.1), next(periods))


def spread(count):
    """Seconds of the wall, the least of five, of what a larger machine might help."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < count:
        raise SystemExit(f"{len(allowed)} core(s) allowed here")
    os.sched_setaffinity(0, allowed[-count:])  # before JAX looks
    jobs = {
        "exact predict, n = 4,000": posterior(4_000, "predict", engine="exact")[1],
        "exact append, n = 4,000": posterior(4_000, "append", engine="exact")[1],
        "compiled predict, rank 200": posterior(1_000, "predict", lengthscale=0.13)[1],
        "an episode, m = 1, 61 nodes": episode(),
        "an episode, m = 3, 15 nodes an axis": episode(m=3, nodes=NODES, actions=5),
        "a decision of MPC, m = 4": decision(m=4),
    }
    return {name: timed(job, time.perf_counter, min) for name, job in jobs.items()}


def kept():
    """Bytes of all arrays alive: what has to be kept from episode to episode."""
    import jax

    return sum(array.nbytes for array in jax.live_arrays())


def peak():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def slope(rows, key):
    half = rows[-max(2, (len(rows) + 1) // 2) :]
    x, y = np.log([r["size"] for r in half]), np.log([r[key] for r in half])
    return float(np.polyfit(x, y, 1)[0])


def _in_order(found):
    return sorted(found, key=lambda one: list(AXES).index(one["cell"].get("axis", "n, MPC")))


def table(found):
    lines = ["| against | work | sizes | ms | slope, count | MB kept | slope, count | peak MB |"]
    lines.append("|---" * 8 + "|")
    cores = {}
    for one in _in_order(found):
        cell, got = one["cell"], one["found"]
        if "failed" in got:
            continue
        if "cores" in cell:
            cores[cell["cores"]] = got
            continue
        _, work, *theory = AXES[cell["axis"]]
        rows = got["rows"]
        shown = [", ".join(f"{row['size']:,}" for row in rows)]
        for key, unit, by in zip(("seconds", "kept"), (1e3, 1e-6), theory, strict=True):
            shown.append(", ".join(_number(unit * row[key]) for row in rows))
            shown.append(
                f"each times {by}" if isinstance(by, str) else f"{slope(rows, key):.1f}, {by:g}"
            )
        shown.append(f"{rows[-1]['peak'] / 1e6:.0f}")
        lines.append(f"| {cell['axis']} | {work} | " + " | ".join(shown) + " |")
    if len(cores) < len(CORES):
        return "\n".join(lines)
    lines += ["", "| work, ms of the wall | one core | two | ratio |", "|---" * 4 + "|"]
    for work in (work for work in cores[1] if work in cores[2]):
        one, two = (cores[count].get(work) for count in CORES)
        if isinstance(one, float) and work not in ("load", "process_seconds"):
            lines.append(f"| {work} | {1e3 * one:.3g} | {1e3 * two:.3g} | {one / two:.2f} |")
    return "\n".join(lines)


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def figure(found, path):
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    good = [one for one in found if "axis" in one["cell"] and "failed" not in one["found"]]
    columns = -(-len(good) // 2)
    picture, axes = plt.subplots(4, columns, figsize=(1.9 * columns, 8), squeeze=False)
    for number, one in enumerate(_in_order(good)):
        rows, theory = one["found"]["rows"], AXES[one["cell"]["axis"]][2:]
        for below, (key, by) in enumerate(zip(("seconds", "kept"), theory, strict=True)):
            axis = axes[2 * (number // columns) + below, number % columns]
            x, y = (np.array([row[part] for row in rows], float) for part in ("size", key))
            y = y * (1e3 if key == "seconds" else 1e-6)
            expected = float(by) ** (x - x[-1]) if isinstance(by, str) else (x / x[-1]) ** by
            axis.loglog(x, y, "o-", markersize=3)
            axis.loglog(x, y[-1] * expected, "k:")
            axis.set_ylim(10 ** np.floor(np.log10(min(y))), 10 ** np.ceil(np.log10(max(y))))
            if isinstance(by, str):
                axis.set_xscale("linear")
            axis.set_xticks(x, [f"{size:g}" for size in x], rotation=60)
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.yaxis.set_minor_formatter(NullFormatter())
            axis.tick_params(labelsize=7)
            if below == 0:
                axis.set_title(one["cell"]["axis"], fontsize=9)
            if number % columns == 0:
                axis.set_ylabel("ms" if key == "seconds" else "MB kept", fontsize=8)
    for axis in axes.flat:
        axis.set_visible(bool(axis.lines))
    picture.tight_layout()
    picture.savefig(path, dpi=110)
