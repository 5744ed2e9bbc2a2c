"""Time of one MPC decision with kernels that fit themselves, after 2,000 steps of random actions.

    taskset -c 0 .venv/bin/python benchmarks/control/decision.py

The cart-pole (m = 4), reward learned: the mean (greedy), a draw (PSRL) and a family (GP-UCRL) with
the default planner. The first decision of an episode thinks longer and is shown by itself, with its
compilation; of the others the median. Then each learns six episodes from nothing: how many programs
were traced or compiled after the second.
"""

import time

import jax
import numpy as np

import kernelmdp as km
from kernelmdp.experiments import interact

STEPS, EPISODES = 2000, 6
EVENTS = ("/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration")


def retraces(agent) -> list[int]:
    """Programs traced and compiled in every episode after the second."""
    seen: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: seen.append(event))
    counts = []
    for _ in interact(agent, EPISODES):
        counts.append(sum(event in EVENTS for event in seen))
        seen.clear()
    jax.monitoring.clear_event_listeners()
    return counts[2:]


def decided(kind) -> tuple[float, float, list[int]]:
    """Milliseconds of a decision and of an episode's first, and ``retraces``."""
    env = km.make("cartpole-swingup")
    wanderer = km.Random(env, seed=0)
    wanderer.learn(STEPS // env.mdp.horizon, progress=False)
    agent = kind(env, kernel="auto", planner="mpc", seed=0)
    for told in wanderer.history:
        agent.replay(told)
    states = wanderer.history[0].states
    player = agent.ask(states[0]).player()
    times = []
    for period, state in enumerate(states[:-1]):
        begin = time.perf_counter()
        player(state, period)
        times.append(1e3 * (time.perf_counter() - begin))
    again = kind(env, kernel="auto", planner="mpc", seed=0)
    return float(np.median(times[1:])), times[0], retraces(again)


def main() -> None:
    for kind in (km.Greedy, km.PSRL, km.GPUCRL):
        middle, first, new = decided(kind)
        print(f"{kind.name:8s} {middle:6.1f} ms, the first {first:.0f} ms; traced anew {new}")


if __name__ == "__main__":
    main()
