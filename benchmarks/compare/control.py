"""Continuous control: PSRL beside Stable-Baselines3's SAC, TD3 and PPO, all through Gymnasium."""

import time

import numpy as np

TITLE = "Control"
PENDULUM, CAR, POLE = "Pendulum-v1", "MountainCarContinuous-v0", "kernelmdp/CartPoleSwingup-v0"
#: Level of the mean return, and steps between exams of SB3.
PROBLEMS = {PENDULUM: (-200.0, 500), CAR: (90.0, 1_000), POLE: (-13.0, 500)}
KNOWN = "PSRL, reward known"
#: Steps that each may take.
BUDGETS = {
    PENDULUM: {"PSRL": 2_000, "SAC": 10_000, "TD3": 10_000, "PPO": 20_000},
    CAR: {"PSRL": 2_000, "SAC": 5_000, "TD3": 5_000, "PPO": 20_000},
    POLE: {KNOWN: 500, "PSRL": 500, "SAC": 5_000, "TD3": 5_000, "PPO": 20_000},
}
AGENTS = ("PSRL", KNOWN, "SAC", "TD3", "PPO")
#: Seeds, where not two; one, to save time, where the first was far from the level.
SEEDS = {
    (PENDULUM, "PSRL"): 3, (PENDULUM, "SAC"): 3,
    (CAR, "SAC"): 1, (CAR, "TD3"): 1, (CAR, "PPO"): 1, (POLE, "TD3"): 1, (POLE, "PPO"): 1,
}  # fmt: skip
#: An angle is observed as its cosine and sine, by all.
OPTIONS = {POLE: {"observation": "cos-sin"}}
EXAMINED = 5


def cells(quick):
    problems = list(PROBLEMS)[:1] if quick else list(PROBLEMS)
    return [
        {"problem": problem, "agent": agent, "steps": steps // (10 if quick else 1), "seed": seed}
        for seed in range(1 if quick else 3)
        for problem in problems
        for agent, steps in BUDGETS[problem].items()
        if seed < SEEDS.get((problem, agent), 2)
    ]


def limit(cell):
    return 600.0


def made(name):
    import gymnasium

    import kernelmdp.envs.gymnasium_env as own

    own.register()
    return gymnasium.make(name, **OPTIONS.get(name, {}))


def examined(name, choose):
    """The mean return over the same starts; ``choose(observation, period)`` gives an action."""
    totals = []
    for number in range(EXAMINED):
        env = made(name)
        observation, _ = env.reset(seed=10_000 + number)
        total, period, over = 0.0, 0, False
        while not over:
            observation, reward, ended, cut, _ = env.step(choose(observation, period))
            total, period, over = total + float(reward), period + 1, ended or cut
        totals.append(total)
    return float(np.mean(totals))


def run(cell):
    return (ours if cell["agent"].startswith("PSRL") else theirs)(cell)


def ours(cell):
    import kernelmdp as km

    level = PROBLEMS[cell["problem"]][0]
    begin, exams, curve, steps, returns = time.process_time(), 0.0, [], 0, []
    env = made(cell["problem"])
    words = {"reward": "known"} if cell["agent"] == KNOWN else {}
    agent = km.PSRL(env, seed=cell["seed"], **words)
    while steps < cell["steps"]:
        result = agent.learn(1, progress=False)
        returns.append(float(result.episodes["return"][0]))
        steps += len(agent.history[-1].rewards)
        if agent.episode < 2:
            continue
        start = time.process_time()
        mean = examined(cell["problem"], agent.predict)
        curve.append((steps, start - begin - exams, mean))
        exams += time.process_time() - start
        if mean >= level:
            break
    return _summary(curve, returns, level)


def theirs(cell):
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor

    level, every = PROBLEMS[cell["problem"]]
    torch.set_num_threads(1)

    class Exam(BaseCallback):
        def __init__(self):
            super().__init__()
            self.curve, self.begin, self.exams = [], time.process_time(), 0.0

        def _on_step(self):
            if self.num_timesteps % every:
                return True
            start = time.process_time()
            seconds = start - self.begin - self.exams
            mean = examined(
                cell["problem"], lambda seen, _: self.model.predict(seen, deterministic=True)[0]
            )
            self.exams += time.process_time() - start
            self.curve.append((self.num_timesteps, seconds, mean))
            return mean < level

    env = Monitor(made(cell["problem"]))
    words = {} if cell["agent"] == "PPO" else {"learning_rate": 1e-3}
    model = getattr(sb3, cell["agent"])("MlpPolicy", env, seed=cell["seed"], device="cpu", **words)
    exam = Exam()
    model.learn(cell["steps"], callback=exam)
    return _summary(exam.curve, env.get_episode_rewards(), level)


def _summary(curve, returns, level):
    last = curve[-1] if curve else (0, 0.0, float("-inf"))
    return {
        "reached": last[2] >= level,
        "steps": last[0],
        "seconds": last[1],
        "best": max((mean for _, _, mean in curve), default=float("-inf")),
        "regret": float(np.sum(np.maximum(0.0, level - np.array(returns)))),
        "curve": curve,
    }


def _by(found, problem):
    for agent in AGENTS:
        own = [
            one["found"]
            for one in found
            if (one["cell"]["problem"], one["cell"]["agent"]) == (problem, agent)
            and "failed" not in one["found"]
        ]
        if own:
            yield agent, own


def table(found):
    lines = ["| problem (level) | agent | seeds | reached at step | seconds | best exam | regret |"]
    lines.append("|---" * 7 + "|")
    for problem, (level, _) in PROBLEMS.items():
        for agent, own in _by(found, problem):
            steps = "; ".join(
                f"{one['steps']:,}" if one["reached"] else f"not in {one['steps']:,}" for one in own
            )
            seconds, best, regret = (
                "; ".join(f"{one[key]:,.{digits}f}" for one in own)
                for key, digits in (("seconds", 0), ("best", 1), ("regret", 0))
            )
            cells = (f"{problem} ({level:g})", agent, str(len(own)), steps, seconds, best, regret)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(1, len(PROBLEMS), figsize=(10, 4))
    for axis, (problem, (level, _)) in zip(axes, PROBLEMS.items(), strict=True):
        for agent, own in _by(found, problem):
            for one in own:
                if one["curve"]:
                    steps, _, means = zip(*one["curve"], strict=True)
                    style = {"color": f"C{AGENTS.index(agent)}", "markersize": 3}
                    label = agent if one is own[0] else None
                    axis.semilogx(steps, means, "o-", label=label, **style)
        axis.axhline(level, color="k", linestyle=":")
        axis.set_title(problem.removeprefix("kernelmdp/"), fontsize=9)
        axis.set_xlabel("environment steps")
    axes[0].set_ylabel("mean return of an exam")
    lines, names = axes[-1].get_legend_handles_labels()
    picture.legend(lines, names, loc="lower center", ncol=len(AGENTS), fontsize=8)
    picture.tight_layout(rect=(0, 0.07, 1, 1))
    picture.savefig(path, dpi=110)
