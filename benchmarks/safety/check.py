"""Check that the systems are what they claim to be.

.venv/bin/python benchmarks/safety/check.py
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import plants_path  # noqa: F401
from constrained import ConstrainedPlant
from gymnasium.utils.env_checker import check_env
from systems import SYSTEMS

#: Episodes in which the fallback must not violate, from the starts and from trusted states.
EPISODES = 1_000


def episode(system: ConstrainedPlant, seed: int) -> tuple[np.ndarray, ...]:
    """Play random actions. Return observations, actions, rewards and costs."""
    system.action_space.seed(seed)
    observations, actions, rewards, costs = [system.reset(seed=seed)[0]], [], [], []
    done = False
    while not done:
        actions.append(system.action_space.sample())
        observation, reward, terminated, truncated, info = system.step(actions[-1])
        observations.append(observation)
        rewards.append(reward)
        costs.append(info["cost"])
        done = terminated or truncated
    return np.stack(observations), np.stack(actions), np.array(rewards), np.array(costs)


def check_steps(kind: type[ConstrainedPlant]) -> None:
    """Check spaces, seeds, the horizon, and that batches of transitions equal steps."""
    system, same = kind(), kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # actions in physical units are intended
        check_env(system, skip_render_check=True)
    space = system.observation_space
    assert np.isfinite([space.low, space.high]).all()
    assert np.isfinite([system.action_space.low, system.action_space.high]).all()
    assert 40 <= system.horizon <= 80
    assert len(system.coordinates) == space.shape[0]
    assert len(system.scale) == len(system.constraints)
    violating = 0
    for seed in range(20):
        observations, actions, rewards, costs = played = episode(system, seed)
        for first, second in zip(played, episode(same, seed), strict=True):
            np.testing.assert_array_equal(first, second)
        assert all(space.contains(each) for each in observations)
        assert len(rewards) == system.horizon
        assert set(costs) <= {0.0, 1.0}
        violating += costs.any()
        # The same episode, as one row among others.
        rng = np.random.default_rng(seed)
        states = np.repeat(system.initial_states(rng, 1), 3, axis=0)
        assert not system.violates(states, np.repeat(actions[:1], 3, axis=0)).any()
        noise = rng.standard_normal((len(rewards), 1, system.noise_dimension))
        for step, action in enumerate(actions.astype(float)):
            rows = np.repeat(action[None], 3, axis=0)
            states, batch, _ = system.advance(states, rows, np.repeat(noise[step], 3, axis=0))
            np.testing.assert_allclose(batch, rewards[step], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(states[2], observations[step + 1], rtol=1e-5, atol=1e-4)
            assert (system.violates(states, rows) == costs[step]).all()
    assert violating > 0


def check_constraints(system: ConstrainedPlant) -> None:
    """Check that the box of allowed states is the constraints, and that JAX computes the same."""
    rng = np.random.default_rng(0)
    space = system.observation_space
    states = rng.uniform(space.low, space.high, (EPISODES, space.shape[0]))
    actions = rng.uniform(*system.action_bounds, (EPISODES, len(system.action_bounds[0])))
    values = system.margins(states, actions)
    if system.allowed is not None:
        low, high = system.allowed.low, system.allowed.high
        inside = ((states >= low) & (states <= high)).all(axis=1)
        np.testing.assert_array_equal(inside, (values <= 0.0).all(axis=1))
    for number, constraint in enumerate(system.constraints):
        compiled = jax.jit(jax.vmap(constraint.function))(jnp.asarray(states), jnp.asarray(actions))
        np.testing.assert_allclose(compiled, values[:, number], rtol=1e-4, atol=1e-3)
    compiled = jax.jit(jax.vmap(lambda state: system.fallback(state, 0)))(jnp.asarray(states))
    expected = np.stack([system.fallback(state, 0) for state in states])
    width = system.action_space.high - system.action_space.low
    np.testing.assert_allclose(compiled / width, expected / width, atol=2e-3)


def trusted_states(system: ConstrainedPlant, rng: np.random.Generator) -> np.ndarray:
    """Draw states from the trusted box. A cosine and a sine are those of one angle."""
    low, high = system.trusted.low.astype(float), system.trusted.high.astype(float)
    states = rng.uniform(low, high, (EPISODES, len(low)))
    if "cosine" in system.coordinates:
        first = system.coordinates.index("cosine")
        angles = rng.uniform(-np.pi, np.pi, EPISODES)
        states[:, first : first + 2] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return states


def check_fallback(system: ConstrainedPlant) -> None:
    """Check that the fallback never violates, and that episodes begin in trusted states."""
    rng = np.random.default_rng(1)
    starts = system.initial_states(rng, EPISODES)
    assert all(system.trusted.contains(each.astype(np.float32)) for each in starts)
    for states in (starts, trusted_states(system, rng)):
        for _ in range(system.horizon):
            actions = system.fallback_actions(states)
            noise = rng.standard_normal((EPISODES, system.noise_dimension))
            states, _, _ = system.advance(states, actions, noise)
            assert not system.violates(states, actions).any()


def main() -> None:
    assert len(SYSTEMS) == 6
    for name, kind in SYSTEMS.items():
        check_steps(kind)
        check_constraints(kind())
        check_fallback(kind())
        print(f"{name}: as claimed")


if __name__ == "__main__":
    main()
