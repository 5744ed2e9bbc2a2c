"""Check that the plants are what they claim to be.

.venv/bin/python benchmarks/control/plants/check.py
"""

import warnings

import gymnasium
import numpy as np
from catalogue import DEVELOPMENT, HELD_BACK, PLANTS
from gymnasium.utils.env_checker import check_env
from plant import Plant


def episode(plant: Plant, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Play random actions. Return observations, actions and rewards."""
    plant.action_space.seed(seed)
    observations, actions, rewards, done = [plant.reset(seed=seed)[0]], [], [], False
    while not done:
        actions.append(plant.action_space.sample())
        observation, reward, terminated, truncated, _ = plant.step(actions[-1])
        observations.append(observation)
        rewards.append(reward)
        done = terminated or truncated
    return np.stack(observations), np.stack(actions), np.array(rewards)


def check(kind: type[Plant]) -> None:
    """Check spaces, seeds, the horizon, and that batches of transitions equal steps."""
    plant, same = kind(), kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # actions in physical units are intended
        check_env(plant, skip_render_check=True)
    low, high = plant.observation_space.low, plant.observation_space.high
    assert np.isfinite([low, high]).all()
    assert 20 <= plant.horizon <= 60
    lengths = []
    for seed in range(20):
        observations, actions, rewards = episode(plant, seed)
        again = episode(same, seed)
        for first, second in zip((observations, actions, rewards), again, strict=True):
            np.testing.assert_array_equal(first, second)
        assert all(plant.observation_space.contains(each) for each in observations)
        assert np.isfinite(rewards).all()
        lengths.append(len(rewards))
        # The same episode, as one row among others.
        rng = np.random.default_rng(seed)
        states = np.repeat(plant.initial_states(rng, 1), 3, axis=0)
        noise = rng.standard_normal((len(rewards), 1, plant.noise_dimension))
        for step, action in enumerate(actions):
            rows = np.repeat(np.reshape(action, (1, -1)).astype(float), 3, axis=0)
            states, batch, ended = plant.advance(states, rows, np.repeat(noise[step], 3, axis=0))
            np.testing.assert_allclose(batch, rewards[step], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(states[2], observations[step + 1], rtol=1e-5, atol=1e-4)
        assert ended.all() or len(rewards) == plant.horizon
    assert max(lengths) <= plant.horizon
    discrete = isinstance(plant.action_space, gymnasium.spaces.Discrete)
    assert discrete or np.isfinite([plant.action_space.low, plant.action_space.high]).all()


def main() -> None:
    assert len(PLANTS) == 16
    assert len(DEVELOPMENT) == len(HELD_BACK) == 8
    for name, kind in PLANTS.items():
        check(kind)
        print(f"{name}: as claimed")


if __name__ == "__main__":
    main()
