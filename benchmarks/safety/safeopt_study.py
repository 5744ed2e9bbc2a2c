"""Safe optimisation, H = 1: GP-UCRL with a constraint beside SafeOpt on the same functions.

An action a in [-1, 1]^q earns f(a) + noise and shows g(a) + noise, which must stay below a limit.
Both f and g are random functions of known RKHS norm. All methods know the kernels, the noise and
one safe action, the middle. It is evaluation 1. A method that sees the outcome as the next state of
an MDP with H = 1 limits g(a) + noise, and SafeOpt limits g(a). Both are judged by g(a).

    python -m venv .venv-safeopt
    .venv-safeopt/bin/pip install -c constraints.txt -e .
    .venv-safeopt/bin/pip install --no-deps -r benchmarks/safety/requirements-safeopt.txt
    .venv-safeopt/bin/python benchmarks/safety/safeopt_study.py

Rows are appended to ``benchmarks/safety/results/safeopt.csv`` as they come, and runs that are there
are not repeated. ``--report`` prints the tables. Without SafeOpt, ours run alone.
"""

import argparse
import collections
import collections.abc
import csv
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.confidence.beta import rkhs_beta
from kernelmdp.envs import Environment
from kernelmdp.envs.rkhs import KernelExpansion, random_expansion
from kernelmdp.envs.unit_box import StackedFunctions
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.mdp import MDP, Gaussian, MeanModel
from kernelmdp.mdp.fallback import as_fallback

try:
    # SafeOpt 0.16 is older than Python 3.10 and NumPy 1.24. It imports and uses these names.
    collections.Sequence = collections.abc.Sequence
    setattr(np, "float", float)  # noqa: B010, a plain name is taken for a use of the old type
    import GPy
    from safeopt import SafeOpt
except ImportError as error:
    print(f"SafeOpt cannot be imported: {error}")
    SafeOpt = None

RESULTS = pathlib.Path(__file__).parent / "results" / "safeopt.csv"
INSTANCES, EVALUATIONS, SHOWN = 20, 40, (10, 20, 40)
LENGTHSCALE, NOISE, LIMIT = 0.5, 0.02, 0.3
#: Norms of f and g and ranges of their sup, as in the environment "rkhs", by the number of axes.
NORMS = {1: (1.5, 1.25), 2: (1.8, 1.5)}
SUPS = (0.8, 1.3), (0.7, 0.98)
#: Actions along each axis.
ACTIONS = {1: 101, 2: 21}
DELTA, RISK = 0.1, 0.1
METHODS = (
    "GP-UCRL, valid sets",
    "GP-UCRL, default sets",
    "SafeOpt, valid beta",
    "SafeOpt, beta 2",
    "SafeUCB, beta 2",
)
COLUMNS = "dimension seed method evaluation reward safety first best_safe seconds".split()


def actions_of(dimension):
    axes = [np.linspace(-1, 1, ACTIONS[dimension])] * dimension
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)


