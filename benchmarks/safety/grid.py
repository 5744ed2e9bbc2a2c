"""Does the guarantee of safe plans on grids hold, how conservative is it, and what does it cost?

Run it: ``python benchmarks/safety/grid.py heater --runs 200``. Every run has its own truth. Rows
are appended to ``benchmarks/safety/results/<system>.csv`` as they come. Run it again to add the
runs that are missing. ``--report`` prints the summary of what is stored. ``--known`` compares W
with the true probability for plans that know the truth, which leaves what the grid rounds up.

- heater: one coordinate, a smooth nonlinear transition in the RKHS of a linear and an SE kernel.
- draught: the heater with Gaussian noise. It has no bound, so that violations are possible.
- cart: position and speed, a linear kernel, a limit of the speed.
- ladder: a table of five states, of which the last one must not be reached.

A run counts as violated if any of its episodes breaks a constraint. The exact binomial test asks
whether the number of such runs fits a probability of at most δ + risk.
"""

import argparse
import csv
import dataclasses
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy

import kernelmdp as km
from kernelmdp.envs import Environment
from kernelmdp.envs.rkhs import KernelExpansion
from kernelmdp.envs.tabular import table_kernels
from kernelmdp.kernels import Index, Linear, SquaredExponential
from kernelmdp.kernels.base import gram
from kernelmdp.mdp import MDP, Categorical, Gaussian, MeanModel, Uniform, rollout
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.fallback import Fallback, as_fallback
from kernelmdp.mdp.model import LookupTable
from kernelmdp.numerics.modules import Module, jit

RESULTS = pathlib.Path(__file__).parent / "results"
HEATER_NOISE = Uniform(0.05)
#: δ of the confidence sets, and the risk of a violation, for all episodes of a run together.
DELTA, RISK = 0.1, 0.1


@dataclasses.dataclass(frozen=True)
class System:
    """A family of truths with their constraint and fallback.

    ``simulated`` episodes of every plan give its true probability of a violation.
    """

    make: object
    constraints: str
    fallback: Fallback
    episodes: int
    planner: dict
    simulated: int = 1000


class LinearReward(Module):
    """R̄(z) = w·z."""

    weights: jax.Array

    def __call__(self, points):
        return points @ self.weights


class LinearStep(Module):
    """P̄(z) = M z."""

    matrix: jax.Array

    def __call__(self, points):
        return points @ self.matrix.T


def interpolant(kernel, target, domain):
    """A function of the RKHS that is close to a target: kernel ridge regression on a net."""
    net = jnp.asarray(domain.net(49)[0])
    matrix = gram(kernel, net, net)
    weights = jnp.linalg.solve(matrix + 1e-4 * jnp.eye(len(net)), target(net))
    return KernelExpansion(kernel, net, weights)


class BentStep(Module):
    """P̄(z) = θ·z + bend(z): a linear part and a smooth one, in the RKHS of the sum kernel."""

    weights: jax.Array
    bend: KernelExpansion

    def __call__(self, points):
        return (points @ self.weights + self.bend(points))[:, None]


def heater(seed, *, noise=HEATER_NOISE):
    """x' = θ₁ x + θ₂ a + a bend; reward: warm, but heating costs."""
    rng = np.random.default_rng(seed)
    weights = jnp.array([rng.uniform(0.6, 0.75), rng.uniform(0.25, 0.35)])
    height = rng.uniform(-0.015, 0.015)
    box = km.Box([-1.0], [1.0])
    points = km.join(state=box, action=box)
    smooth = 0.01 * SquaredExponential(1.0)
    bend = interpolant(smooth, lambda z: height * jnp.sin(2 * z[:, 0] + z[:, 1]), points)
    # Squared norms of the parts bound that of the sum.
    norm = float(jnp.sqrt(weights @ weights + bend.norm**2))
    assert norm < 1.05, norm
    kernel = Linear() + smooth
    reward, step = LinearReward(jnp.array([0.5, -0.05])), BentStep(weights, bend)
    mdp = MDP(
        MeanModel(reward, step),
        states=box,
        actions=box,
        horizon=10,
        reward_noise=Uniform(0.05),
        transition_noise=noise,
        reward_range=(-1.0, 1.0),
    )
    return Environment.of(
        mdp,
        start=(0.0,),
        name="heater",
        reward_kernel=kernel,
        transition_kernel=kernel @ Index(1),
        offset="zero",
        norm_reward=0.6,
        norm_transition=1.05,
        state_points=(201,),
        action_points=(21,),
        coordinates=("temperature",),
    )


