"""rlberry's agents on the problems of ``tables``, in an environment of their own.

rlberry 0.6 is the last version in the registry with PSRL and KernelUCBVI, and needs an older
Gymnasium than ours. One line of JSON in (a problem, an agent, a seed), one out: for every episode
the sum of the mean rewards met. Rewards are told without noise, as PSRL here wants them in [0, 1]:
an advantage over ours, which see them with noise.
"""

import json
import sys
import time

import gymnasium
import numpy as np
from rlberry import spaces
from rlberry.agents import PSRLAgent, RSKernelUCBVIAgent, UCBVIAgent


class Recorded(gymnasium.Env):
    """Sums of mean rewards by episode; the agents end episodes themselves."""

    reward_range = (0.0, 1.0)

    def __init__(self, seed):
        self.rng, self.sums = np.random.default_rng(seed), []

    def reseed(self, seeder=None):
        """What rlberry asks of an environment; the seed was given already."""

    def reset(self, *, seed=None, options=None):
        self.sums.append(0.0)
        self.state = self.start()
        return self.state, {}

    def step(self, action):
        reward, self.state = self.move(self.state, int(action))
        self.sums[-1] += reward
        return self.state, reward, False, False, {}


class Table(Recorded):
    def __init__(self, given, seed):
        super().__init__(seed)
        self.P, self.R = np.array(given["transitions"]), np.array(given["rewards"])
        self.observation_space = spaces.Discrete(self.R.shape[0])
        self.action_space = spaces.Discrete(self.R.shape[1])

    def start(self):
        return 0

    def move(self, state, action):
        return self.R[state, action], int(self.rng.choice(len(self.P), p=self.P[state, action]))


class Room(Recorded):
    def __init__(self, given, seed):
        super().__init__(seed)
        self.given = given
        self.moves = given["step"] * np.array(given["directions"])
        self.observation_space = spaces.Box(0.0, 1.0, (2,))
        self.action_space = spaces.Discrete(len(self.moves))

    def start(self):
        return np.array(self.given["start"])

    def move(self, state, action):
        away = ((state - self.given["goal"]) ** 2).sum() / (2 * self.given["width"] ** 2)
        after = state + self.moves[action] + self.given["noise"] * self.rng.standard_normal(2)
        return float(np.exp(-away)), np.clip(after, 0.0, 1.0)


AGENTS = {"UCBVI": UCBVIAgent, "PSRL": PSRLAgent, "KernelUCBVI": RSKernelUCBVIAgent}


def main() -> None:
    asked = json.loads(sys.argv[1])
    env = (Table if "transitions" in asked["problem"] else Room)(asked["problem"], asked["seed"])
    words = {"gamma": 1.0, "horizon": asked["problem"]["horizon"], "seeder": asked["seed"]}
    agent = AGENTS[asked["agent"]](env, **words, **asked["words"])
    env = getattr(agent.env, "unwrapped", agent.env)
    env.sums.clear()
    begin = time.process_time()
    agent.fit(asked["episodes"])
    seconds = time.process_time() - begin
    print(json.dumps({"sums": env.sums[: asked["episodes"]], "seconds": seconds}))


if __name__ == "__main__":
    main()
