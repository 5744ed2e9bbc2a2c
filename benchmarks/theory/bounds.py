"""From which number of steps T the bounds say something: old and new ones, on the smooth toy.

    .venv/bin/python benchmarks/theory/bounds.py
    .venv/bin/python benchmarks/theory/bounds.py --tight

SE kernels of variance 1 on [-1, 1]^2, H = 2, noise 0.2, norms 1, delta = 0.1. The truths of the toy
``smooth`` (toys.py) have an L of 0.17 to 0.40. ``--tight`` takes gains by optimal designs, at
multiples of 100 steps, which takes half an hour.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import kernelmdp as km
from kernelmdp import theory
from kernelmdp.confidence import Supremum, supremum
from kernelmdp.theory.sampling_theorem import rank_of

#: Steps between the lengths that are tried with tight gains.
STEP = 100
#: Draws of the prior from which E sup|R| is estimated, at 41 x 41 points.
DRAWS = 200
BOX = km.join(state=km.Box([-1.0], [1.0]), action=km.Box([-1.0], [1.0]))
NOISE = 0.2


def first_useful(bound: Callable[..., theory.Bound], tight: bool, words: dict[str, Any]) -> int:
    """The first T; with tight gains, the first multiple of ``STEP`` up to that of closed forms."""
    horizon = words["horizon"]
    first = bound(episodes=100, **words).first_useful
    last = horizon * first if first is not None else -1
    if not tight or last < STEP:
        return last
    tries = range(STEP, last + STEP, STEP)
    low, high = 0, len(tries) - 1
    while low < high:
        middle = (low + high) // 2
        found = bound(episodes=tries[middle] // horizon, tight=True, **words)
        low, high = (middle + 1, high) if found.vacuous else (low, middle)
    return tries[low]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tight", action="store_true")
    tight = parser.parse_args().tight
    norms = {"norm_reward": 1, "norm_transition": 1}
    words: dict[str, Any] = {"horizon": 2, "reward_noise": NOISE, "transition_noise": NOISE}
    kernel = km.kernel("se(2.0)")
    toy = words | norms | {"reward_kernel": kernel, "transition_kernel": kernel, "domain": BOX}
    slope = 2 / (NOISE * np.sqrt(2 * np.pi))  # what the noise gives Theorem 1 (note B8)
    print("GP-UCRL: L, lambda, Theorem 1, Theorem 16")
    for lipschitz in (0.4, 1.0, None):
        for name, regulariser in (("H", None), ("noise", NOISE**2)):
            both = {f"regulariser_{role}": regulariser for role in ("reward", "transition")}
            old = {"lipschitz": slope if lipschitz is None else lipschitz, "beta": "mixture"}
            numbers = (
                first_useful(theory.theorem1, tight, toy | both | old),
                first_useful(theory.theorem16, tight, toy | both | {"lipschitz": lipschitz}),
            )
            print(lipschitz, name, *numbers, flush=True)
    print("PSRL: lengthscale, H, rank, E sup|R| by chaining, T of Theorems 4 and 18; and by draws")
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 41)] * 2), -1).reshape(-1, 2)
    for lengthscale, horizon in ((2.0, 2), (1.0, 2), (0.5, 2), (2.0, 5)):
        kernel = km.kernel(f"se({lengthscale})")
        size = supremum(kernel.bind(BOX.names), BOX)
        prior = km.gp.posterior(kernel, noise_variance=1.0, domain=BOX, tolerance=1e-6)
        keys = jax.random.split(jax.random.key(0), DRAWS)
        draws = [np.abs(np.asarray(prior.sample(key=key)(grid))).max() for key in keys]
        smaller = Supremum(float(np.mean(draws)), 1.0, rigorous=False)
        own = {**words, "horizon": horizon, "domain": BOX}
        own |= {"reward_kernel": kernel, "transition_kernel": kernel}
        numbers = (
            first_useful(theory.theorem4, False, own),
            first_useful(theory.theorem18, tight, own),
            first_useful(theory.theorem18, tight, own | {"reward_supremum": smaller}),
        )
        rank = rank_of(kernel, BOX)[0]
        sizes = f"{size.expected:.2f}", f"{smaller.expected:.2f}"
        print(lengthscale, horizon, rank, sizes[0], *numbers[:2], sizes[1], numbers[2], flush=True)


if __name__ == "__main__":
    main()
