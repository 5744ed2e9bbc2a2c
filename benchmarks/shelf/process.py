"""Two processes of pc-gym with the parameters of its paper: a stirred tank reactor, and four tanks.

The parameters are those of the training scripts of pc-gym's paper (Bloor et al., 2024). The reward
is minus the scaled squared distance from the set points and the squared change of the action.
"""

import gymnasium
import numpy as np

STEPS = 60
#: Weight of the squared change of the normalised action.
CHANGE_WEIGHT = 0.1


def tracking_reward(process, observed, action, constraint_violated):
    """The reward of pc-gym's paper, which pc-gym calls after a step."""
    del constraint_violated
    cost, spaces = 0.0, process.env_params
    for name, points in process.SP.items():
        axis = process.model.info()["states"].index(name)
        width = spaces["o_space"]["high"][axis] - spaces["o_space"]["low"][axis]
        error = (observed[axis] - points[process.t]) / width
        cost += spaces.get("r_scale", {}).get(name, 1.0) * error**2
    width = spaces["a_space"]["high"] - spaces["a_space"]["low"]
    change = np.zeros_like(width) if process.last is None else (action - process.last) / width
    process.last = action
    return -float(cost + CHANGE_WEIGHT * np.sum(change**2))


class Process(gymnasium.Env):
    """An environment of pc-gym, with seeds, and with a time limit that truncates.

    pc-gym draws its noise from NumPy's global generator and reports the time limit as an end.
    """

    def __init__(self, parameters: dict) -> None:
        from pcgym import make_env

        self.process = make_env(parameters | {"custom_reward": tracking_reward})
        # Observations may leave the bounds that pc-gym states: it uses them only for scaling.
        shape = self.process.observation_space.shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        count = self.process.action_space.shape[0]
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (count,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002  (pc-gym uses this generator)
        self.process.last = None
        observation, _ = self.process.reset()
        return np.asarray(observation, dtype=float), {}

    def step(self, action):
        observation, reward, done, _, _ = self.process.step(np.asarray(action, dtype=float))
        return np.asarray(observation, dtype=float), float(reward), False, bool(done), {}


def _make(model: str, points: dict, low: list, high: list, actions: tuple, **more) -> Process:
    return Process(
        {
            "N": STEPS,
            "SP": points,
            "o_space": {"low": np.array(low), "high": np.array(high)},
            "a_space": {"low": np.array(actions[0]), "high": np.array(actions[1])},
            "model": model,
            "normalise_a": True,
            "normalise_o": True,
            "noise": True,
            "integration_method": "casadi",
        }
        | more
    )


def make_reactor() -> Process:
    """The stirred tank reactor: concentration, temperature and set point; one coolant."""
    return _make(
        "cstr",
        {"Ca": [0.85] * 20 + [0.9] * 20 + [0.87] * 20},
        [0.7, 300.0, 0.8],
        [1.0, 350.0, 0.9],
        ([295.0], [302.0]),
        tsim=26,
        x0=np.array([0.8, 330.0, 0.8]),
        r_scale={"Ca": 1e3},
        noise_percentage=0.001,
    )


def make_four_tanks() -> Process:
    """Four tanks: their levels and two set points; two pumps."""
    return _make(
        "four_tank",
        {"h3": [0.5] * 30 + [0.1] * 30, "h4": [0.2] * 30 + [0.3] * 30},
        [0.0] * 6,
        [0.6] * 6,
        ([0.1, 0.1], [10.0, 10.0]),
        tsim=1000,
        x0=np.array([0.141, 0.112, 0.072, 0.42, 0.5, 0.2]),
        noise_percentage=0.05,
    )