def draught(seed):
    """The heater with Gaussian noise."""
    return heater(seed, noise=Gaussian(0.05))


def cart(seed):
    """Position and speed: v' = θ₁ v + θ₂ a, x' = x + 0.2 v; reward: forward."""
    rng = np.random.default_rng(seed)
    drag, push = rng.uniform(0.6, 0.8), rng.uniform(0.25, 0.35)
    box, actions = km.Box([-1.0, -1.0], [1.0, 1.0]), km.Box([-1.0], [1.0])
    matrix = jnp.array([[0.8, 0.2, 0.0], [0.0, drag, push]])
    kernel = Linear()
    mdp = MDP(
        MeanModel(LinearReward(jnp.array([0.5, 0.5, -0.02])), LinearStep(matrix)),
        states=box,
        actions=actions,
        horizon=8,
        reward_noise=Gaussian(0.02),
        transition_noise=Gaussian(0.02),
        reward_range=(-1.0, 1.0),
    )
    return Environment.of(
        mdp,
        start=(-0.5, 0.0),
        name="cart",
        reward_kernel=kernel,
        transition_kernel=kernel @ Index(2),
        offset="zero",
        norm_reward=0.8,
        norm_transition=1.3,
        state_points=(41, 81),
        action_points=(11,),
        coordinates=("position", "speed"),
    )


def ladder(seed):
    """Five rungs. Climbing pays, and may go one rung too far: the last one is the fall."""
    rng = np.random.default_rng(seed)
    states, actions = km.FiniteSet.range(5), km.FiniteSet.range(2)
    rows = np.zeros((5, 2, 5))
    for s in range(5):
        rows[s, 0, max(s - 1, 0)] = 1.0  # climb down
        up, slip = rng.uniform(0.6, 0.8), rng.uniform(0.0, 0.02)
        rows[s, 1, min(s + 1, 4)] += up
        rows[s, 1, s] += 1 - up - slip
        rows[s, 1, 4] += slip
    rewards = np.tile(np.arange(5)[:, None] / 4, (1, 2))
    noise = Categorical(states, variance=0.05)
    mdp = MDP(
        MeanModel(LookupTable(jnp.asarray(rewards)), LookupTable(jnp.asarray(rows))),
        states=states,
        actions=actions,
        horizon=6,
        reward_noise=Uniform(0.05),
        transition_noise=noise,
        reward_range=(0.0, 1.0),
    )
    reward_kernel, transition_kernel = table_kernels(5, 2)
    return Environment.of(
        mdp,
        start=(0.0,),
        name="ladder",
        reward_kernel=reward_kernel,
        transition_kernel=transition_kernel,
        offset="uniform",
        norm_reward=2.8,
        norm_transition=3.0,
        state_points=(2,),
        action_points=(2,),
        coordinates=("rung",),
    )


def made_fallback(function, trusted, env):
    spaces = {"states": env.mdp.states, "actions": env.mdp.actions}
    return as_fallback((function, trusted), **spaces)


FAMILIES = {"heater": heater, "draught": draught, "cart": cart, "ladder": ladder}


