"""Claims of the library (covered, certified, an error of a value) hold, or are not made.

Each test is a configuration in which a claim was once made although an assumption failed.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents import AGENTS, Agent
from kernelmdp.confidence import AdaptiveConfidence, Confidence
from kernelmdp.confidence.assumptions import THEOREMS, UNRELATED_SETTINGS
from kernelmdp.confidence.nets import net
from kernelmdp.confidence.theorem import LEVELS
from kernelmdp.envs.lqr import lqr_1d, lqr_4d
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.experiments import RunConfig, audit, run, run_bound
from kernelmdp.kernels import Index, Linear, SquaredExponential
from kernelmdp.mdp import MDP, Gaussian, MeanModel, Prediction, StateGrid, policy_values
from kernelmdp.mdp.evaluation import optimal_value
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners import GridPlanner, RiccatiPlanner, SafeGridPlanner, TolerancePlanner
from kernelmdp.planners.optimism import backup_for
from kernelmdp.priors import NormBall

KEY = jax.random.key(0)


def shifted(scale, metric=1.0, slope=0.1, reward_noise=0.1, noise=0.5):
    """s' = s + a on [-10, 10], reward slope·s: U_h has slope (H − h)·slope, and V* is known."""
    horizon = 3
    mdp = MDP(
        MeanModel(lambda z: slope * z[:, 0], lambda z: z[:, :1] + z[:, 1:]),
        states=km.Box([-10.0], [10.0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=horizon,
        reward_noise=Gaussian(reward_noise),
        transition_noise=Gaussian(noise),
        reward_range=(-10 * slope, 10 * slope),
        metric=(metric,),
        lipschitz=(horizon - 1) * slope * metric,
    )
    return km.Environment.of(
        mdp,
        (0.0,),
        name="shifted",
        reward_kernel=SquaredExponential(5.0),
        transition_kernel=Linear() @ Index(1),
        scale=(scale,),
        state_points=(201,),
        action_points=(21,),
        optimum_points=((401,), (41,)),
        norm_transition=1.0 / scale,
        lipschitz_rule="exact: rewards are linear",
    )


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("metric", [0.5, 1.0, 4.0])
def test_lipschitz_constants_are_converted_to_the_scale_of_the_problem(scale, metric):
    env = shifted(scale, metric)
    assert env.problem.lipschitz == pytest.approx(0.2 * scale)  # |U(p) − U(p')| ≤ 0.2 |p − p'|
    agent = km.GPUCRL(env, reward="known", planner="bonus", confidence="valid", seed=0)
    agent.ask([0.0])
    assert agent.sets.contains(env.mdp.model, jnp.asarray(env.mdp.points.spread_points(200)))
    assert agent.planned.value([0.0]) >= env.optimal_value().value - 0.02


def test_the_optimum_of_linear_quadratic_control_in_a_box_is_solved_on_a_grid():
    env = lqr_1d(noise=1.0, state_bound=1.0)
    optimum = env.optimal_value()
    fine = optimal_value(env.mdp, env.start, state_points=(801,), action_points=(161,))
    assert abs(optimum.value - fine.value) <= optimum.error + fine.error
    riccati = RiccatiPlanner().plan(env.mdp, key=KEY, start=np.asarray(env.start))
    assert riccati.value(env.start) < fine.value  # the box lowers the cost
    assert not bool(riccati.certified)
    assert bool(RiccatiPlanner().plan(lqr_1d().mdp, key=KEY, start=np.ones(1)).certified)


@pytest.mark.parametrize("seed", [15, 101, 102, 103])
def test_errors_of_optima_hold(seed):
    """Against four times the points. ``benchmarks/theory/optima.py`` has 220 instances."""
    env = km.make("rkhs", seed=seed, horizon=3)
    optimum = env.optimal_value()
    (states,), (actions,) = env.optimum_points
    counts = {"state_points": (4 * states - 3,), "action_points": (4 * actions - 3,)}
    fine = optimal_value(env.mdp, env.start, **counts)
    assert abs(optimum.value - fine.value) <= optimum.error


@pytest.mark.parametrize("seed", [15, 101, 102, 103])
def test_errors_of_plans_hold(seed):
    """Against four times the points, on coarse grids."""
    mdp = km.make("rkhs", seed=seed, horizon=3).mdp
    coarse, fine = GridPlanner((31,), (9,)), GridPlanner((121,), (33,))
    plan = coarse.plan(mdp, key=KEY)
    stated = coarse.error(mdp, plan, [0.0], key=KEY)
    assert abs(stated.value - fine.plan(mdp, key=KEY).value([0.0])) <= stated.error


def test_an_oracle_in_a_box_has_no_regret():
    oracle = km.Oracle(lqr_1d(noise=1.0, state_bound=1.0), seed=0)
    result = oracle.learn(episodes=3, progress=False)
    np.testing.assert_allclose(result.episodes["regret"], 0.0, atol=1e-9)


def test_the_optimum_in_a_box_of_many_coordinates_is_unknown():
    with pytest.raises(UnknownPropertyError, match="in a box"):
        lqr_4d(state_bound=1.0).optimal_value()


def test_noise_that_is_not_divided_by_the_regulariser_is_not_covered_below_one():
    env = km.make("rkhs")
    known = {"norm_reward": env.problem.norm_reward, "norm_transition": env.problem.norm_transition}
    covered = km.GPUCRL(env, confidence=Confidence(**known), seed=0)
    assert covered.coverage.covered
    agent = km.GPUCRL(env, confidence=Confidence(divide=False, **known), seed=0)
    assert not agent.coverage.covered
    assert "not divided" in str(agent.coverage)
    larger = Confidence(divide=False, regulariser="paper", **known)  # λ = H: β is larger
    assert km.GPUCRL(env, confidence=larger, seed=0).coverage.covered


def test_regret_is_of_values_where_only_rewards_are_noisy():
    env = shifted(1.0, reward_noise=1.0, noise=0.0)
    result = km.Oracle(env, seed=0).learn(episodes=5, progress=False)
    regret = np.asarray(result.episodes["regret"])
    assert np.ptp(regret) < 1e-9  # noise of rewards does not enter
    assert np.abs(regret).max() <= env.optimal_value().error + 0.02


def test_a_gp_setting_needs_a_truth_drawn_from_that_prior():
    drawn = km.GPUCRL("gp-prior", confidence={"name": "valid", "setting": "gp"}, seed=0)
    assert "drawn from the prior" not in str(drawn.coverage)
    for env, settings in (("rkhs", {}), ("gp-prior", {"reward_kernel": "0.3 * linear"})):
        confidence = {"name": "valid", "setting": "gp"}
        agent = km.GPUCRL(env, confidence=confidence, seed=0, **settings)
        assert not agent.coverage.covered
        assert "not known to be drawn from the prior" in str(agent.coverage)


def test_outcomes_that_may_be_clipped_end_the_claim():
    env = shifted(1.0)
    settings = {"reward": "known", "confidence": "valid", "seed": 0}
    agent = km.GPUCRL(env, **settings)
    assert agent.coverage.covered
    states = np.array([[9.5], [10.0], [9.0], [8.0]])  # the second state is on the border
    actions, rewards = np.zeros((3, 1)), 0.1 * states[:3, 0]
    agent.tell(states, actions, rewards)
    assert str(agent.coverage) == (
        "not covered: the outcome of step 1 of episode 1 may have been clipped"
    )
    told_outcomes = km.GPUCRL(env, **settings)
    told_outcomes.tell(states, actions, rewards, outcomes=[[10.4], [9.0], [8.0]])
    assert told_outcomes.coverage.covered


def test_values_of_a_known_reward_are_clipped():
    env = km.make("rkhs")
    agent = km.GPUCRL(env, reward="known", planner="bonus", confidence="paper", seed=0)
    agent.ask()
    problem = agent.problem
    bound = problem.norm_reward * np.sqrt(problem.reward_kernel.variance_bound(problem.points))
    assert agent.planned.value(env.start) <= problem.horizon * bound + 1e-9


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"confidence": {"name": "valid", "norm_reward": 0.01}}, "norm_reward = 0.01 is below"),
        ({"confidence": {"name": "valid", "norm_transition": 0.01}}, "norm_transition = 0.01"),
        ({"confidence": "valid", "noise": 1e-3}, "the noise of the reward is below"),
    ],
)
def test_what_contradicts_the_environment_is_not_covered(settings, reason):
    agent = km.GPUCRL("rkhs", seed=0, **settings)
    assert not agent.coverage.covered
    assert reason in str(agent.coverage)


