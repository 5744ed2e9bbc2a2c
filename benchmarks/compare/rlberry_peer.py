"""rlberry's agents on the problems of ``tables``, in an environment of their own.

rlberry 0.6 is the last version in the registry with PSRL and KernelUCBVI, and needs an older
Gymnasium than ours. One line of JSON in (a problem, an agent, a seed), one out: for every episode
what it was worth: in a table the optimum less the gaps V*(s) - Q*(s, a) met, which has the policy's
value for its mean and far less noise than a return, in the room the sum of the mean rewards met.
Rewards are told without noise, as PSRL here wants them in [0, 1]: an advantage over ours, which see
them with noise.
"""

import json
import sys
import time

import gymnasium
import numpy as np
from rlberry import spaces
from rlberry.agents import PSRLAgent, RSKernelUCBVIAgent, UCBVIAgent


class Recorded(gymnasium.Env):
    """What episodes were worth; the agents end them themselves."""

    reward_range = (0.0, 1.0)
    first = 0.0

    def __init__(self, seed):
        self.rng, self.sums = np.random.default_rng(seed), []

    def reseed(self, seeder=None):
        """What rlberry asks of an environment; the seed was given already."""

    def reset(self, *, seed=None, options=None):
        self.sums.append(self.first)
        self.state, self.period = self.start(), 0
        return self.state, {}

    def step(self, action):
        reward, after = self.move(self.state, int(action))
        self.sums[-1] += self.worth(int(action), reward)
        self.state, self.period = after, self.period + 1
        return self.state, reward, False, False, {}

    def worth(self, action, reward):
        return reward


class Table(Recorded):
    def __init__(self, given, seed):
        super().__init__(seed)
        self.P, self.R = np.array(given["transitions"]), np.array(given["rewards"])
        self.observation_space = spaces.Discrete(self.R.shape[0])
        self.action_space = spaces.Discrete(self.R.shape[1])
        values, self.gaps = np.zeros(len(self.R)), []
        for _ in range(given["horizon"]):
            worth = self.R + self.P @ values
            values = worth.max(axis=1)
            self.gaps.insert(0, values[:, None] - worth)
        self.first = values[0]

    def start(self):
        return 0

    def worth(self, action, reward):
        return -self.gaps[self.period][self.state, action]

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