def systems(name):
    env = FAMILIES[name](0)
    if name == "heater":
        trusted = km.Box([-1.0], [0.3])
        fallback = made_fallback(lambda s, h: 0.0 * s, trusted, env)
        return System(heater, "temperature <= 0.6", fallback, 30, {"name": "grid"})
    if name == "draught":
        trusted = km.Box([-1.0], [0.4])
        fallback = made_fallback(lambda s, h: 0.0 * s - 0.5, trusted, env)
        # From 0.4 the mean is at most 0.75·0.4 − 0.25·0.5 + 0.015 = 0.19, and 0.4 is 4.2 standard
        # deviations away.
        fallback = dataclasses.replace(fallback, leaves=2e-5)
        return System(draught, "temperature <= 0.6", fallback, 20, {"name": "grid"}, simulated=2000)
    if name == "cart":
        trusted = km.Box([-1.0, -1.0], [1.0, 0.4])
        fallback = made_fallback(lambda s, h: 0.0 * s[:1], trusted, env)
        # From 0.4 the mean speed is at most 0.32: four standard deviations below.
        fallback = dataclasses.replace(fallback, leaves=4e-5)
        return System(cart, "speed <= 0.6", fallback, 15, {"name": "grid", "optimism": "upper"})
    trusted = km.FiniteSet([[0.0], [1.0], [2.0]])
    fallback = made_fallback(lambda s, h: 0.0 * s, trusted, env)
    return System(ladder, "rung <= 3", fallback, 30, {"name": "grid"})


@jit
def simulate(mdp, violation, policy, starts, key):
    """The share of episodes with a violation, and the mean return."""
    states, actions, rewards, _ = rollout(mdp, policy, starts, key=key)

    def broken(before, action, after):
        return violation(state_action(before, action), after)

    steps = jax.vmap(broken)(states[:-1], actions, states[1:])
    share = jnp.mean(jnp.any(steps, axis=0).astype(float))
    return share, jnp.mean(jnp.sum(rewards, axis=0))


def one_run(system, seed, writer, file):
    """One run. The plan of every episode is simulated in the truth."""
    env = system.make(seed)
    agent = km.GPUCRL(
        env,
        constraints=system.constraints,
        fallback=system.fallback,
        risk=RISK,
        risk_for=system.episodes,
        confidence={"name": "valid", "delta": DELTA},
        planner=system.planner,
        seed=seed,
    )
    start, key = np.asarray(env.start, float), jax.random.key(seed)
    starts = jnp.tile(jnp.asarray(start)[None], (system.simulated, 1))
    truth = agent.problem.mdp(env.mdp.model)  # with the constraints, and no width
    planner = agent.planner.within(RISK / system.episodes, system.fallback)
    best = planner.plan(truth, key=key)
    violation = agent.problem.violation
    optimum = float(simulate(env.mdp, violation, best.policy, starts, key)[1])
    by_fallback = float(simulate(env.mdp, violation, system.fallback.policy, starts, key)[1])
    for number in range(system.episodes):
        play_key, check_key = jax.random.split(jax.random.fold_in(key, number))
        began = time.perf_counter()
        policy = agent.ask(start)
        seconds = time.perf_counter() - began
        plan = agent.planned
        episode = env.play(policy, jnp.asarray(start), key=play_key).on_host()
        true_risk, value = map(float, simulate(env.mdp, violation, policy, starts, check_key))
        writer.writerow(
            [
                seed,
                number + 1,
                violation.count(episode.states, episode.actions),
                plan.risk(start),
                float(np.mean(plan.fallback_acts(episode.states[:-1], episode.actions))),
                episode.total,
                true_risk,
                value,
                optimum,
                by_fallback,
                seconds,
                agent.safety.covered,
            ]
        )
        agent.replay(episode)
    file.flush()
    return agent