@pytest.mark.parametrize("boxes", [1, 4, 6])
def test_nets_stay_within_their_slack(boxes):
    """In the cell of a point, a function with slopes of at most L̄ changes by at most 1/l²."""
    slope, episode = 2.0, 3
    factors = {f"part{i}": km.Box([0.0], [1.0 + i]) for i in range(boxes)}
    domain = km.join(**factors)
    cells, _ = net(domain, slope=slope, episode=episode)
    points = jnp.asarray(np.random.default_rng(0).uniform(size=(2000, boxes)) * domain.bounds[1])
    change = slope * np.abs(np.asarray(points - cells(points))).sum(axis=1)
    assert change.max() <= 1 / episode**2
    if boxes == 6:
        assert change.max() > 0.5 / episode**2  # the net is not much finer than needed


def test_the_width_of_a_box_is_its_half_diagonal():
    agent = km.GPUCRL(
        "rkhs-2d",
        confidence={"name": "valid", "shape": "box", "gain": "realised"},
        planner="paper",
        seed=0,
    )
    sets = agent.confidence_sets()
    points = jnp.asarray(agent.problem.points.spread_points(20))
    sides = sets.plausible(points).sides / jnp.asarray(agent.problem.scale)[None, :]
    _, width = sets.half_widths(points)
    np.testing.assert_allclose(width, np.linalg.norm(np.asarray(sides), axis=1))
    # Approximate plans have Theorem 1 for either shape.
    ball = km.GPUCRL("rkhs-2d", confidence="valid", planner="paper", seed=0)
    parts = [run_bound(each).at(5).parts["transition"] for each in (agent, ball)]
    assert parts[0] == pytest.approx(parts[1] * (1 + np.sqrt(2)) / 2)


