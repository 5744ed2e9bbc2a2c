"""Our BFGS against optax's L-BFGS, for the fit of a kernel's parameters: one run, ratios.

    python benchmarks/gp/fit.py [--repeats 7] [--seeds 5] [--only D ...]

Data are steps of one or more coupled pendulums under random torques, with noise; kernels are those
of ``kernel="auto"``. Every search starts at the prior's medians and minimises the same loss.
"short" is by how much the loss reached is above the best known (of a search of 400 steps and of all
contenders), in nats: the median and the largest over seeds. Seconds are medians over repeats, taken
in turn; those of the others are multiples of ours. Compilation is timed once, without a cache.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.fit_config import SearchConfig
from kernelmdp.gp.fitting import DYNAMICS, bounded, fitting_blocks, minimise, objective

#: Coordinates, pendulums among them, and torques.
SYSTEMS = {3: (1, 1), 6: (2, 2), 10: (3, 4)}
ROWS = (50, 160, 640)
MOST, BLOCKS = 160, 4
Search = Callable[[Any, Any], tuple[Any, Any]]


def problem(d: int, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Units, blocks of one output (the change of the first speed), and the prior's rows."""
    pendulums, torques = SYSTEMS[d]
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-np.pi, np.pi, size=(n, pendulums))
    speeds = rng.uniform(-8, 8, size=(n, pendulums))
    pushes = rng.uniform(-2, 2, size=(n, torques))
    pull = 0.2 * (speeds.mean(axis=1) - speeds[:, 0])
    change = 0.05 * (15 * np.sin(angles[:, 0]) + 3 * pushes[:, 0] + pull)
    x = np.concatenate([angles, speeds, pushes], axis=1)
    y = (change + 0.01 * rng.normal(size=n))[:, None]
    widths = np.concatenate([np.full(pendulums, 2.0), np.full(pendulums, 16), np.full(torques, 4)])
    size = np.sqrt(np.mean(y**2, axis=0))
    family = ARDFamily(jnp.asarray(widths), jnp.asarray(size), jnp.ones(d), tuple(range(pendulums)))
    few = n if n < MOST else MOST
    blocks = fitting_blocks(x, y, most=few, blocks=-(-n // few), key=jax.random.key(seed))
    return family, (blocks[0], blocks[1][:, :, 0], blocks[2]), jnp.asarray(DYNAMICS.rows(d))


def ours(steps: int) -> Search:
    return lambda loss, start: minimise(loss, start, SearchConfig(steps=steps))


def theirs(steps: int, linesearch: Any) -> Search:
    def search(loss: Any, start: Any) -> tuple[Any, Any]:
        solver = optax.lbfgs(linesearch=linesearch)
        value_and_slope = optax.value_and_grad_from_state(loss)

        def one(carry: Any, _: None) -> tuple[Any, None]:
            here, state = carry
            value, slope = value_and_slope(here, state=state)
            updates, state = solver.update(
                slope, state, here, value=value, grad=slope, value_fn=loss
            )
            return (optax.apply_updates(here, updates), state), None

        (best, _), _ = jax.lax.scan(one, (start, solver.init(start)), None, length=steps)
        return best, loss(best)

    return search


def contenders() -> dict[str, Search]:
    zoom = optax.scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")
    back = optax.scale_by_backtracking_linesearch(
        max_backtracking_steps=20, decrease_factor=0.3, store_grad=True
    )
    return {
        "ours, 25": ours(25),
        "optax zoom, 25": theirs(25, zoom),
        "optax zoom, 12": theirs(12, zoom),
        "optax backtracking, 25": theirs(25, back),
        "optax backtracking, 12": theirs(12, back),
    }


def compiled(search: Search) -> Any:
    def run(family: Any, blocks: Any, rows: Any) -> tuple[Any, Any]:
        share = (jnp.log(rows[:, 0]) - jnp.log(rows[:, 2])) / jnp.log(rows[:, 3] / rows[:, 2])
        start = jnp.log(share) - jnp.log1p(-share)
        free, value = search(objective(family, *blocks, rows), start)
        return bounded(free, rows), value

    return jax.jit(run)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = jax.block_until_ready(work())
    return time.perf_counter() - begin, result


def compare(d: int, n: int, repeats: int, seeds: int) -> None:
    problems = [problem(d, n, seed) for seed in range(seeds)]
    programs = {name: compiled(search) for name, search in contenders().items()}
    first = {name: timed(lambda p=p: p(*problems[0]))[0] for name, p in programs.items()}
    best = compiled(ours(400))
    least = [float(best(*each)[1]) for each in problems]
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    values: dict[str, list[float]] = {name: [] for name in programs}
    for repeat in range(repeats):
        for name, program in programs.items():
            took, (_, value) = timed(lambda p=program, i=repeat: p(*problems[i % seeds]))
            seconds[name].append(took)
            if repeat < seeds:
                values[name].append(float(value))
    run = {name: statistics.median(each) for name, each in seconds.items()}
    build = {name: first[name] - run[name] for name in programs}
    base = next(iter(programs))
    floor = [min(each) for each in zip(least, *values.values(), strict=True)]
    for name in programs:
        short = [v - f for v, f in zip(values[name], floor, strict=True)]
        times = f"{run[name]:7.3f} s" if name == base else f"{run[name] / run[base]:7.2f} x"
        builds = f"{build[name]:6.2f} s" if name == base else f"{build[name] / build[base]:6.2f} x"
        print(
            f"d={d:2} n={n:3}  {name:23} run {times}  compile {builds}  "
            f"short {statistics.median(short):8.3f} (largest {max(short):8.3f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="*", default=sorted(SYSTEMS))
    given = parser.parse_args()
    for d in given.only:
        for n in ROWS:
            compare(d, n, max(given.repeats, given.seeds), given.seeds)


if __name__ == "__main__":
    main()
