"""What is known of the motion, and what is forgotten, against dense regression."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.inducing_posterior import inducing_posterior
from kernelmdp.gp.output_layouts import MixedLayout
from kernelmdp.learners.forgetting import age_weights

H, LONG = 25, 40


def cart_problem(names=("position", "velocity"), horizon=H):
    """A cart on a line: position + 0.1 velocity, velocity + 0.2 force − 0.05 velocity."""
    problem = km.Problem.from_spaces(
        states=km.Box([-9.0, -3.0], [9.0, 3.0]), actions=km.Box([-1.0], [1.0]), horizon=horizon
    )
    return dataclasses.replace(problem, coordinates=names)


def reward(z):
    return -(z[:, 0] ** 2) - 0.1 * z[:, 1] ** 2


def drive(agent, episodes=3, seed=0, gain=0.2, horizon=H):
    rng = np.random.default_rng(seed)
    for _ in range(episodes):
        state, states, actions = rng.uniform(-1, 1, 2), [], []
        states.append(state)
        for _ in range(horizon):
            action = rng.uniform(-1, 1, 1)
            push = gain * action[0] - 0.05 * state[1]
            state = np.array([state[0] + 0.1 * state[1], state[1] + push])
            states.append(state)
            actions.append(action)
        states, actions = np.array(states), np.array(actions)
        agent.tell(states, actions, reward(np.concatenate([states[:-1], actions], axis=1)))
    return agent


def test_outputs_that_follow_from_others():
    """A mixed layout is E times independent regressions, for means, deviations and draws."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(size=(30, 2)), rng.uniform(size=(7, 2))
    y = rng.normal(size=(30, 2))
    kernels = ARDKernels(
        jnp.array([[0.5, 0.7], [0.3, 0.4]]),
        jnp.array([1.0, 2.0]),
        jnp.array([0.1, 0.2]),
        jnp.ones(2),
        angles=(),
    )
    mixing = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0], [0.0, 0.0]])
    layout = MixedLayout(4, mixing, (0, 1))
    options = {"scalar": False, "block": 16}
    plain = inducing_posterior(kernels, x, np.ones(30), x, y, **options)
    mixed = inducing_posterior(kernels, x, np.ones(30), x, y, layout=layout, **options)
    (mean, std), (mixed_mean, mixed_std) = plain.predict(z), mixed.predict(z)
    np.testing.assert_allclose(mixed_mean, mean @ mixing.T, atol=1e-12)
    np.testing.assert_allclose(mixed_std, std @ mixing.T, atol=1e-12)
    covariance = np.asarray(mixed.output_covariance(z))
    np.testing.assert_allclose(covariance[:, 1, 2], 3 * np.asarray(std)[:, 1] ** 2, atol=1e-10)
    assert mixed.outputs == 4
    assert np.all(np.asarray(mixed_std)[:, 3] == 0)
    draw = np.asarray(mixed.sample(key=jax.random.key(0))(z))
    np.testing.assert_allclose(draw[:, 2], 3 * draw[:, 1], atol=1e-12)
    after = mixed.condition(z, np.asarray(mixed_mean))
    np.testing.assert_allclose(after.predict(z)[0], mixed_mean, atol=1e-8)


def test_weights_divide_the_noise():
    rng = np.random.default_rng(1)
    x, z = rng.uniform(size=(25, 1)), rng.uniform(size=(9, 1))
    y, weights = rng.normal(size=25), rng.choice([1.0, 0.5, 0.1], 25)
    one = jnp.ones(1)
    kernels = ARDKernels(jnp.array([[0.4]]), one, jnp.full(1, 0.3), one, angles=())
    posterior = inducing_posterior(
        kernels, x, np.ones(25), x, y[:, None], scalar=True, block=10, weights=weights
    )
    kernel = km.kernels.SquaredExponential(0.4)
    gram = np.asarray(kernel(x, x)) + np.diag(0.09 / weights)
    across = np.asarray(kernel(z, x))
    mean = across @ np.linalg.solve(gram, y)
    variance = 1.0 - np.sum(across * np.linalg.solve(gram, across.T).T, axis=1)
    np.testing.assert_allclose(posterior.predict(z)[0], mean, atol=1e-5)
    np.testing.assert_allclose(posterior.predict(z)[1] ** 2, variance, atol=1e-5)
    assert posterior.count == 25


