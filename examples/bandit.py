"""A bandit: one state, one period, and a function to be maximised with noisy tries.

With H = 1 GP-UCRL is GP-UCB and PSRL is Gaussian-process Thompson sampling. The reward is any
function of yours; here a yield that depends on a temperature, with a lower hill to get stuck on.

    python examples/bandit.py --out bandit.png
"""

import argparse

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km


def mean_yield(temperature: jax.Array) -> jax.Array:
    """What is to be found out: (n, 1) -> (n,)."""
    x = temperature[:, 0]
    return 0.7 * jnp.exp(-(((x - 0.25) / 0.12) ** 2)) + jnp.exp(-(((x - 0.8) / 0.1) ** 2))


def main() -> None:
    """Where each algorithm tried, and what it knows after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="bandit.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=25, help="tries")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    env = km.envs.bandit(
        mean_yield, km.Box([0.0], [1.0]), km.kernel("0.5 * se(0.12)"), noise=0.1, optimum=1.0
    )
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    x = np.linspace(0, 1, 200)[:, None]
    for axis, kind in zip(axes, (km.GPUCRL, km.PSRL), strict=True):
        # Sets of full width: the default, "practical", may stay on the lower hill here.
        agent = kind(env, confidence="valid", seed=options.seed)
        result = agent.learn(options.episodes, progress=False)
        tries = np.array([(told.actions[0, 0], told.rewards[0]) for told in agent.history])
        mean, std = agent.beliefs.reward.predict(np.hstack([np.zeros_like(x), x]))
        mean, std = np.asarray(mean), np.asarray(std)
        axis.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.2, lw=0)
        axis.plot(x, mean, label="mean ± 2 deviations")
        axis.plot(x, mean_yield(jnp.asarray(x)), "k--", lw=1, label="truth")
        order = axis.scatter(*tries.T, c=np.arange(len(tries)), cmap="viridis", s=18, zorder=3)
        best = float(agent.predict([0.0])[0])
        axis.axvline(best, color="C1", lw=1, label=f"held for the best: {best:.2f}")
        axis.set(title=f"{agent.name}: regret {result.regret:.2f}", xlabel="temperature")
        print(f"{agent.name:8} regret {result.regret:5.2f}, holds {best:.3f} for the best")
    axes[0].set_ylabel("yield")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.colorbar(order, ax=axes, label="try")
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
