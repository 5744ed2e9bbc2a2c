"""Kernels that fit themselves, on Gymnasium's environments as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp import archive
from kernelmdp.errors import ArgumentError
from kernelmdp.learners import FittedKernels
from kernelmdp.mdp import Episode
from kernelmdp.planners import GridPlanner, MPCPlanner

SMALL = GridPlanner(state_points=(24, 17), action_points=(5,))
QUICK = MPCPlanner(horizon=5, samples=12, elites=3, iterations=1)
H = 40


def pendulum(kind=km.PSRL, **words):
    return kind("Pendulum-v1", **({"horizon": H, "planner": SMALL, "seed": 0} | words))


def pole(kind=km.PSRL, **words):
    return kind("CartPole-v1", horizon=30, planner=QUICK, seed=0, **words)


@pytest.fixture(scope="module")
def swung():
    agent = pendulum()
    return agent, agent.learn(3, progress=False)


@pytest.fixture(scope="module")
def balanced():
    agent = pole()
    agent.learn(3, progress=False)
    return agent


def test_it_is_the_default_where_nothing_is_known(swung):
    agent, result = swung
    assert agent.problem.learner == agent.learner.name == "fitted"
    assert agent.first_episode == "random"
    assert np.isnan(result.episodes["planned_value"][0])
    assert np.isfinite(result.episodes["planned_value"][1:]).all()


def test_dynamics_are_learned(swung):
    """Where the pendulum has been, next states are foretold to a hundredth of the motion."""
    agent, _ = swung
    told = agent.history[-1]
    points = np.concatenate([told.states[:-1], told.actions], axis=1)
    foretold = np.asarray(agent.beliefs.mean().transition(jnp.asarray(points)))
    moved = np.abs(told.outcomes - told.states[:-1]).max(axis=0)
    assert (np.abs(foretold - told.outcomes) <= 0.01 * moved[None, :]).all()


def test_the_fitted_kernel_can_be_read(swung):
    agent, _ = swung
    kernel = agent.beliefs.transition.kernel
    assert km.kernel(str(kernel)).outputs == 2
    assert "periodic" in str(kernel)


def test_no_theorem_covers_it():
    for kind in (km.GPUCRL, km.PSRL):
        assert str(pendulum(kind).coverage).startswith("not covered: kernels are fitted")
    agent = km.PSRL("rkhs", update="step")
    assert str(agent.coverage).startswith("not covered: policies change")


def test_observations_are_taken_as_they_come(swung):
    agent, _ = swung
    assert agent.predict([1.0, 0.0, 0.0]).shape == (1,)
    with pytest.raises(km.errors.ShapeError, match="3 numbers"):
        agent.predict([0.0, 0.0])


def test_loading_does_not_learn_again(swung, tmp_path, monkeypatch):
    """What was fitted is in the file, so that loading takes no longer with a longer history."""
    agent, _ = swung
    agent.save(tmp_path / "agent.kmdp")

    def refuse(*_, **__):
        raise AssertionError("an episode was learned again")

    monkeypatch.setattr(FittedKernels, "update", refuse)
    loaded = km.load(tmp_path / "agent.kmdp")
    for name, array in agent.learner.saved_arrays(agent.state).items():
        np.testing.assert_array_equal(loaded.learner.saved_arrays(loaded.state)[name], array)
    for own, other in zip(agent.history, loaded.history, strict=True):
        np.testing.assert_array_equal(own.states, other.states)
    np.testing.assert_array_equal(loaded.state.data.points, agent.state.data.points)
    np.testing.assert_array_equal(loaded.state.data.ended, agent.state.data.ended)


def test_a_file_without_the_learner_s_arrays_is_learned_again(swung, tmp_path):
    agent, _ = swung
    agent.save(tmp_path / "agent.kmdp")
    description, arrays, _ = archive.read(tmp_path / "agent.kmdp")
    archive.write(tmp_path / "old.kmdp", description, arrays)
    loaded = km.load(tmp_path / "old.kmdp")
    np.testing.assert_allclose(loaded.state.dynamics_logs, agent.state.dynamics_logs)


@pytest.mark.parametrize("damage", [{"excluded": np.zeros(3, bool)}, {"trend": np.zeros(2)}])
def test_a_damaged_state_is_named(swung, tmp_path, damage):
    swung[0].save(tmp_path / "agent.kmdp")
    description, arrays, states = archive.read(tmp_path / "agent.kmdp")
    damaged = {"newest": states["newest"] | damage}
    archive.write(tmp_path / "damaged.kmdp", description, arrays, damaged)
    with pytest.raises(km.errors.CheckpointError, match="learner's state is damaged"):
        km.load(tmp_path / "damaged.kmdp")


def test_a_loaded_agent_goes_on_the_same(swung, tmp_path):
    agent, _ = swung
    agent.save(tmp_path / "agent")
    again = km.load(tmp_path / "agent")
    for one, other in zip(
        jax.tree.leaves(agent.beliefs), jax.tree.leaves(again.beliefs), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_step_at_a_time_or_all_at_once():
    """A loaded agent, told whole episodes, comes to the kernels of one that learned by steps."""
    lived, told = (pendulum(km.Greedy, update="step") for _ in range(2))
    rng = np.random.default_rng(0)
    states = rng.uniform([-3, -8], [3, 8], size=(13, 2))
    actions, rewards = rng.uniform(-2, 2, size=(12, 1)), rng.normal(size=12)
    for t in range(12):
        lived.observe_step(states[t], actions[t], rewards[t], states[t + 1])
    lived.tell(states, actions, rewards, states[1:], truncated=True)
    told.tell(states, actions, rewards, states[1:], truncated=True)
    assert lived.state.fitted_at == told.state.fitted_at > 0
    np.testing.assert_array_equal(lived.state.dynamics_logs, told.state.dynamics_logs)
    with pytest.raises(ArgumentError, match="update"):
        pendulum().observe_step(states[0], actions[0], 0.0, states[1])


def test_axes_without_bounds_get_them_from_data(balanced):
    low, high = balanced.state.data.box.bounds
    seen = np.concatenate([told.states for told in balanced.history])
    assert (low <= seen.min(axis=0)).all()
    assert (seen.max(axis=0) <= high).all()
    for axis in (1, 3):
        assert high[axis] - low[axis] < 3 * np.ptp(seen[:, axis])


def test_episodes_end_early(balanced, tmp_path):
    lengths = [len(told.rewards) for told in balanced.history]
    assert min(lengths) < 30
    ended = [told.terminated for told in balanced.history]
    assert ended == [length < 30 for length in lengths]
    assert balanced.state.data.ended.sum() == sum(ended)
    balanced.save(tmp_path / "agent")
    again = km.load(tmp_path / "agent")
    assert [len(told.rewards) for told in again.history] == lengths
    assert [told.terminated for told in again.history] == ended
    np.testing.assert_array_equal(again.state.reward_logs, balanced.state.reward_logs)
    np.testing.assert_array_equal(
        again.state.termination_law.logs, balanced.state.termination_law.logs
    )


def walked(agent, rewards):
    """The agent after walks along the first axis that end once they are further than 1 from 0, with
    all other coordinates at random."""
    rng = np.random.default_rng(0)
    for way in (1, -1, 1, -1, 1):
        states = rng.uniform(-0.3, 0.3, size=(12, 4))
        states[:, 0] = way * np.linspace(0.0, 1.1, 12)  # the last step is from 1.0 to 1.1
        actions = rng.integers(0, 2, size=(11, 1)).astype(float)
        agent.tell(states, actions, np.full(11, rewards), terminated=True)
    return agent.learner.mean(agent.state)


def test_plans_stop_where_episodes_ended_if_steps_earn():
    mdp = walked(pole(), 1.0)
    rng = np.random.default_rng(1)
    after = rng.uniform(-0.3, 0.3, size=(200, 4))
    after[:, 0] = rng.uniform(-3.0, 3.0, size=200)
    far = np.abs(after[:, 0])
    over = np.asarray(mdp.termination(jnp.zeros((200, 5)), jnp.asarray(after)))
    assert over[far > 1.1].all()  # also behind all ends that were seen
    assert not over[far < 0.9].any()
    # All rewards were the same: there is none to look for.
    np.testing.assert_allclose(np.asarray(mdp.model(jnp.zeros((1, 5))).reward), 1.0)


def test_an_end_is_a_goal_where_steps_cost():
    agent = pole()
    mdp = walked(agent, -1.0)
    first, last = (
        jnp.asarray([[*told.states[place], 0.0] for told in agent.history]) for place in (0, -1)
    )
    assert not np.asarray(mdp.termination(first, first[:, :4])).any()
    assert np.asarray(mdp.termination(last, last[:, :4])).mean() > 0.5
    assert (mdp.model(jnp.concatenate([first, last])).reward == -1.0).all()


def test_a_short_episode_must_have_ended():
    agent = pole()
    states = np.zeros((4, 4))
    with pytest.raises(km.errors.ShapeError, match="episode of 30 periods"):
        agent.tell(states, np.zeros((3, 1)), np.ones(3))


@pytest.mark.parametrize("kind", [km.GPUCRL, km.Greedy])
def test_still_and_constant_data_do_no_harm(kind):
    """One state over and over, one reward: nothing is learned, nothing breaks."""
    agent = pole(kind)
    agent.tell(np.zeros((31, 4)), np.zeros((30, 1)), np.ones(30))
    action = agent.ask()(np.zeros(4), 0)
    assert action[0] in (0.0, 1.0)


def test_kernels_are_given_or_fitted():
    with pytest.raises(ArgumentError, match="'auto'"):
        pendulum(kernel="magic")
    with pytest.raises(ArgumentError, match="kernels for a table"):
        km.PSRL("riverswim", kernel="auto")


def test_a_line_beneath_noise_goes_on_where_there_are_no_data():
    """Positions move with their speed, also at speeds never seen; what is bent has no trend."""
    rng = np.random.default_rng(3)
    agent = km.PSRL("cartpole-balance", kernel="auto", reward="known", seed=0)
    known = agent.state
    for count in (100, 200):
        points = rng.uniform(-1, 1, size=(count, 5)) * np.array([1.0, 1.0, 0.2, 1.0, 1.0])
        x, speed, _, turning, force = points.T
        moves = [0.02 * speed, 0.2 * force, 0.02 * turning, 0.3 * np.cos(3 * x)]
        outcomes = points[:, :4] + np.stack(moves, axis=1) + 0.01 * rng.normal(size=(count, 4))
        states = np.concatenate([points[:, :4], outcomes[-1:]])
        rows = Episode(states, points[:, 4:], np.ones(count), outcomes)
        known = agent.learner.update(known, rows, key=jax.random.key(0))
    fast = jnp.array([[0.0, 6.0, 0.1, -6.0, 0.0]])
    after = np.asarray(known.beliefs.mean().transition(fast))[0]
    np.testing.assert_allclose(after[[0, 2]], [0.12, 0.1 - 0.12], atol=0.02)
    np.testing.assert_array_equal(known.trend[:, 3], 0.0)


def test_an_expression_of_ones_own_is_fitted():
    """What is known of a system stays: here that the push enters linearly."""
    kernel = "se([1.0, 1.0])[state] + se(1.0)[0] * linear[action]"
    agent = pendulum(km.Greedy, kernel="auto", transition_kernel=kernel)
    assert agent.learner.name == "fitted"
    agent.learn(2, progress=False)
    fitted = str(agent.beliefs.transition.kernel)
    assert fitted.count("linear[2]") == 2  # an expression for each coordinate of the state
    assert "se([1.0, 1.0])" not in fitted  # with lengthscales of its own
    # Beyond the actions that there are, next states go on in a straight line.
    z = np.array([[0.5, 0.0, a] for a in (0.0, 2.0, 4.0)])
    _, speed = np.asarray(agent.beliefs.mean().transition(jnp.asarray(z))).T
    np.testing.assert_allclose(speed[2] - speed[1], speed[1] - speed[0], rtol=1e-6)


@pytest.mark.parametrize("confidence", ["practical", "valid", "paper", "fitted"])
@pytest.mark.parametrize("planner", ["grid", "mpc"])
def test_radii_are_in_units_of_the_state(planner, confidence):
    """A plausible next state lies as far from the centre as the sets say, with every planner."""
    planner = km.MPCPlanner(horizon=3, samples=20) if planner == "mpc" else km.GridPlanner(9, 3)
    # A certified maximum of the gain takes minutes here, and the units do not depend on it.
    sets = {"name": confidence, "regulariser": "noise", "gain": "realised"}
    agent = pendulum(km.GPUCRL, planner=planner, confidence=sets)
    agent.learn(1, progress=False)
    sets, family = agent.plausible()
    points = jnp.asarray(agent.problem.points.spread_points(20))
    prediction, scale = family.model(points), np.asarray(agent.beliefs.scale)
    widest = np.asarray(sets.half_widths(points)[1])
    if prediction.radius is not None:
        reach = np.asarray(prediction.radius)[:, None] * np.array(family.metric)
    elif prediction.root is not None:
        reach = np.linalg.norm(np.asarray(prediction.root), axis=2)
    else:
        reach = np.asarray(prediction.sides)
    # The width of a box is its half diagonal.
    lengths = reach / scale
    is_box = prediction.sides is not None
    length = np.linalg.norm(lengths, axis=1) if is_box else lengths.max(axis=1)
    np.testing.assert_allclose(length, widest, rtol=1e-9)


def test_every_number_of_it_can_be_set(tmp_path):
    settings = {
        "name": "fitted",
        "inducing_points": 32,
        "continuation_threshold": 0.6,
        "search": {"steps": 3},
    }
    agent = pendulum(km.Greedy, learner=settings)
    assert agent.learner.settings.inducing_points == 32
    assert agent.learner.settings.search.steps == 3
    agent.save(tmp_path / "agent")
    assert km.load(tmp_path / "agent").learner.settings == agent.learner.settings
    with pytest.raises(ArgumentError, match="did you mean 'inducing_points'"):
        pendulum(km.Greedy, learner={"name": "fitted", "inducing_point": 32})
