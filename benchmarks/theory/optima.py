"""Does the stated error of an optimum hold? Random instances against four times the points.

    .venv/bin/python benchmarks/theory/optima.py --instances 220

Instances are truths of ``rkhs`` and ``gp-prior`` with random noise and horizon. It prints the
largest share of the stated error that was used, and how often the error was exceeded.
"""

import argparse

import numpy as np

import kernelmdp as km
from kernelmdp.mdp.evaluation import optimal_value


def share(rng: np.random.Generator, name: str) -> float:
    """The difference from four times the points, as a share of the stated error."""
    noise, horizon = float(rng.choice([0.02, 0.05, 0.1, 0.2])), int(rng.choice([3, 5, 10]))
    env = km.make(name, seed=int(rng.integers(1 << 30)), noise=noise, horizon=horizon)
    (states,), (actions,) = env.optimum_points
    optimum = env.optimal_value()
    counts = {"state_points": (4 * states - 3,), "action_points": (4 * actions - 3,)}
    fine = optimal_value(env.mdp, env.start, **counts)
    return abs(fine.value - optimum.value) / optimum.error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=220)
    chosen = parser.parse_args()
    rng = np.random.default_rng(1)
    names = ("rkhs", "gp-prior")
    shares = np.array([share(rng, names[i % 2]) for i in range(chosen.instances)])
    print(f"largest {shares.max():.2f}, median {np.median(shares):.2f}, ", end="")
    print(f"exceeded {np.sum(shares > 1)} times in {len(shares)}")


if __name__ == "__main__":
    main()
