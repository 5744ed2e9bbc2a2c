"""Linear-quadratic control: linear dynamics, quadratic costs, neither known.

With the kernels "linear" and "quadratic" what is learned are matrices; plans come from Riccati's
recursion and the optimum from its closed form. Beside the two algorithms the classic that acts on
the least-squares estimate (certainty equivalence).

    python examples/lqr.py --out lqr.png
"""

import argparse

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import kernelmdp as km


def main() -> None:
    """Regret of three agents on a double integrator, and its path before and after learning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="lqr.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--env", default="lqr-2d", choices=["lqr-1d", "lqr-2d", "lqr-4d"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    env = km.make(options.env)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name in ("psrl", "gp-ucrl", "certainty-equivalence"):
        agent = km.agents.AGENTS[name](env, seed=options.seed)
        result = agent.learn(options.episodes, progress=False)
        result.plot(left)
        print(f"{name:22} regret {result.regret:8.2f}")
        if name == "psrl":
            for number, label in ((0, "first episode"), (-1, f"episode {agent.episode}")):
                right.plot(agent.history[number].states[:, 0], ".-", label=f"psrl, {label}")
    key = jax.random.key(options.seed)
    truth = km.planners.RiccatiPlanner().plan(env.mdp, key=key)
    start = env.draw_start(key)
    right.plot(env.play(truth.policy, start, key=key).states[:, 0], "k--", label="optimal policy")
    left.set_title("")
    right.set(xlabel="period", ylabel="first coordinate of the state")
    right.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
