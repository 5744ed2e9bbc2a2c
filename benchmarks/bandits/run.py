"""Kernel bandits: our agents at H = 1 beside BoTorch's GP-UCB, in one run.

Our agents hold the kernel that the environment suggests; BoTorch fits its own every round, as its
users do, and gets five random arms first. Each meets the same reward noise, round by round.
"""

import argparse
import json
import pathlib
import time
import warnings

import jax.numpy as jnp
import numpy as np
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

import kernelmdp as km
from kernelmdp.agents import AGENTS

FIRST, BETA = 5, 4.0


def ours(environment, name, rounds, seed):
    agent = AGENTS[name](environment, seed=seed)
    return np.asarray(agent.learn(rounds, progress=False).episodes["regret"])


def botorch(environment, rounds, seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    low, high = environment.mdp.actions.bounds
    best = environment.optimal_value().value
    noise = float(environment.mdp.reward_noise.sizes[0])
    bounds = torch.stack([torch.as_tensor(low), torch.as_tensor(high)])

    def truth(action):
        point = np.concatenate([[0.0], action])[None]
        return float(environment.known_reward(jnp.asarray(point))[0])

    actions, rewards, regret = [], [], []
    for t in range(rounds):
        if t < FIRST:
            action = rng.uniform(low, high)
        else:
            X, y = torch.as_tensor(np.array(actions)), torch.as_tensor(np.array(rewards))[:, None]
            model = SingleTaskGP(X, y)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            chosen, _ = optimize_acqf(
                UpperConfidenceBound(model, beta=BETA), bounds, q=1, num_restarts=8, raw_samples=256
            )
            action = chosen[0].numpy()
        actions.append(action)
        rewards.append(truth(action) + noise * rng.normal())
        regret.append(best - truth(action))
    return np.array(regret)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default=pathlib.Path(__file__).with_name("results.json"))
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")
    rows = []
    for name in ("bandit-branin", "bandit-hartmann6", "bandit-rkhs"):
        for contender in ("random", "gp-ucrl", "psrl", "botorch GP-UCB"):
            begin, sums, last = time.perf_counter(), [], []
            for seed in range(options.seeds):
                environment = km.envs.make(name, seed=seed)
                if contender == "botorch GP-UCB":
                    regret = botorch(environment, options.rounds, seed)
                else:
                    regret = ours(environment, contender, options.rounds, seed)
                sums.append(float(regret.sum()))
                last.append(float(regret.min()))
            seconds = (time.perf_counter() - begin) / options.seeds / options.rounds
            error = np.std(sums, ddof=1) / np.sqrt(len(sums)) if len(sums) > 1 else float("nan")
            print(
                f"{name:18} {contender:15} regret {np.mean(sums):8.2f} ± {error:.2f}   "
                f"best {np.mean(last):.3f}   {1e3 * seconds:.0f} ms a round",
                flush=True,
            )
            rows.append(
                {"env": name, "agent": contender, "regret": sums, "best": last, "seconds": seconds}
            )
    pathlib.Path(options.out).write_text(
        json.dumps({"rounds": options.rounds, "rows": rows}) + "\n"
    )


if __name__ == "__main__":
    main()