@pytest.mark.parametrize("forgetting", [2, 0.5, 0.99])
def test_fixed_kernels_forget(forgetting):
    """Old episodes count as rows with larger noise in a dense regression of the motion."""
    plain = km.PSRL("rkhs", seed=0)
    plain.learn(6, progress=False)
    agent = km.PSRL("rkhs", seed=0, forgetting=forgetting)
    for episode in plain.history:
        agent.replay(episode)
    problem, history = agent.problem, plain.history
    weights = age_weights(np.arange(6)[::-1], forgetting)
    points = np.concatenate([np.asarray(e.points) for e in history])
    outcomes = np.concatenate([np.asarray(e.outcomes)[:, 0] for e in history])
    per_row = np.repeat(weights, problem.horizon)
    used = per_row > 0
    z = np.asarray(problem.points.spread_points(8))[:8]
    kernel = problem.transition_kernel.parts()[0]
    gram, across = np.asarray(kernel(points, points)), np.asarray(kernel(z, points))
    noise = problem.noise_variances[1] / per_row[used]
    offset = 0.0 if problem.offset == "zero" else points[:, 0]
    targets = ((outcomes - offset) / problem.scale[0])[used]
    matrix = gram[np.ix_(used, used)] + np.diag(noise)
    mean = across[:, used] @ np.linalg.solve(matrix, targets)
    posterior = agent.beliefs.transition
    np.testing.assert_allclose(np.asarray(posterior.predict(z)[0])[:, 0], mean, atol=5e-3)
    # Rewards are as without forgetting.
    ours, theirs = (each.beliefs.predict_reward(jnp.asarray(z)) for each in (agent, plain))
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-6)
    np.testing.assert_allclose(posterior.noise_variance, plain.beliefs.transition.noise_variance)
    assert not agent.coverage.covered


@pytest.mark.filterwarnings("ignore::kernelmdp.errors.ApproximationWarning")
def test_fitted_kernels_forget():
    agent = km.Greedy(cart_problem(), reward=reward, forgetting=2, seed=0)
    drive(agent, 4, gain=0.2)
    assert int(agent.state.data.used.sum()) == 2 * H
    assert len(agent.state.data.reward_rows[0]) == 4 * H
    drive(agent, 2, seed=5, gain=0.1)
    z = np.array([[0.0, 0.0, 1.0]])
    change = float(np.asarray(agent.beliefs.predict_state(jnp.asarray(z))[0])[0, 1])
    assert abs(change - 0.1) < 0.01
    keeps = drive(drive(km.Greedy(cart_problem(), reward=reward, seed=0), 4), 2, seed=5, gain=0.1)
    assert abs(float(np.asarray(keeps.beliefs.predict_state(jnp.asarray(z))[0])[0, 1]) - 0.1) > 0.02


def test_known_coordinates_are_not_learned():
    agent = km.Greedy(
        cart_problem(),
        reward=reward,
        known={"position": lambda state, action: state[0] + 0.1 * state[1]},
        seed=0,
    )
    drive(agent)
    z = np.random.default_rng(3).uniform(-1, 1, (20, 3))
    mean, std = (np.asarray(each) for each in agent.beliefs.predict_state(jnp.asarray(z)))
    np.testing.assert_allclose(mean[:, 0], z[:, 0] + 0.1 * z[:, 1], atol=1e-12)
    assert np.all(std[:, 0] == 0)
    assert np.all(std[:, 1] > 0)
    np.testing.assert_allclose(mean[:, 1], z[:, 1] + 0.2 * z[:, 2] - 0.05 * z[:, 1], atol=5e-3)
    assert agent.state.dynamics_law.logs.shape[0] == 1  # one fitted kernel
    family = km.GPUCRL(cart_problem(), reward=reward, known=agent.config.known, seed=0)
    drive(family)
    sides = np.asarray(family.confidence_sets().plausible(jnp.asarray(z)).sides)
    assert np.all(sides[:, 0] == 0)
    assert np.all(sides[:, 1] > 0)


