"""Few states, and a continuous room: our agents and classics beside rlberry's."""

import json
import os
import pathlib
import subprocess
import time

import numpy as np

TITLE = "Tables and a continuous room"
HERE = pathlib.Path(__file__).resolve().parent
PEER = os.environ.get("RLBERRY_PYTHON", str(HERE.parents[1] / ".venv-rlberry" / "bin" / "python"))
ROOM = {
    "directions": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]],
    "step": 0.15, "noise": 0.02, "start": [0.1, 0.1], "goal": [0.85, 0.85], "width": 0.15,
    "horizon": 20,
}  # fmt: skip
#: Contender: whose, its name, its settings.
RIVER = {
    "PSRL": ("ours", "psrl", {}),
    "GP-UCRL": ("ours", "gp-ucrl", {}),
    "our UCBVI": ("ours", "ucbvi", {}),
    "our UCBVI, scale 0.1": ("ours", "ucbvi", {"scale": 0.1}),
    "our Dirichlet PSRL": ("ours", "dirichlet-psrl", {}),
    "rlberry UCBVI": ("rlberry", "UCBVI", {}),
    "rlberry UCBVI, scale 0.1": ("rlberry", "UCBVI", {"bonus_scale_factor": 0.1}),
    "rlberry PSRL": ("rlberry", "PSRL", {}),
}
ROOMS = {
    "PSRL": ("ours", "psrl", {}),
    "GP-UCRL": ("ours", "gp-ucrl", {}),
    "random": ("ours", "random", {}),
    "rlberry KernelUCBVI": ("rlberry", "KernelUCBVI", {}),
    "rlberry KernelUCBVI, scale 0.1": ("rlberry", "KernelUCBVI", {"bonus_scale_factor": 0.1}),
}
PROBLEMS = {"riverswim": (RIVER, 500), "room": (ROOMS, 100)}