def test_the_certificate_of_a_table_uses_the_slope_of_its_plans(tmp_path):
    run(RunConfig("riverswim", "gp-ucrl", 0, {}, {"confidence": "valid"}), tmp_path, episodes=2)
    result = audit(tmp_path)
    certificate = next(each for each in result.certificates if "(i)" in each.name)
    problem = km.make("riverswim").problem
    assert not any(f"L = {problem.lipschitz:.4g}," in text for text in certificate.assumes)


def test_values_know_where_episodes_end():
    """Reward 1 in every period, and every episode ends after the first one."""
    box = km.Box([0.0], [1.0])
    mdp = MDP(
        MeanModel(lambda z: jnp.ones(z.shape[0]), lambda z: z[:, :1]),
        states=box,
        actions=box,
        horizon=5,
        reward_noise=Gaussian(0.0),
        transition_noise=Gaussian(0.0),
        termination=lambda points, after: jnp.ones(points.shape[0], bool),
    )
    counts = {"state_points": (11,), "action_points": (3,)}
    assert optimal_value(mdp, [0.5], **counts).value == pytest.approx(1.0)
    plan = km.GridPlanner((11,), (3,)).plan(mdp, key=KEY)
    assert plan.value([0.5]) == pytest.approx(1.0)
    grid = km.GridPlanner((11,), (3,)).grid(mdp)
    assert policy_values(mdp, plan.policy, grid)[0].max() == pytest.approx(1.0)
    noisy = replace_fields(mdp, transition_noise=Gaussian(0.1))
    assert optimal_value(noisy, [0.5], **counts).error == np.inf  # noise decides where it ends


def test_errors_in_32_bits_include_rounding():
    box, kernel = km.Box([0.0, 0.0], [1.0, 1.0]), km.kernel("se(0.5)")
    posterior = km.gp.posterior(kernel, noise_variance=1e-5, domain=box, dtype="float32")
    assert (posterior.engine, posterior.error_kind) == ("compiled", "empirical")
    points = np.random.default_rng(0).uniform(size=(300, 2))
    exact = np.asarray(kernel(points))
    prior = np.asarray(posterior.covariance(points.astype(np.float32)), float)
    assert np.abs(prior - exact).max() <= posterior.error
    double = km.gp.posterior(kernel, noise_variance=1e-5, domain=box)
    assert double.error_kind == "certified"


def test_cached_deviations_in_32_bits_do_not_drift():
    box, rng = km.Box([0.0], [1.0]), np.random.default_rng(0)
    prior = km.gp.posterior(km.kernel("se(0.3)"), noise_variance=0.01, domain=box, dtype="float32")
    points = np.linspace(0.0, 1.0, 21)[:, None].astype(np.float32)
    cached, plain = prior.cache_at(points, moments=True), prior
    for _ in range(100):
        x = rng.uniform(size=(50, 1))
        cached, plain = (each.condition(x, np.sin(3 * x[:, 0])) for each in (cached, plain))
    np.testing.assert_allclose(cached.predict(points)[1], plain.predict(points)[1], rtol=1e-3)


@pytest.mark.parametrize("kind", [km.GPUCRL, km.PSRL, km.Greedy])
def test_gaussian_noise_for_a_system_with_heavy_tails_is_not_covered(kind):
    agent = kind(km.make("rkhs", noise_law="student-t"), noise=0.1, seed=0)
    assert not agent.coverage.covered
    if kind is not km.Greedy:  # no theorem is about greedy
        assert "the noise of the reward has heavy tails" in agent.coverage.reasons


# Coverage is the conjunction of listed assumptions.


def all_settings():
    """Every setting that a user, a problem or an environment can change, as "part.field"."""
    parts = {
        "confidence": [Confidence, AdaptiveConfidence],
        "agent": [each.Config for each in AGENTS.values() if each.theorem is not Agent.theorem],
        "planner": [GridPlanner, TolerancePlanner, SafeGridPlanner],
        "problem": [km.Problem],
        "prior": [NormBall],
    }
    return {
        f"{part}.{field.name}"
        for part, classes in parts.items()
        for each in classes
        for field in dataclasses.fields(each)
    }