def test_a_rough_model_plans_before_any_data():
    def rough(state, action):
        return jnp.stack([state[0] + 0.1 * state[1], state[1] + 0.26 * action[0]])

    agent = km.Greedy(cart_problem(), reward=reward, prior_model=rough, seed=0, planner="mpc")
    assert agent.first_episode == "prior"
    assert float(agent.predict([1.5, 0.0])[0]) < -0.5  # back to the middle
    z = np.array([[0.5, 1.0, 1.0]])
    np.testing.assert_allclose(
        agent.beliefs.predict_state(jnp.asarray(z))[0], [[0.6, 1.26]], atol=1e-9
    )
    drive(agent, 3)
    mean = np.asarray(agent.beliefs.predict_state(jnp.asarray(z))[0])
    np.testing.assert_allclose(mean, [[0.6, 1.15]], atol=0.01)
    row = agent.learner.info(agent.state)
    assert 0.1 < row["prior_model_error"] < 1.0
    # The same as matrices, and for one coordinate by name.
    matrices = [[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.26]]
    linear = km.Greedy(cart_problem(), reward=reward, prior_model=matrices, seed=0, planner="mpc")
    np.testing.assert_allclose(
        linear.beliefs.predict_state(jnp.asarray(z))[0], [[0.6, 1.26]], atol=1e-9
    )
    named = km.Greedy(
        cart_problem(),
        reward=reward,
        prior_model=lambda state, action: {"velocity": state[1] + 0.26 * action[0]},
        seed=0,
        planner="mpc",
    )
    np.testing.assert_allclose(
        named.beliefs.predict_state(jnp.asarray(z))[0], [[0.5, 1.26]], atol=1e-9
    )


