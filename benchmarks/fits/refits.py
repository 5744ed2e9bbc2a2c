"""Time of an update of fitted kernels, by coordinates m and rows n.

    taskset -c 0 .venv/bin/python benchmarks/fits/refits.py --coordinates 2 4 8 16

A chain of masses, episodes of 50 random steps, reward learned. For each m and n: milliseconds of
the processor for an episode without a fit, with a fit that goes on from the last one, and with a
thorough fit that searches from the prior medians too; median of ``--repeats``. An update includes
the test of the episode, the fit, the comparison with the old parameters and the new posteriors.
Before that, all earlier episodes are fitted at once, and then as often again from the last fit as
searches need to converge, as they have in a sequence of episodes.

    taskset -c 0 .venv/bin/python benchmarks/fits/refits.py --sequence --coordinates 4 --rows 1500

learns one episode after another instead, and prints each update: rows, what was fitted, time.
"""

import argparse
import dataclasses
import pathlib
import sys
import time

import jax
import numpy as np

import kernelmdp as km
from kernelmdp.learners import fitted_kernels
from kernelmdp.mdp import Episode

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "start"))
from chain import Chain

STEPS = 50
#: Fits from the last fit before anything is measured.
SETTLING = 3


def episodes_of(chain, count: int) -> list[Episode]:
    rng, episodes = np.random.default_rng(0), []
    for number in range(count):
        states, actions, rewards = [chain.reset(seed=number)[0]], [], []
        for _ in range(STEPS):
            action = rng.uniform(-1, 1, chain.action_space.shape)
            state, reward, *_ = chain.step(action)
            states.append(state)
            actions.append(action)
            rewards.append(reward)
        arrays = (np.array(states, float), np.array(actions), np.array(rewards))
        episodes.append(Episode(*arrays, np.array(states[1:], float)))
    return episodes


def timed(learner, state, episode, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        begin = time.process_time()
        after = learner.update(state, episode, key=jax.random.key(0))
        jax.block_until_ready(jax.tree.leaves(after.beliefs))
        times.append(time.process_time() - begin)
    return 1e3 * float(np.median(times[1:]))


def sequence(learner, state, episodes) -> None:
    """Learn twice, so that programs are compiled, and print the updates of the second time."""
    for is_measured in (False, True):
        after = state
        for episode in episodes:
            before, begin = after, time.process_time()
            after = learner.update(before, episode, key=jax.random.key(0))
            jax.block_until_ready(jax.tree.leaves(after.beliefs))
            seconds = time.process_time() - begin
            searched = after.searched_at != before.searched_at
            fitted = "fit" if after.fitted_at != before.fitted_at else "no fit"
            if is_measured:
                label = "thorough fit" if searched else fitted
                print(f"| {len(after.data)} | {label} | {1e3 * seconds:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinates", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000, 5000, 20000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sequence", action="store_true", help="one episode after another")
    options = parser.parse_args()
    if options.sequence:
        chain = Chain(options.coordinates[0])
        agent = km.PSRL(km.from_gymnasium(chain, horizon=STEPS), seed=0)
        episodes = episodes_of(chain, options.rows[0] // STEPS)
        sequence(agent.learner, agent.state, episodes)
        return
    print("| m | n | no fit | fit | thorough fit |")
    print("|---|---|---|---|---|")
    real = fitted_kernels.contradicts
    for m in options.coordinates:
        chain = Chain(m)
        agent = km.PSRL(km.from_gymnasium(chain, horizon=STEPS), seed=0)
        learner = agent.learner
        for n in options.rows:
            *history, last = episodes_of(chain, n // STEPS)
            state = agent.state
            data = state.data.with_history(history)
            state = dataclasses.replace(state, data=data)
            state = fitted_kernels.refitted(state, rows=STEPS)
            for _ in range(SETTLING):
                state = fitted_kernels.refitted(state, rows=STEPS, thorough=False)
            fitted_kernels.contradicts = lambda *_: False
            without = timed(learner, state, last, options.repeats)
            old = dataclasses.replace(state, fitted_at=len(data) // 2, searched_at=len(data))
            warm = timed(learner, old, last, options.repeats)
            fitted_kernels.contradicts = lambda *_: True
            thorough = timed(learner, old, last, options.repeats)
            fitted_kernels.contradicts = real
            print(f"| {m} | {n} | {without:.0f} | {warm:.0f} | {thorough:.0f} |", flush=True)


if __name__ == "__main__":
    main()
