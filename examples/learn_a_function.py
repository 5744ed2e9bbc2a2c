"""Compile a composite kernel, learn a function online, and see how much can be learned at all.

Writes one figure: the posterior after three and after twelve episodes of five points (mean, band,
three draws), and the information gained so far under the certified maximum over all designs.

    python examples/learn_a_function.py --out demo.png
"""

import argparse

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km

NOISE = 0.05  # standard deviation
EPISODES, HORIZON = 12, 5


def truth(x: np.ndarray) -> np.ndarray:
    """What is to be learned; the learner sees only noisy values."""
    return np.sin(9 * x) * (1 - x) + 0.8 * x**2


def learn(kernel: km.kernels.Kernel, domain: km.Box) -> list[km.gp.Posterior]:
    """The posterior before and after every episode, each visiting where the last was unsure."""
    rng = np.random.default_rng(0)
    posterior = km.gp.posterior(kernel, noise_variance=NOISE**2, domain=domain)
    print(posterior)
    history = [posterior]
    for _ in range(EPISODES):
        candidates = rng.random((40, 1))
        _, std = posterior.predict(candidates)
        points = candidates[np.argsort(np.asarray(std))[-HORIZON:]]
        targets = truth(points[:, 0]) + NOISE * rng.standard_normal(HORIZON)
        posterior = posterior.condition(points, targets)
        history.append(posterior)
    return history


def draw_posterior(axes: plt.Axes, posterior: km.gp.Posterior, title: str) -> None:
    """Mean, band of two standard deviations, three drawn functions and the truth."""
    x = np.linspace(0, 1, 300)[:, None]
    mean, std = (np.asarray(a) for a in posterior.predict(x))
    axes.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, lw=0)
    for number in range(3):
        sample = posterior.sample(key=jax.random.key(number))
        axes.plot(x, sample(x), color="C0", lw=0.8, alpha=0.7)
    axes.plot(x, mean, color="C0", lw=2, label="mean, band, 3 draws")
    axes.plot(x, truth(x[:, 0]), "k--", lw=1.2, label="truth")
    axes.set(title=title, xlabel="x", ylim=(-1.8, 2.2))
    axes.legend(loc="lower left", frameon=False)


def draw_gain(axes: plt.Axes, history: list[km.gp.Posterior], domain: km.Box) -> None:
    """Information gained against the certified maximum."""
    ns = [p.count for p in history]
    bound = km.information.gain_curve(
        history[0].kernel, domain=domain, ns=ns, noise_variance=NOISE**2
    )
    axes.plot(ns, bound, "k-", label="certified maximum over all designs")
    axes.plot(ns, [p.information_gain for p in history], "C0o-", label="this run")
    axes.set(title="information gain (nats)", xlabel="points seen", ylim=(0, None))
    axes.legend(loc="lower right", frameon=False)
    print(f"information gain {history[-1].information_gain:.2f} <= {bound[-1]:.2f} (certified)")


def main() -> None:
    """Learn, then draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="demo.png", help="where the figure goes")
    out = parser.parse_args().out
    kernel = km.kernel("se(0.15) + 0.5 * matern(2.5, 1.0) * (linear + constant(0.2))")
    domain = km.Box(low=[0.0], high=[1.0])
    history = learn(kernel, domain)
    figure, (first, second, third) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    draw_posterior(first, history[3], "after 3 episodes (15 points)")
    draw_posterior(second, history[-1], f"after {EPISODES} episodes ({history[-1].count} points)")
    draw_gain(third, history, domain)
    figure.savefig(out, dpi=120)
    print(f"figure written to {out}")


if __name__ == "__main__":
    main()
