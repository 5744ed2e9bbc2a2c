"""Systems as they are met in the lab: parts that are not seen, delays, rough models, drift."""

import importlib.util
import pathlib
import sys

import gymnasium
import jax.numpy as jnp
import numpy as np

from kernelmdp.envs.angles import AnglePairs

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "control" / "plants"
sys.path.insert(0, str(FOLDER))


class Shown(gymnasium.ObservationWrapper):
    """Shows some coordinates of an observation."""

    def __init__(self, env: gymnasium.Env, shown: list[int]) -> None:
        super().__init__(env)
        space = env.observation_space
        self.shown = shown
        self.observation_space = gymnasium.spaces.Box(
            space.low[shown], space.high[shown], dtype=space.dtype
        )

    def observation(self, observation):
        return observation[self.shown]


class Delayed(gymnasium.Wrapper):
    """Applies every action some steps later. Before the first one, the action is 0."""

    def __init__(self, env: gymnasium.Env, delay: int) -> None:
        super().__init__(env)
        self.delay = delay

    def reset(self, **options):
        idle = np.clip(0.0, self.env.action_space.low, self.env.action_space.high)
        self.waiting = [idle for _ in range(self.delay)]
        return self.env.reset(**options)

    def step(self, action):
        self.waiting.append(action)
        return self.env.step(self.waiting.pop(0))


class Weaker(gymnasium.Wrapper):
    """A plant whose actuator loses half of its gain after some episodes."""

    def __init__(self, env: gymnasium.Env, episodes: int, gain: float = 0.5) -> None:
        super().__init__(env)
        self.episodes, self.gain, self.played = episodes, gain, 0

    def reset(self, **options):
        self.played += 1
        return self.env.reset(**options)

    def step(self, action):
        worn = self.played > self.episodes
        return self.env.step(np.asarray(action) * (self.gain if worn else 1.0))


#: Tasks whose velocities are not shown, and the coordinates that are.
HIDDEN = {"Pendulum-v1": [0, 1], "CartPole-v1": [0, 2]}
#: Factors of the parameters of rough models. Each parameter is wrong by 30 %.
WRONG = {
    "coupled-tanks": {"section": 1.3, "outlet": 1 / 1.3},
    "reactor": {"heating": 1 / 1.3, "exchange": 1.3},
    "dc-motor": {"inertia": 1.3, "constant": 1 / 1.3, "resistance": 1.3, "inductance": 1 / 1.3},
    "boost-converter": {"inductance": 1.3, "capacity": 1 / 1.3, "load": 1.3, "resistance": 1.3},
    "epidemic": {"contact": 1.3, "recovery": 1 / 1.3},
    "rotary-pendulum": {"arm": 1.3, "pendulum": 1 / 1.3, "weight": 1 / 1.3},
}
#: Pairs of a cosine and a sine, which agents know as one angle.
PAIRS = {"rotary-pendulum": ((1, 2),)}


def plant(name: str) -> gymnasium.Env:
    """Make a plant by name."""
    import catalogue

    return catalogue.PLANTS[name]()


def in_jax(name: str):
    """The plant with its module loaded again, with ``jax.numpy`` in place of NumPy."""
    made = plant(name)
    path = pathlib.Path(sys.modules[type(made).__module__].__file__)
    spec = importlib.util.spec_from_file_location(f"rough_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.np = jnp
    return getattr(module, type(made).__name__)()


def rough_model(name: str):
    """The plant's own equations with wrong parameters, as a function of one state and action."""
    wrong = in_jax(name)
    for parameter, factor in WRONG[name].items():
        setattr(wrong, parameter, factor * getattr(wrong, parameter))
    low, high = wrong.observation_space.low, wrong.observation_space.high
    angles = AnglePairs(PAIRS.get(name, ()))

    def model(state, action):
        noise, observed = jnp.zeros((1, wrong.noise_dimension)), angles.observations(state[None])
        following = jnp.clip(wrong.transition(observed, action[None], noise)[0][0], low, high)
        for first, second in angles.pairs:
            following = following.at[first].set(jnp.arctan2(following[second], following[first]))
        return following[jnp.array(angles.observation_axes(len(low)))]

    return model


def reward(name: str):
    """The plant's mean reward without noise, as a function of points (n, d)."""
    true = in_jax(name)
    angles = AnglePairs(PAIRS.get(name, ()))
    m = true.observation_space.shape[0] - len(angles.pairs)

    def values(points):
        noise = jnp.zeros((len(points), true.noise_dimension))
        return true.transition(angles.observations(points[:, :m]), points[:, m:], noise)[1]

    return values
