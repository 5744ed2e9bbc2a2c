"""One figure for each layer, all of them of the environment "rkhs": one state, one action.

python docs/figures/inside.py
"""

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from shrink import shrunk

import kernelmdp as km
from kernelmdp.experiments import RunConfig, run
from kernelmdp.report import figures

HERE = pathlib.Path(__file__).parent
LINE = km.Box([0.0], [1.0])
SIZE = (10, 3.2)


def saved(figure: plt.Figure, name: str) -> None:
    """Small, beside this program."""
    figure.savefig(HERE / f"inside-{name}.png", dpi=85)
    shrunk(HERE / f"inside-{name}.png")
    plt.close(figure)


def kernels() -> None:
    """A kernel is compiled to finite rank, with a certified error."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    kernel = km.kernel("se(0.15)")
    compiled = km.gp.compile_kernel(kernel, domain=LINE, tolerance=0.3)
    x = np.linspace(0, 1, 200)[:, None]
    left.plot(x, kernel(x, np.array([[0.4]])), "k--", lw=1, label="k(x, 0.4)")
    centres = np.asarray(compiled.centres)
    K = np.asarray(kernel(centres)) + 1e-10 * np.eye(len(centres))
    there = np.asarray(kernel(centres, np.array([[0.4]])))
    nystrom = np.asarray(kernel(x, centres)) @ np.linalg.solve(K, there)
    left.plot(x, nystrom, label=f"of rank {len(centres)}, error ≤ {compiled.error:.1g}")
    left.plot(centres, np.zeros(len(centres)), "C0|", ms=12, label="centres")
    left.set(xlabel="x", title="one kernel, compiled")
    left.legend(frameon=False, fontsize=8)
    for text in ("se(0.5)", "se(0.15)", "matern(2.5, 0.5)"):
        found = [
            km.gp.compile_kernel(km.kernel(text), domain=LINE, tolerance=t)
            for t in (1e-1, 1e-2, 1e-3, 1e-4)
        ]
        right.semilogy([len(c.centres) for c in found], [c.error for c in found], "o-", label=text)
    right.set(xlabel="rank", ylabel="certified error", title="a few features are enough")
    right.legend(frameon=False, fontsize=8)
    saved(figure, "kernels")


def posteriors() -> None:
    """Mean, deviation, whole functions; and how much was learned."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    rng = np.random.default_rng(1)
    prior = km.gp.posterior(km.kernel("se(0.15)"), noise_variance=0.01, domain=LINE)
    points = rng.random((60, 1))
    targets = np.sin(9 * points[:, 0]) + 0.1 * rng.standard_normal(60)
    x = np.linspace(0, 1, 200)[:, None]
    posterior = prior.condition(points[:5], targets[:5])
    mean, std = (np.asarray(a) for a in posterior.predict(x))
    left.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.2, lw=0)
    left.plot(x, mean, lw=2, label="mean ± 2 deviations")
    for number in range(3):
        left.plot(x, posterior.sample(key=jax.random.key(number))(x), "C1", lw=0.8)
    left.plot([], [], "C1", lw=0.8, label="three draws: whole functions")
    left.plot(points[:5], targets[:5], "ko", ms=4)
    left.set(xlabel="x", title="after 5 points")
    left.legend(frameon=False, fontsize=8)
    counts = [0, *range(5, 61, 5)]
    gains = [0.0]
    gains += [prior.condition(points[:n], targets[:n]).information_gain for n in counts[1:]]
    most = km.information.gain_curve(
        km.kernel("se(0.15)"), domain=LINE, ns=counts[1:], noise_variance=0.01
    )
    right.plot(counts, gains, "o-", ms=3, label="these points")
    right.plot(counts[1:], most, "k--", label="any points: certified maximum")
    right.set(xlabel="points", ylabel="information gain (nats)", title="what was learned")
    right.legend(frameon=False, fontsize=8)
    saved(figure, "posteriors")


def agents_of(env: km.envs.Environment, episodes: int) -> dict[str, km.agents.Agent]:
    """One of each kind, after the same number of episodes."""
    made = {
        "greedy": km.Greedy(env, seed=0),
        "PSRL": km.PSRL(env, seed=0),
        "GP-UCRL": km.GPUCRL(env, seed=0),
        "GP-UCRL, valid": km.GPUCRL(env, confidence="valid", seed=0),
    }
    for agent in made.values():
        agent.learn(episodes, progress=False)
    return made