@pytest.mark.parametrize("turns", [0, 1, -1])
def test_rough_models_of_angles(turns):
    """An angle that crosses its border is no error of the model, however the model wraps it."""

    def rough(state, action):
        angle = state[0] + 0.1 * state[1]
        wrapped = jnp.mod(angle + jnp.pi, 2 * jnp.pi) - jnp.pi
        speed = state[1] + 0.26 * action[0]
        return jnp.stack([wrapped + 2 * jnp.pi * turns, speed])

    problem = km.Problem.from_spaces(
        states=km.Box([-np.pi, -3.0], [np.pi, 3.0], periodic=[0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=H,
    )
    agent = km.Greedy(problem, reward=reward, prior_model=rough, seed=0, planner="mpc")
    rng = np.random.default_rng(0)
    for _ in range(3):
        states, actions = [np.array([np.pi - 0.1, 1.0])], rng.uniform(-1, 1, (H, 1))
        for action in actions:
            angle, speed = states[-1]
            angle = np.mod(angle + 0.1 * speed + np.pi, 2 * np.pi) - np.pi
            states.append(np.array([angle, 0.95 * speed + 0.2 * action[0]]))
        agent.tell(states, actions, reward(np.concatenate([states[:-1], actions], axis=1)))
    assert min(np.asarray(agent.history[0].states)[:, 0]) < -3  # it crossed the border
    row = agent.learner.info(agent.state)
    assert row["prior_model_error"] < 1.0
    z = jnp.array([[3.1, 1.0, 0.5], [-3.1, -1.0, 0.5]])
    mean = np.asarray(agent.beliefs.predict_state(z)[0])
    np.testing.assert_allclose(mean, [[3.2, 1.05], [-3.2, -0.85]], atol=0.02)


def test_schedules_are_seen_ahead():
    """The plan moves before the reference does, and follows one that was never told before."""
    problem = km.Problem.from_spaces(
        states=km.Box([-1.0, -1.0], [1.0, 1.0]), actions=km.Box([-0.1], [0.1]), horizon=20
    )
    problem = dataclasses.replace(problem, coordinates=("x", "reference"))
    jump = np.where(np.arange(21) < 10, 0.0, 0.5)
    agent = km.Greedy(
        problem,
        reward=lambda z: -jnp.abs(z[:, 0] - z[:, 1]),
        known={"reference": jump},
        prior_model=lambda state, action: {"x": state[0] + action[0]},
        seed=0,
    )
    assert agent.problem.coordinates == ("x", "reference", "clock")
    assert agent.problem.planner == "mpc"

    def follow(schedule):
        player, x, path = agent.ask([0.0, schedule[0]]).player(), 0.0, []
        for period in range(20):
            path.append(x)
            x += float(player([x, schedule[period]], period)[0])
        return np.array(path)

    path = follow(jump)
    assert path[9] > 0.1  # it is on the way before the jump
    assert np.abs(path - jump[:-1]).sum() < 2.0
    falling = np.where(np.arange(21) < 5, 0.0, -0.4)
    agent.schedule(reference=falling)
    assert np.abs(follow(falling) - falling[:-1]).sum() < 2.0
    with pytest.raises(ArgumentError, match="schedule"):
        agent.schedule(x=jump)
    with pytest.raises(ArgumentError, match="from -1 to 1"):
        agent.schedule(reference=jump + 1.0)


def test_schedules_are_saved(tmp_path):
    settings = {"reward": reward, "known": {"wind": np.zeros(H + 1)}}
    agent = km.Greedy(cart_problem(("position", "wind")), seed=0, **settings)
    agent.schedule(wind=np.linspace(0.0, 1.0, H + 1))
    agent.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp", task=cart_problem(("position", "wind")), **settings)
    seen, saved = (each.state.motion.function.function.schedules for each in (loaded, agent))
    np.testing.assert_array_equal(seen, saved)


def test_tables_of_schedules_change_by_episode():
    problem = cart_problem(("position", "wind"))
    table = np.stack([np.full(H + 1, 0.5), np.full(H + 1, -0.5)])
    agent = km.Greedy(problem, reward=reward, known={"wind": table}, seed=0)
    seen = []
    for _ in range(3):
        agent.ask([0.0, 0.0])
        seen.append(float(agent.state.motion.function.function.schedules[0, 3]))
        states = np.zeros((H + 1, 2))
        agent.tell(states, np.zeros((H, 1)), np.zeros(H))
    assert seen == [0.5, -0.5, 0.5]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": {"speed": lambda s, a: s[0]}}, "coordinates among"),
        ({"known": {"position": [1.0, 2.0]}}, "times 0 to 25"),
        ({"known": {"position": lambda s, a: s}}, "one number"),
        ({"prior_model": lambda s, a: s[:1]}, "next state of 2 numbers"),
        ({"prior_model": lambda s, a: np.log(-1.0 - 0 * s)}, "next state"),
        ({"prior_model": lambda s, a: jnp.log(-1.0 + 0 * s)}, "finite"),
        ({"prior_model": ([[1.0]], [[1.0]])}, "matrices"),
        ({"prior_model": 3}, "function of"),
        ({"prior_error": -1.0}, "at least 0"),
        ({"forgetting": -1}, "at least 0"),
        ({"forgetting": 2.5}, "a share below 1, or a whole number"),
        ({"known": "everything"}, "by the name of their coordinate"),
        ({"known": {"position": np.full(H + 1, 99.0)}}, "from -9 to 9"),
        ({"known": {"position": np.array([np.zeros(H + 1), np.full(H + 1, np.nan)])}}, "finite"),
        ({"prior_model": lambda s, a: {"speed": s[0]}}, "among position, velocity, got 'speed'"),
        ({"prior_model": lambda s, a: {"velocity": s}}, "one number"),
        ({"prior_model": lambda s, a: None}, "2 numbers, got None"),
        ({"prior_model": lambda s, a: {}[0]}, "next state"),
        ({"history": 2, "update": "step"}, "'episode'"),
        ({"forgetting": 2, "update": "step"}, "'episode'"),
        (
            {"known": {n: (lambda s, a: s[0]) for n in ("position", "velocity")}},
            "at least one",
        ),
    ],
)
def test_bad_knowledge_is_refused(settings, message):
    with pytest.raises(ArgumentError, match=message):
        km.Greedy(cart_problem(), reward=reward, seed=0, **settings)