def cells(quick):
    seeds, share = (1, 20) if quick else (3, 1)
    return [
        {"problem": problem, "agent": agent, "episodes": episodes // share, "seed": seed}
        for problem, (agents, episodes) in PROBLEMS.items()
        for seed in range(seeds)
        for agent in agents
    ]


def limit(cell):
    return 300.0


def run(cell):
    kind, name, words = PROBLEMS[cell["problem"]][0][cell["agent"]]
    return (ours if kind == "ours" else theirs)(cell, name, words)


def problem(name):
    """Our environment, and the same in numbers for others."""
    import jax.numpy as jnp

    import kernelmdp as km

    if name == "room":
        return room(), ROOM
    env = km.make(name)
    S, A = env.mdp.states.count, env.mdp.actions.count
    points = np.array([[s, a] for s in range(S) for a in range(A)], float)
    found = env.mdp.model(jnp.asarray(points))
    return env, {
        "transitions": np.asarray(found.state).reshape(S, A, S).tolist(),
        "rewards": np.asarray(found.reward).reshape(S, A).tolist(),
        "horizon": env.mdp.horizon,
    }


def room():
    import jax.numpy as jnp

    import kernelmdp as km
    from kernelmdp.envs.environment import Environment
    from kernelmdp.kernels import Index, SquaredExponential
    from kernelmdp.mdp import MDP, Gaussian, MeanModel

    goal, width = jnp.asarray(ROOM["goal"]), ROOM["width"]
    mdp = MDP(
        MeanModel(
            lambda z: jnp.exp(-jnp.sum((z[:, :2] - goal) ** 2, axis=1) / (2 * width**2)),
            lambda z: z[:, :2] + ROOM["step"] * z[:, 2:],
        ),
        states=km.Box([0.0, 0.0], [1.0, 1.0]),
        actions=km.FiniteSet(ROOM["directions"]),
        horizon=ROOM["horizon"],
        reward_noise=Gaussian(0.1),
        transition_noise=Gaussian(ROOM["noise"]),
        reward_range=(0.0, 1.0),
    )
    return Environment.of(
        name="room",
        mdp=mdp,
        start=tuple(ROOM["start"]),
        reward_kernel=SquaredExponential([0.2, 0.2]).on([0, 1]),
        transition_kernel=SquaredExponential([0.5, 0.5, 1.0, 1.0]) @ Index(2),
        offset="identity",
        scale=(ROOM["step"],) * 2,
        state_points=(31, 31),
        action_points=(2, 2),
        optimum_points=((61, 61), (2, 2)),
    )


def ours(cell, name, words):
    from kernelmdp.agents import AGENTS
    from kernelmdp.experiments import interact

    env, _ = problem(cell["problem"])
    agent = AGENTS[name](env, seed=cell["seed"], **words)
    begin, regret, later = time.process_time(), [], 0.0
    for row in interact(agent, cell["episodes"]):
        regret.append(float(row["cumulative_regret"]))
        if len(regret) == 2:
            later = time.process_time()
    now = time.process_time()
    each = (now - later) / max(1, cell["episodes"] - 2)
    return {"regret": _thinned(regret), "seconds": now - begin, "episode_seconds": each}


def theirs(cell, name, words):
    env, numbers = problem(cell["problem"])
    asked = {"problem": numbers, "agent": name, "words": words, "seed": cell["seed"]}
    asked["episodes"] = cell["episodes"]
    if not pathlib.Path(PEER).exists():
        raise SystemExit("rlberry is not installed: `make compare` gives it an environment")
    command = [PEER, str(HERE / "rlberry_peer.py"), json.dumps(asked)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit((ended.stderr.strip().splitlines() or ["no message"])[-1])
    found = json.loads(ended.stdout.splitlines()[-1])
    best = env.optimal_value().value
    regret = np.cumsum(best - np.array(found["sums"]))
    each = found["seconds"] / cell["episodes"]
    return {"regret": _thinned(regret), "seconds": found["seconds"], "episode_seconds": each}


def _thinned(regret):
    """At most a hundred episodes, the last among them: (episode, regret)."""
    count = len(regret)
    places = sorted({round(x) for x in np.linspace(1, count, min(100, count))})
    return [(place, round(float(regret[place - 1]), 4)) for place in places]


def _by(found, name):
    for agent in PROBLEMS[name][0]:
        own = [
            one for one in found if (one["cell"]["problem"], one["cell"]["agent"]) == (name, agent)
        ]
        yield agent, [one["found"] for one in own if "failed" not in one["found"]]


def table(found):
    from scipy import stats

    lines = ["| problem | agent | seeds | episodes | regret | ms an episode |", "|---" * 6 + "|"]
    for name in PROBLEMS:
        for agent, own in _by(found, name):
            if not own:
                lines.append(f"| {name} | {agent} | 0 | | failed | |")
                continue
            last = np.array([one["regret"][-1][1] for one in own])
            half = stats.t.ppf(0.975, len(own) - 1) * stats.sem(last) if len(own) > 1 else np.nan
            text = f"{last.mean():.1f}" + ("" if np.isnan(half) else f" ± {half:.1f}")
            each = 1e3 * np.median([one["episode_seconds"] for one in own])
            episodes = own[0]["regret"][-1][0]
            lines.append(f"| {name} | {agent} | {len(own)} | {episodes:,} | {text} | {each:.2g} |")
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(1, 2, figsize=(10, 5))
    for axis, name in zip(axes, PROBLEMS, strict=True):
        for agent, own in _by(found, name):
            if own:
                episodes = [place for place, _ in own[0]["regret"]]
                mean = np.mean([[value for _, value in one["regret"]] for one in own], axis=0)
                style = "--" if agent.startswith("rlberry") else "-"
                axis.plot(episodes, mean, style, label=agent)
        axis.set_yscale("log")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("episode")
        if axis.lines:
            axis.legend(fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    axes[0].set_ylabel("cumulative regret, mean over seeds")
    picture.tight_layout()
    picture.savefig(path, dpi=110)