def known(name, truths=20, simulated=50_000):
    """W and the true probability of a violation of plans that know the truth."""
    system, found = systems(name), []
    for seed in range(truths):
        env = system.make(seed)
        agent = km.GPUCRL(
            env,
            constraints=system.constraints,
            fallback=system.fallback,
            risk=RISK,
            planner=system.planner,
            seed=seed,
        )
        start, key = np.asarray(env.start, float), jax.random.key(seed)
        planner = agent.planner.within(RISK / system.episodes, system.fallback)
        plan = planner.plan(agent.problem.mdp(env.mdp.model), key=key)
        starts = jnp.tile(jnp.asarray(start)[None], (simulated, 1))
        share, _ = simulate(env.mdp, agent.problem.violation, plan.policy, starts, key)
        found.append((plan.risk(start), float(share)))
    planned, true = np.mean(found, axis=0)
    print(f"{name}, truth known: mean W {planned:.2e}, mean true risk {true:.2e} ({truths} truths)")


COLUMNS = (
    "seed episode violations planned_risk fallback_share return true_risk true_value optimum "
    "fallback_value plan_seconds covered"
).split()


def read(name):
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {
        column: np.array(
            [row[column] == "True" if column == "covered" else float(row[column]) for row in rows]
        )
        for column in COLUMNS
    }


def report(name):
    table = read(name)
    seeds = np.unique(table["seed"])
    runs = len(seeds)
    broken = sum(table["violations"][table["seed"] == seed].any() for seed in seeds)
    test = scipy.stats.binomtest(int(broken), runs, DELTA + RISK, alternative="greater")
    # The least probability that the simulated number of violations allows, with 99.9 %.
    simulated = systems(name).simulated
    counts = np.round(table["true_risk"] * simulated)
    least = scipy.stats.beta.ppf(1e-3 / len(counts), counts, simulated - counts + 1)
    least = np.nan_to_num(least)
    above = int(np.sum(least > table["planned_risk"]))
    last = table["episode"] == table["episode"].max()
    gained = (table["true_value"] - table["fallback_value"])[last]
    possible = (table["optimum"] - table["fallback_value"])[last]
    share = gained / possible
    ratio = table["true_value"][last] / table["optimum"][last]
    print(f"{name}: {runs} runs of {int(table['episode'].max())} episodes")
    print(f"  covered by the theorem: {table['covered'].mean():.1%} of episodes")
    print(
        f"  runs with a violation: {broken} (share at most {DELTA + RISK:g}: p = {test.pvalue:.3g})"
    )
    print(f"  episodes whose true risk is above W: {above} of {len(counts)}")
    for episode in (1, 2, 5, 10, 15, 20, 30):
        at = table["episode"] == episode
        if at.any():
            numbers = (
                f"W {np.median(table['planned_risk'][at]):.1e}",
                f"true risk {table['true_risk'][at].mean():.1e}",
                f"fallback {table['fallback_share'][at].mean():.0%}",
                f"value {np.median((table['true_value'] / table['optimum'])[at]):.1%} of optimum",
            )
            print(f"  episode {episode:2d}: " + ", ".join(numbers))
    print(f"  last episode: value/optimum median {np.median(ratio):.1%}, least {ratio.min():.1%}")
    numbers = f"median {np.median(share):.1%}, least {share.min():.1%}"
    print(f"  (value - fallback)/(optimum - fallback): {numbers}")
    print(f"  plan: median {1e3 * np.median(table['plan_seconds']):.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=tuple(FAMILIES))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--known", action="store_true")
    arguments = parser.parse_args()
    if arguments.known:
        known(arguments.system)
        return
    if not arguments.report:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{arguments.system}.csv"
        done = {int(seed) for seed in read(arguments.system).get("seed", [])}
        system = systems(arguments.system)
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if not done:
                writer.writerow(COLUMNS)
            for seed in range(arguments.runs):
                if seed not in done:
                    agent = one_run(system, seed, writer, file)
                    if seed == 0:
                        print(agent.safety, flush=True)
    report(arguments.system)


if __name__ == "__main__":
    main()