def reachable(allowed, dimension):
    """Actions that are connected to the first one by allowed neighbours."""
    shape = (ACTIONS[dimension],) * dimension
    allowed = allowed.reshape(shape)
    reached = np.zeros(shape, bool)
    reached[(ACTIONS[dimension] // 2,) * dimension] = True
    while True:
        wider = reached.copy()
        for axis in range(dimension):
            for step in (-1, 1):
                moved = np.roll(reached, step, axis)
                edge = [slice(None)] * dimension
                edge[axis] = 0 if step > 0 else -1
                moved[tuple(edge)] = False
                wider |= moved
        wider &= allowed
        if (wider == reached).all():
            return reached.reshape(-1)
        reached = wider


def instance(dimension, seed):
    """f and g, or None if the middle is not safe or there is little to gain or to avoid."""
    box, kernel = km.Box([-1.0] * dimension, [1.0] * dimension), SquaredExponential(LENGTHSCALE)
    keys = jax.random.split(jax.random.key(seed))
    f, g = (
        random_expansion(kernel, box, norm=norm, sup_range=sups, key=key)
        for norm, sups, key in zip(NORMS[dimension], SUPS, keys, strict=True)
    )
    grid = actions_of(dimension)
    rewards, safety = np.asarray(f(jnp.asarray(grid))), np.asarray(g(jnp.asarray(grid)))
    middle = len(grid) // 2
    if safety[middle] > 0 or (safety > LIMIT).mean() < 0.1:
        return None
    best = float(rewards[reachable(safety <= LIMIT, dimension)].max())
    return (f, g, best) if best - rewards[middle] >= 0.3 else None


def instances(dimension):
    number, found = 0, []
    while len(found) < INSTANCES:
        made = instance(dimension, number)
        if made is not None:
            found.append((number, *made))
        number += 1
    return found


def fallback_of(dimension):
    """Evaluates the middle. The same object for all instances, so that programs are reused."""
    spaces = {
        "states": km.Box([-1.0], [1.0]),
        "actions": km.Box([-1.0] * dimension, [1.0] * dimension),
    }
    middle = (lambda s, h: jnp.zeros(dimension), km.Box([-1.0], [LIMIT - 0.1]))
    return as_fallback(middle, **spaces)


def environment(f, g, dimension):
    """The outcome of g is the next state. Centres are at state 0, where episodes start."""
    kernel = SquaredExponential(LENGTHSCALE)

    def at_start(function):
        centres = jnp.pad(function.centres, ((0, 0), (1, 0)))
        return KernelExpansion(kernel, centres, function.weights)

    mdp = MDP(
        MeanModel(at_start(f), StackedFunctions((at_start(g),))),
        states=km.Box([-1.0], [1.0]),
        actions=km.Box([-1.0] * dimension, [1.0] * dimension),
        horizon=1,
        reward_noise=Gaussian(NOISE),
        transition_noise=Gaussian(NOISE),
    )
    norms = NORMS[dimension]
    return Environment.of(
        mdp,
        start=(0.0,),
        name="safe-optimisation",
        reward_kernel=kernel,
        transition_kernel=kernel @ Index(1),
        offset="zero",
        norm_reward=norms[0],
        norm_transition=norms[1],
        state_points=(201,),
        action_points=(ACTIONS[dimension],) * dimension,
        coordinates=("outcome",),
    )


def ours(f, g, dimension, seed, method, fallback):
    env = environment(f, g, dimension)
    agent = km.GPUCRL(
        env,
        constraints=f"outcome <= {LIMIT}",
        fallback=fallback,
        risk=RISK,
        risk_for=EVALUATIONS,
        confidence={"name": "valid", "delta": DELTA} if "valid" in method else "practical",
        planner={"name": "grid"},
        seed=seed,
    )
    start, key = np.zeros(1), jax.random.key(seed)
    for number in range(EVALUATIONS):
        began = time.perf_counter()
        episode = env.play(
            agent.ask(start), jnp.asarray(start), key=jax.random.fold_in(key, number)
        )
        agent.replay(episode.on_host())
        yield np.asarray(episode.actions)[0], time.perf_counter() - began


def safeopt(f, g, dimension, seed, method):
    rng, grid = np.random.default_rng(seed), actions_of(dimension)

    def measured(action):
        point = jnp.asarray(action)[None, :]
        noise = NOISE * rng.standard_normal(2)
        return np.array([[float(f(point)[0]) + noise[0], -float(g(point)[0]) - noise[1]]])

    def valid_beta(_):
        gp = optimiser.gps[1]
        spread = np.linalg.eigvalsh(np.asarray(gp.kern.K(gp.X))) / NOISE**2
        gain = 0.5 * np.sum(np.log1p(np.maximum(spread, 0.0)))
        settings = {"noise_proxy": 1.0, "regulariser": 1.0, "delta": DELTA, "gain": gain}
        return float(rkhs_beta(norm_bound=max(NORMS[dimension]), **settings))

    action = np.zeros(dimension)
    yield action, 0.0
    first, gps = measured(action), []
    for column in range(2):
        kernel = GPy.kern.RBF(dimension, variance=1.0, lengthscale=LENGTHSCALE)
        target = first[:, column : column + 1]
        gps.append(GPy.models.GPRegression(action[None], target, kernel, noise_var=NOISE**2))
    beta = valid_beta if "valid" in method else 2.0
    optimiser = SafeOpt(gps, grid, [-np.inf, -LIMIT], beta=beta)
    for _ in range(EVALUATIONS - 1):
        began = time.perf_counter()
        action = optimiser.optimize(ucb="UCB" in method)
        optimiser.add_new_data_point(action, measured(action))
        yield np.asarray(action), time.perf_counter() - began


def played(fallbacks, writer, done):
    for dimension in NORMS:
        for seed, f, g, best in instances(dimension):
            for method in METHODS:
                if (dimension, seed, method) in done or (SafeOpt is None and "Safe" in method):
                    continue
                if "GP-UCRL" in method:
                    run = ours(f, g, dimension, seed, method, fallbacks[dimension])
                else:
                    run = safeopt(f, g, dimension, seed, method)
                rows, first = [], None
                for number, (action, seconds) in enumerate(run):
                    point = jnp.asarray(action)[None, :]
                    reward, safety = float(f(point)[0]), float(g(point)[0])
                    first = reward if first is None else first
                    rows.append(
                        (dimension, seed, method, number + 1, reward, safety, first, best, seconds)
                    )
                writer(rows)


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        rows = list(csv.DictReader(file))
    return [{key: row[key] if key == "method" else float(row[key]) for key in row} for row in rows]


def report():
    rows = read()
    print(
        "| axes | method | instances | unsafe evaluations | instances with one | "
        + " | ".join(f"by evaluation {n}" for n in SHOWN)
        + " | s an evaluation |"
    )
    print("|---" * (6 + len(SHOWN)) + "|")
    for dimension in NORMS:
        for method in METHODS:
            runs = collections.defaultdict(list)
            for row in rows:
                if (row["dimension"], row["method"]) == (dimension, method):
                    runs[row["seed"]].append(row)
            if not runs:
                continue
            unsafe = [[row["safety"] > LIMIT for row in run] for run in runs.values()]
            shares = {n: [] for n in SHOWN}
            for run in runs.values():
                first, best = run[0]["first"], run[0]["best_safe"]
                for n in SHOWN:
                    top = max(row["reward"] for row in run[:n] if row["safety"] <= LIMIT)
                    shares[n].append((top - first) / (best - first))
            reached = " | ".join(
                f"{np.median(shares[n]):.0%} ({np.min(shares[n]):.0%})" for n in SHOWN
            )
            seconds = np.median([row["seconds"] for run in runs.values() for row in run[1:]])
            print(
                f"| {dimension} | {method} | {len(runs)} | {np.mean(unsafe):.1%} "
                f"| {sum(map(any, unsafe))} | {reached} | {seconds:.3f} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true")
    if not parser.parse_args().report:
        RESULTS.parent.mkdir(exist_ok=True)
        done = {(int(row["dimension"]), int(row["seed"]), row["method"]) for row in read()}
        with RESULTS.open("a", newline="") as file:
            lines = csv.writer(file)
            if not done:
                lines.writerow(COLUMNS)

            def writer(rows):
                lines.writerows(rows)
                file.flush()

            played({dimension: fallback_of(dimension) for dimension in NORMS}, writer, done)
    report()


if __name__ == "__main__":
    main()
