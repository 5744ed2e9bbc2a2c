"""Environment steps until a policy is good, learning at every step (targets: TIP's problems).

    .venv/bin/python benchmarks/control/steps.py cartpole-swingup --above -13 --seeds 10
    .venv/bin/python benchmarks/control/steps.py cartpole-swingup --above -13 --update episode

After every few steps, or every episode where it learns by the episode, the policy held for best
plays five episodes from starts of its own, which are not counted and not learned from. Rewards are
known, kernels fit themselves; nothing is fitted beforehand. Every seed is kept in
benchmarks/control/results/.
"""

import argparse
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.agents import AGENTS
from kernelmdp.experiments.learning_loop import interact
from kernelmdp.experiments.step_updates import StepwisePlayer, play_by_step
from kernelmdp.mdp.mdp import rollout

RESULTS = pathlib.Path(__file__).parent / "results"
EVALUATED = 5


class Enough(Exception):  # noqa: N818  (no error)
    """The policy is good, or steps have run out."""


class Examined(StepwisePlayer):
    """A player that is examined every few steps."""

    def __init__(self, agent, examine):
        super().__init__(agent)
        self.examine = examine

    def observe(self, *step):
        super().observe(*step)
        self.examine()


def one(
    name: str, agent: str, update: str, seed: int, above: float, every: int, limit: int
) -> dict:
    env = km.make(name)
    learner = AGENTS[agent](
        env, kernel="auto", reward="known", update=update, planner="mpc", seed=seed
    )
    every = every if update == "step" else env.mdp.horizon
    starts = jnp.stack([env.draw_start(jax.random.key(10**6 + i)) for i in range(EVALUATED)])
    curve: list[tuple[int, float]] = []
    steps = 0

    def examine() -> None:
        nonlocal steps
        steps += 1
        if steps % every:
            return
        policy = learner.plan_greedy(key=jax.random.key(steps)).policy
        rewards = rollout(env.mdp, policy, starts, key=jax.random.key(0))[2]
        curve.append((steps, float(jnp.sum(rewards, axis=0).mean())))
        if curve[-1][1] > above or steps >= limit:
            raise Enough

    begin = time.perf_counter()
    world = jax.random.fold_in(jax.random.key(seed), 2**31 - 1)
    try:
        if update == "episode":
            for _ in interact(learner, limit // every):
                steps += every - 1
                examine()
        while update == "step":
            start_key, key = jax.random.split(jax.random.fold_in(world, learner.episode))
            player = Examined(learner, examine)
            episode = play_by_step(env.mdp, player, np.asarray(env.draw_start(start_key)), key=key)
            learner.tell(episode.states, episode.actions, episode.rewards, episode.outcomes)
    except Enough:
        pass
    solved = curve[-1][1] > above
    return {
        "agent": agent,
        "seed": seed,
        "steps": steps if solved else None,
        "curve": curve,
        "seconds": time.perf_counter() - begin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--above", type=float, required=True, help="the mean return to reach")
    parser.add_argument("--agents", nargs="+", default=["greedy", "psrl", "gp-ucrl"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--update", default="step", choices=["step", "episode"])
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--limit", type=int, default=200)
    chosen = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    suffix = "" if chosen.update == "step" else "-episode"
    place = RESULTS / f"steps-{chosen.env}{suffix}.json"
    runs = json.loads(place.read_text())["runs"] if place.exists() else []
    runs = [run for run in runs if run["agent"] not in chosen.agents]
    for agent in chosen.agents:
        for seed in range(chosen.seeds):
            words = (seed, chosen.above, chosen.every, chosen.limit)
            found = one(chosen.env, agent, chosen.update, *words)
            runs.append(found)
            print(agent, seed, found["steps"], f"{found['seconds']:.0f} s", flush=True)
            place.write_text(json.dumps({"above": chosen.above, "runs": runs}, indent=0) + "\n")
    print("\n| agent | median steps | all |\n|---|---|---|")
    for agent in dict.fromkeys(run["agent"] for run in runs):
        steps = [run["steps"] for run in runs if run["agent"] == agent]
        middle = np.median([np.inf if s is None else s for s in steps])
        print(f"| {agent} | {middle:g} | {', '.join(map(str, steps))} |")


if __name__ == "__main__":
    main()