def confidence(env: km.envs.Environment, agent: km.GPUCRL) -> None:
    """Sets of three widths around one mean, and the truth."""
    figure, axes = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    states = np.linspace(-1, 1, 200)
    z = jnp.asarray(np.stack([states, np.full(200, 0.5)], axis=1))
    truth = env.mdp.model(z)
    sets = agent.confidence_sets()
    prediction = sets.plausible(z)
    widths = sets.half_widths(z)
    for axis, mean, width, true, what in (
        (axes[0], prediction.reward, widths[0], truth.reward, "mean reward"),
        (axes[1], prediction.state[:, 0], widths[1], truth.state[:, 0], "mean next state"),
    ):
        mean, width = np.asarray(mean), np.asarray(width)
        axis.fill_between(states, mean - width, mean + width, alpha=0.2, lw=0, label="valid")
        low, high = mean - 0.1 * width, mean + 0.1 * width
        axis.fill_between(states, low, high, alpha=0.5, lw=0, label="a tenth of it")
        axis.plot(states, mean, lw=1.5, label="posterior mean")
        axis.plot(states, true, "k--", lw=1, label="truth")
        axis.set(xlabel="state (action 0.5)", title=f"plausible values of the {what}")
    axes[0].legend(frameon=False, fontsize=8)
    saved(figure, "confidence")


def planners(env: km.envs.Environment, agents: dict[str, km.agents.Agent]) -> None:
    """What plans are worth in the model they were made for."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    states = np.linspace(-1, 1, 81)
    planner = km.GridPlanner(env.problem.state_points, env.problem.action_points)
    truth = planner.plan(env.mdp, key=jax.random.key(0))
    left.plot(states, [truth.value([s]) for s in states], "k--", label="in the truth")
    right.plot(states, [truth.policy([s], 0)[0] for s in states], "k--", label="optimal")
    for name, what in (
        ("greedy", "in the mean"),
        ("PSRL", "in a draw"),
        ("GP-UCRL", "in the best plausible MDP"),
    ):
        agent = agents[name]
        agent.ask()
        left.plot(states, [agent.planned.value([s]) for s in states], label=f"{name}: {what}")
        right.plot(states, [agent.planned.policy([s], 0)[0] for s in states], label=name)
    left.set(xlabel="state", title="planned value of the next episode", ylim=(-1, 13.5))
    right.set(xlabel="state", title="planned action in the first period", ylim=(-1.1, 1.6))
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    saved(figure, "planners")


def learning(env: km.envs.Environment) -> None:
    """Episode by episode: hoped for and earned."""
    figure, axes = plt.subplots(1, 3, figsize=SIZE, sharey=True, layout="constrained")
    for axis, kind in zip(axes, (km.Greedy, km.PSRL, km.GPUCRL), strict=True):
        table = kind(env, seed=1).learn(25, progress=False).episodes
        axis.plot(table["episode"], table["planned_value"], "C1.-", lw=0.9, label="planned")
        axis.plot(table["episode"], table["value"], "C0.-", lw=0.9, label="worth in the truth")
        axis.plot(table["episode"], table["optimal_value"], "k--", lw=1, label="optimum")
        axis.set(xlabel="episode", title=kind.name)
    axes[0].set_ylabel("value")
    axes[0].legend(frameon=False, fontsize=8)
    saved(figure, "agents")


def experiments() -> None:
    """Seeds and intervals, from folders on disk."""
    with tempfile.TemporaryDirectory() as home:
        for agent in ("psrl", "greedy", "gp-ucrl"):
            for seed in range(4):
                config = RunConfig("rkhs", agent, seed)
                run(config, f"{home}/{agent}-{seed}", episodes=30)
        runs = km.read(home)
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    figures.regret(left, runs)
    figures.returns(right, runs)
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=7)
    saved(figure, "experiments")


if __name__ == "__main__":
    kernels()
    posteriors()
    env = km.make("rkhs", seed=1)
    agents = agents_of(env, 2)
    confidence(env, agents["GP-UCRL, valid"])
    planners(env, agents)
    learning(env)
    experiments()
