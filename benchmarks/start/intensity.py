"""Arithmetic intensity of the hot programs: flops and bytes by XLA's cost analysis.

    .venv/bin/python benchmarks/start/intensity.py

A program whose flops per byte are below those of a machine (peak flops over memory bandwidth: about
5 for a processor core, 10 to 50 for accelerators in 64 bits) is limited by memory, and an
accelerator helps by its bandwidth only. Loops count once in XLA's analysis, so numbers are those of
one pass. Below some million flops, starting a program on an accelerator takes longer than it runs.
"""

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.fitting import DYNAMICS, log_likelihood, prior_median
from kernelmdp.numerics.modules import ARRAYS


def costs(function, *arguments) -> tuple[float, float]:
    """Flops and bytes of a function; arrays are arguments, the rest are constants."""
    leaves, structure = jax.tree.flatten(arguments)
    arrays = [leaf for leaf in leaves if isinstance(leaf, ARRAYS)]

    def run(arrays):
        remaining = iter(arrays)
        filled = [next(remaining) if isinstance(leaf, ARRAYS) else leaf for leaf in leaves]
        return [
            x
            for x in jax.tree.leaves(function(*jax.tree.unflatten(structure, filled)))
            if isinstance(x, ARRAYS)
        ]

    analysis = jax.jit(run).lower(arrays).compile().cost_analysis()
    return float(analysis["flops"]), float(analysis["bytes accessed"])


def programs():
    """Name, function and arguments of each hot program."""
    rng = np.random.default_rng(0)
    family = ARDFamily(jnp.ones(5), jnp.ones(1), jnp.ones(5), ())
    x, y = jnp.asarray(rng.uniform(size=(160, 5))), jnp.asarray(rng.standard_normal(160))
    logs = jnp.asarray(prior_median(family, DYNAMICS)[0])

    def likelihood(logs):
        return log_likelihood(family.kernels_at(logs[None]), x, y, jnp.ones(160))

    yield "likelihood and gradient, 160 rows", jax.value_and_grad(likelihood), (logs,)
    for name in ("rkhs", "pendulum-coarse"):
        agent = km.GPUCRL(name, seed=0)
        agent.learn(episodes=2, progress=False)
        beliefs, episode = agent.beliefs, agent.history[0]
        data = tuple(map(jnp.asarray, (episode.points, episode.rewards, episode.outcomes)))
        rows = (beliefs, *data)
        yield f"update, {name}", lambda b, *each: b.condition(*each).transition.engines, rows
        points = jnp.asarray(agent.planner.query_points(agent.problem)[:10_000])
        mdp = agent.learner.mean(agent.state)
        yield f"mean at {len(points)} points, {name}", lambda m, z: m.model(z), (mdp, points)
        predict = lambda b, z: b.transition.predict(z)  # noqa: E731
        yield f"deviation at {len(points)} points, {name}", predict, (beliefs, points)
    agent = km.Greedy("cartpole-swingup", kernel="auto", planner="mpc", seed=0)
    agent.learn(episodes=2, progress=False)
    points = jnp.asarray(agent.problem.points.spread_points(40))
    mean, beliefs = agent.learner.mean(agent.state), agent.beliefs
    yield "MPC: mean of 40 candidates, m = 4", lambda m, z: m.model(z), (mean, points)
    yield "MPC: deviations of 40, m = 4", lambda b, z: b.transition.predict(z), (beliefs, points)


def main() -> None:
    print("| program | Mflop | MB | flop a byte |")
    print("|---|---|---|---|")
    for name, function, arguments in programs():
        flops, size = costs(function, *arguments)
        print(f"| {name} | {flops / 1e6:.2f} | {size / 1e6:.2f} | {flops / size:.1f} |", flush=True)


if __name__ == "__main__":
    main()
