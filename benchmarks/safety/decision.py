"""Time of a decision with constraints, beside one without, in the same learned model.

    taskset -c 0 .venv/bin/python benchmarks/safety/decision.py

A frugal agent plays three safe episodes. Then the states of its last episode are decided again:
with the checks, and by the planner that an agent without constraints has. The numbers are medians
of processor time. The first decision of an episode thinks longer, and is left out.
"""

import argparse
import time

import jax
import numpy as np
import plants_path  # noqa: F401
from run import RecordedSystem, safety_settings
from systems import SYSTEMS, select

import kernelmdp as km
from kernelmdp.agents.safety import plan_safely
from kernelmdp.experiments import interact

EPISODES, ROUNDS = 3, 3


def milliseconds(policy, states) -> float:
    """The median processor time of a decision."""
    times = []
    for _ in range(ROUNDS):
        player = policy.player()
        for period, state in enumerate(states):
            begin = time.process_time()
            player(state, period)
            if period:
                times.append(1e3 * (time.process_time() - begin))
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", default=["all"])
    for name in select(parser.parse_args().systems):
        system = SYSTEMS[name]()
        settings = safety_settings(system) | {"risk": 0.01, "risk_for": "episode"}
        recorded = RecordedSystem(system, 0.0)
        agent = km.Frugal(recorded, horizon=system.horizon, seed=0, **settings)
        list(interact(agent, EPISODES))
        states = np.asarray(agent.history[-1].states)[:-1]
        mdp, key = agent.careful_mdp(), jax.random.key(0)
        safe = milliseconds(plan_safely(agent, agent.planner, mdp, key=key).policy, states)
        plain = km.MPCPlanner.for_problem(agent.problem)
        unsafe = milliseconds(plain.plan(mdp, key=key).policy, states)
        print(
            f"{name}: {safe:.1f} ms with checks, {unsafe:.1f} ms without, "
            f"ratio {safe / unsafe:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
