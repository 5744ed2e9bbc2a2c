"""What each kernel believes: draws before any data, and what is believed after four points.

python docs/figures/kernels.py
"""

import pathlib

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from shrink import shrunk

import kernelmdp as km

HERE = pathlib.Path(__file__).parent
SMOOTH = ("se(1.0)", "se(0.25)", "matern(2.5, 0.5)", "matern(0.5, 0.5)")
FORMED = ("linear", "quadratic", "0.5 * periodic(1.0, 1.5)", "0.5 * se(0.5) + linear")
SEEN = np.array([[-1.5], [-0.9], [-0.3], [0.2]])
VALUES = np.array([-0.9, -0.5, 0.1, 0.3])
X = np.linspace(-2, 2, 161)[:, None]


def lines(texts: tuple[str, ...], name: str) -> None:
    """A column for each kernel."""
    figure, axes = plt.subplots(
        2, len(texts), figsize=(10, 4.4), sharex=True, sharey=True, layout="constrained"
    )
    for (above, below), text in zip(axes.T, texts, strict=True):
        prior = km.gp.posterior(km.kernel(text), noise_variance=1e-3, dimension=1)
        draws = np.asarray(prior.sample_at(X, key=jax.random.key(4), draws=3))
        above.plot(X, draws.reshape(3, -1).T, lw=1.1)
        above.set_title(text, fontsize=9, family="monospace")
        after = prior.condition(SEEN, VALUES)
        mean, std = (np.asarray(a) for a in after.predict(X))
        below.fill_between(X[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.2, lw=0)
        below.plot(X, mean, lw=1.4)
        below.plot(SEEN, VALUES, "ko", ms=3.5)
        below.set_xlabel("state")
    axes[0, 0].set(ylabel="three draws", ylim=(-3.2, 3.2))
    axes[1, 0].set_ylabel("after four points")
    figure.savefig(HERE / name, dpi=90)
    shrunk(HERE / name)


def maps(name: str) -> None:
    """One draw of each way to combine state and action."""
    texts = (
        "se(0.5)",
        "se(0.5)[state] + se(0.5)[action]",
        "se(0.5)[state] * (constant(1.0) + linear)[action]",
    )
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True, layout="constrained")
    domain = km.join(state=km.Box([-1.0], [1.0]), action=km.Box([-1.0], [1.0]))
    side = np.linspace(-1, 1, 61)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for axis, text in zip(axes, texts, strict=True):
        prior = km.gp.posterior(km.kernel(text), noise_variance=0.01, domain=domain)
        f = prior.sample(key=jax.random.key(2))
        axis.contourf(side, side, np.asarray(f(points)).reshape(61, 61), 12, cmap="viridis")
        words = text.replace(" + se", "\n+ se").replace(" * ", "\n* ")
        axis.set_title(words, fontsize=8.5, family="monospace")
        axis.set_xlabel("state")
    axes[0].set_ylabel("action")
    figure.savefig(HERE / name, dpi=90)
    shrunk(HERE / name)


if __name__ == "__main__":
    lines(SMOOTH, "kernels-smooth.png")
    lines(FORMED, "kernels-formed.png")
    maps("kernels-combined.png")
