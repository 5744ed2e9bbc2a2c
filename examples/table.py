"""A table: six states of a river, two actions, and a reward that is far upstream.

States and actions are numbers without order, the kernel says that cells share nothing, and the two
algorithms become tabular ones. Beside them PSRL with the Dirichlet prior that tables usually have.

    python examples/table.py --out table.png
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import kernelmdp as km


def main() -> None:
    """Regret of four agents, and which way the learned policy swims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="table.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    env = km.make("riverswim")
    print(env.reward_kernel, "|", env.transition_kernel)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name in ("greedy", "psrl", "gp-ucrl", "dirichlet-psrl"):
        agent = km.agents.AGENTS[name](env, seed=options.seed)
        result = agent.learn(options.episodes, progress=False)
        result.plot(left)
        print(f"{name:14} regret {result.regret:7.1f}")
        policy = [float(agent.predict([state], period=0)[0]) for state in range(6)]
        right.plot(range(6), policy, "o-", label=name, alpha=0.7)
    left.set_title("")
    right.set(xlabel="state", ylabel="action in the first period", yticks=[0, 1])
    right.set_yticklabels(["with the stream", "against it"])
    right.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