def test_bad_memories_are_refused():
    for settings, message in (
        ({"delay": H}, "below the horizon"),
        ({"history": 2, "planner": "grid"}, "'mpc' with history"),
        ({"history": 2, "learner": "fixed"}, "kernel='auto'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            km.Greedy(cart_problem(), reward=reward, seed=0, **settings)
    with pytest.raises(ArgumentError, match="no bounds"):
        km.Greedy("lqr-1d", history=2, seed=0)
    agent = km.Greedy(position_problem(), history=2, seed=0)
    with pytest.raises(ArgumentError, match="observation of one number"):
        agent.ask([0.0, 1.0])
    with pytest.raises(ArgumentError, match="different names"):
        cart_problem(("x", "x"))


def test_an_episode_shorter_than_the_memory_teaches_nothing():
    agent = km.Greedy(position_problem(), history=3, seed=0)
    agent.tell(np.zeros((3, 1)), np.zeros((2, 1)), np.zeros(2), truncated=True)
    assert len(agent.state.data) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        hidden_velocity(agent, episodes=1)
        agent.tell(np.zeros((3, 1)), np.zeros((2, 1)), np.zeros(2), truncated=True)
    assert agent.episode == 3


def test_episodes_that_are_too_short_to_have_a_past():
    """The search for a missing past passes over them."""
    agent = drive(km.Greedy(cart_problem(), reward=reward, seed=0), 3)
    rng = np.random.default_rng(1)
    for length in (1, 2, 3, 4, 5):
        states, actions = rng.uniform(-1, 1, (length + 1, 2)), rng.uniform(-1, 1, (length, 1))
        agent.tell(states, actions, np.zeros(length), truncated=True)
    assert agent.episode == 8


def test_fixed_kernels_refuse_what_they_do_not_use():
    with pytest.raises(ArgumentError, match="fitted"):
        km.PSRL("rkhs", prior_model=lambda s, a: s, seed=0)
    with pytest.raises(ArgumentError, match="forget"):
        km.PSRL("riverswim", learner="counts", forgetting=2, seed=0)


def hidden_velocity(agent, seed=0, episodes=3):
    """The cart, of which only the position is told."""
    whole = km.Greedy(cart_problem(horizon=LONG), reward=reward, seed=0)
    for episode in drive(whole, episodes, seed=seed, horizon=LONG).history:
        agent.tell(episode.states[:, :1], episode.actions, episode.rewards)
    return agent


def position_problem():
    return km.Problem.from_spaces(
        states=km.Box([-9.0], [9.0]), actions=km.Box([-1.0], [1.0]), horizon=LONG
    )


def test_a_missing_velocity_is_named():
    with pytest.warns(ApproximationWarning, match="history=2"):
        hidden_velocity(km.Greedy(position_problem(), seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        told = hidden_velocity(km.Greedy(position_problem(), history=2, seed=0))
        drive(km.Greedy(cart_problem(), reward=reward, seed=0))
    # x + (x − x_before) + 0.1 (0.2 a_before − 0.05 v): with a memory the motion is known.
    state = np.array([[0.3, 0.05, 1.0, 0.0]])  # x, change, last action, action
    expected = 0.3 + 0.05 + 0.1 * (0.2 - 0.05 * 0.5)
    np.testing.assert_allclose(
        told.beliefs.predict_state(jnp.asarray(state))[0][0, 0], expected, atol=2e-3
    )
    np.testing.assert_allclose(
        told.beliefs.predict_state(jnp.asarray(state))[0][0, 1], expected - 0.3, atol=2e-3
    )


def test_a_delay_is_named():
    def slow(agent, seed=0):
        rng = np.random.default_rng(seed)
        for _ in range(3):
            actions, level = rng.uniform(-1, 1, (LONG, 1)), [0.0]
            for t in range(LONG):
                pushed = actions[t - 2, 0] if t >= 2 else 0.0
                level.append(0.8 * level[-1] + 0.3 * pushed)
            agent.tell(np.array(level)[:, None], actions, np.zeros(LONG))
        return agent

    with pytest.warns(ApproximationWarning, match="delay=2"):
        slow(km.Greedy(position_problem(), seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        told = slow(km.Greedy(position_problem(), delay=2, seed=0))
    state = np.array([[0.5, 0.1, -1.0, 0.9]])  # level, actions of 1 and 2 periods ago, action
    np.testing.assert_allclose(
        told.beliefs.predict_state(jnp.asarray(state))[0][0], [0.8 * 0.5 - 0.3, 0.9, 0.1], atol=2e-2
    )


@pytest.mark.filterwarnings("ignore:the model predicted an episode badly")
def test_a_changed_plant_is_named():
    agent = drive(km.Greedy(cart_problem(), reward=reward, seed=0), 5)
    with pytest.warns(ApproximationWarning, match="seems to have changed"):
        drive(agent, 1, seed=9, gain=-0.2)


def test_agents_with_a_memory_are_saved(tmp_path):
    agent = hidden_velocity(km.PSRL(position_problem(), history=2, reward=reward_of_position))
    agent.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp", task=position_problem(), reward=reward_of_position)
    assert loaded.problem.coordinates == ("state", "change(state)", "action[-1]")
    z = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 4))
    np.testing.assert_array_equal(
        loaded.beliefs.predict_state(jnp.asarray(z))[0],
        agent.beliefs.predict_state(jnp.asarray(z))[0],
    )


def reward_of_position(z):
    return -(z[:, 0] ** 2)
