"""The environment object itself, and environments by name."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.envs import make, names
from kernelmdp.errors import ArgumentError, DataError, DomainError, ShapeError
from kernelmdp.mdp import MeanModel, play
from kernelmdp.mdp.policy import UniformPolicy
from tests.envs.instances import NAMES, instance

KEY = jax.random.key(0)


def test_names():
    assert names()[: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_every_environment_has(name):
    env = instance(name)
    m = env.mdp.states.dimension
    assert env.name == name
    assert isinstance(env.mdp.model, MeanModel)
    assert env.draw_start(KEY).shape == (m,)
    assert env.problem.transition_kernel.outputs == m
    assert env.problem.residual_noise.shape == (m,)
    assert (env.problem.residual_noise > 0).all()
    coarse, fine = env.problem.state_points, env.optimum_points[0]
    assert all(a <= b for a, b in zip(coarse, fine, strict=True))
    assert len(env.grid.nodes) == math.prod(coarse)
    assert env.actions.shape[1] == env.mdp.actions.dimension
    points = jnp.asarray(env.mdp.points.spread_points(50))
    np.testing.assert_array_equal(env.known_reward(points), env.mdp.model(points).reward)
    episode = play(env.mdp, UniformPolicy(env.mdp.actions, KEY), env.draw_start(KEY), key=KEY)
    assert episode.states.shape == (env.mdp.horizon + 1, m)
    np.testing.assert_allclose(episode.states[1:], env.mdp.states.nearest(episode.outcomes))
    residuals = env.residuals(jnp.asarray(episode.points), episode.outcomes)
    before = np.asarray(episode.states)[:-1] if env.problem.offset == "identity" else 0
    np.testing.assert_allclose(
        np.asarray(residuals) * np.array(env.problem.scale) + before, episode.outcomes, atol=1e-12
    )
    assert float(jnp.sqrt(jnp.mean(residuals**2))) < 3  # the scale is that of increments


def test_size_of_the_coarse_pendulum():
    env = instance("pendulum-coarse")
    assert len(env.grid.nodes) * len(env.actions) == 61 * 61 * 11


def test_starts():
    env = instance("rkhs")
    assert env.reset(key=KEY).tolist() == [0.0]
    assert env.reset(key=KEY, state=[0.5]).tolist() == [0.5]
    drawn = dataclasses.replace(
        env, start=lambda key: jax.random.uniform(key, (1,), minval=-1.0, maxval=1.0)
    )
    ours, again, other = (drawn.draw_start(jax.random.key(i)) for i in (1, 1, 2))
    assert ours.tolist() == again.tolist() != other.tolist()
    with pytest.raises(ArgumentError, match="no fixed start"):
        drawn.optimal_value()
    # The two ends of a periodic axis are one place.
    hanging = instance("pendulum-swingup").reset(key=KEY, state=[math.pi, 0.0])
    assert hanging.tolist() == [-math.pi, 0.0]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ([0.0, 0.0], ShapeError),
        ([2.0], DomainError),
        ([math.nan], DataError),
        (["x"], ArgumentError),
    ],
)
def test_bad_starts(state, error):
    with pytest.raises(error, match="start"):
        instance("rkhs").reset(key=KEY, state=state)
    with pytest.raises(error, match="start"):
        instance("rkhs").optimal_value(state)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"offset": "one"}, "offset"),
        ({"scale": (1.0, 1.0)}, "scale"),
        ({"state_points": (3, 3)}, "state_points"),
        ({"action_points": ()}, "action_points"),
        ({"start": (3.0,)}, "start"),
    ],
)
def test_inconsistent_environments_are_refused(change, argument):
    env = instance("rkhs")
    wrong = env if "start" in change else env.problem
    with pytest.raises(ArgumentError, match=argument):
        dataclasses.replace(wrong, **change)


@pytest.mark.parametrize(
    ("name", "hint"), [("rkhs2d", "'rkhs-2d'"), ("pendulum-swing", "'pendulum-swingup'")]
)
def test_unknown_name_suggests_the_nearest(name, hint):
    with pytest.raises(ArgumentError, match=f"did you mean {hint}"):
        make(name)


def test_unknown_options_are_named():
    with pytest.raises(ArgumentError, match=r"penalty.*got 'price'"):
        make("pendulum-swingup", price=0.1)
    with pytest.raises(ArgumentError, match="got 'dimension'"):
        make("rkhs-2d", dimension=1)
