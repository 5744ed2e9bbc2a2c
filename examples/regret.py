"""Regret on a random smooth MDP: what learning costs against the computed optimum.

Reward and transition are functions of known RKHS norm on one state and one action coordinate; the
optimum comes from dynamic programming in the truth, so regret is measured and not guessed. GP-UCRL
runs twice: "valid" sets hold the truth with high probability and the theorem covers them,
"practical" ones are a tenth as wide, learn faster and are not covered.

    python examples/regret.py --out regret.png
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import kernelmdp as km


def main() -> None:
    """Four agents, one environment, one figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="regret.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the MDP and of the agents")
    options = parser.parse_args()
    env = km.make("rkhs", seed=options.seed)
    agents = {
        "greedy": km.Greedy(env, seed=options.seed),
        "PSRL": km.PSRL(env, seed=options.seed),
        "GP-UCRL, practical": km.GPUCRL(env, seed=options.seed),
        "GP-UCRL, valid": km.GPUCRL(env, seed=options.seed, confidence="valid"),
    }
    best = env.optimal_value()
    print(f"optimal value {best.value:.3f} ± {best.error:.1g}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for label, agent in agents.items():
        result = agent.learn(options.episodes, progress=False)
        table = result.episodes
        left.plot(table["episode"], table["cumulative_regret"], label=label)
        if isinstance(agent, km.GPUCRL):
            right.plot(table["episode"], table["planned_value"], label=f"{label}: hoped for")
            right.plot(table["episode"], table["value"], label=f"{label}: worth")
        print(f"{label:18} regret {result.regret:7.1f}   {result.coverage}")
    left.set(xlabel="episode", ylabel="cumulative regret", xscale="log", yscale="log")
    left.legend(frameon=False)
    right.axhline(best.value, color="black", ls="--", lw=1, label="optimum")
    right.set(xlabel="episode", ylabel="value of the plan", xscale="log")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
