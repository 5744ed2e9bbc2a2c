"""A table: six states of a river, two actions, and a reward that is far upstream.

States and actions are numbers without order, the kernel says that cells share nothing, and the two
algorithms become tabular ones. Beside them PSRL with the Dirichlet prior that tables usually have.

    python examples/table.py --out table.png
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km


def main() -> None:
    """Regret of four agents, and where they swim in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="table.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    env = km.make("riverswim")
    print(env.problem.reward_kernel, "|", env.problem.transition_kernel)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name in ("greedy", "psrl", "gp-ucrl", "dirichlet-psrl"):
        agent = km.agents.AGENTS[name](env, seed=options.seed)
        result = agent.learn(options.episodes, progress=False)
        result.plot(left)
        print(f"{name:14} regret {result.regret:7.1f}")
        late = np.concatenate([told.states[:, 0] for told in agent.history[-20:]])
        share = np.bincount(late.astype(int), minlength=6) / len(late)
        right.plot(range(6), share, "o-", label=name)
    left.set_title("")
    right.set(xlabel="state (5: upstream)", ylabel="share of the last 20 episodes spent there")
    right.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