def test_every_setting_is_read_by_an_assumption_or_has_a_reason():
    """Fails when a setting is added that no assumption mentions: add it to one, or say why not."""
    read = {name for t in THEOREMS for each in t.assumptions for name in each.settings}
    declared = read | set(UNRELATED_SETTINGS)
    assert all_settings() - declared == set()
    assert declared - all_settings() == set()  # nothing is declared that does not exist


def test_assumptions_have_names_and_levels():
    for theorem in THEOREMS:
        names = [each.name for each in theorem.assumptions]
        assert len(names) == len(set(names))
        assert {each.level for each in theorem.assumptions} <= set(LEVELS)


def test_coverage_is_the_conjunction():
    agent = km.GPUCRL("rkhs", confidence={"name": "valid", "scale": 0.5}, update="step", seed=0)
    assert agent.coverage.reasons == ("policies change within an episode", "beta is scaled by 0.5")
    failed = [each.name for each in agent.coverage.assumptions if not each.holds]
    assert failed == ["policies are fixed for an episode", "beta is not smaller than the theorem's"]
    covered = km.GPUCRL("rkhs", confidence="valid", seed=0).coverage
    assert all(each.holds for each in covered.assumptions)


def test_a_reward_function_that_is_not_the_system_s_is_not_covered():
    env = km.make("rkhs")
    wrong = km.GPUCRL(env, reward=lambda z: 0.0 * z[:, 0], confidence="valid", seed=0)
    assert "the reward function is not that of the system" in wrong.coverage.reasons
    right = km.GPUCRL(env, reward=env.known_reward, confidence="valid", seed=0)
    assert right.coverage.covered
    narrow = km.GPUCRL(env, reward_bounds=(0.0, 1e-3), confidence="valid", seed=0)
    assert "reward_bounds do not contain the rewards of the system" in narrow.coverage.reasons


def test_in_the_gp_setting_the_noise_must_be_that_of_the_system():
    env, settings = km.make("gp-prior"), {"name": "valid", "setting": "gp"}
    louder = km.GPUCRL(env, confidence=settings, noise=0.2, seed=0)
    assert "the noise of the reward is not that of the system" in louder.coverage.reasons


# Plans are not short of optimism (two dimensions or more).


@pytest.mark.parametrize("form", ["radius", "root", "sides"])
@pytest.mark.parametrize(("counts", "periodic"), [((13, 11), (0,)), ((7, 6, 5), ())])
def test_upper_bounds_of_plausible_sets_hold(form, periodic, counts, rng):
    """The bound is at least U at 500 members of each set, on a rough table."""
    m, n = len(counts), 60
    states = km.Box([-1.0] * m, [1.0] * m, periodic=periodic)
    grid, metric = StateGrid(states, counts, Gaussian(0.1)), (0.7, 1.3, 1.0)[:m]
    table = jnp.asarray(rng.normal(size=math.prod(grid.lattice_shape)))
    centres = jnp.asarray(rng.uniform(-1.2, 1.2, size=(n, m)))
    sizes = rng.uniform(0, 0.8, size=n) ** 2
    roots = {
        "radius": sizes[:, None, None] * np.diag(metric),
        "root": sizes[:, None, None] * rng.normal(size=(n, m, m)),
        "sides": sizes[:, None, None] * np.diag(rng.uniform(0, 1, size=m)),
    }[form]
    widths = {"radius": sizes, "root": roots, "sides": np.diagonal(roots, axis1=1, axis2=2)}[form]
    prediction = Prediction(
        jnp.zeros(n), centres, jnp.zeros(n), **{form: jnp.asarray(np.array(widths))}
    )
    backup = backup_for("upper", grid, metric, prediction)
    positions = backup.locate(prediction, jnp.zeros(1), jnp.asarray(1.0))
    upper = backup.read(backup.prepare(table, jnp.zeros(1)), positions)
    units = rng.normal(size=(500, m))
    size = np.abs(units).max(axis=1) if form == "sides" else np.linalg.norm(units, axis=1)
    units = units / size[:, None] * rng.choice([1.0, 0.6, 0.3], size=(500, 1))
    members = np.asarray(centres)[:, None, :] + np.einsum("nij,kj->nki", roots, units)
    values = grid.stencil(jnp.asarray(members.reshape(-1, m))).read(table)
    assert (np.asarray(values).reshape(n, 500).max(axis=1) <= np.asarray(upper) + 1e-12).all()
    point = prediction._replace(**{form: jnp.zeros_like(getattr(prediction, form))})
    exact = backup.read(table, backup.locate(point, jnp.zeros(1), jnp.asarray(1.0)))
    np.testing.assert_allclose(exact, grid.stencil(centres).read(table), atol=1e-12)
