"""Agents that keep constraints: settings, budgets, coverage, files and bad input."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelmdp as km
from kernelmdp.errors import ArgumentError, SafetyWarning
from kernelmdp.experiments import RunConfig, audit, interact, run
from kernelmdp.planners.risk_budget import RiskBudget


def brake(state, period):
    """A safe and mediocre controller of the environment ``rkhs``."""
    return 0.0 * state


SAFE = {"constraints": "state <= 0.8", "confidence": "valid", "risk": 0.1}
TRUSTED = km.Box([-0.6], [0.6])


def test_a_run_has_the_columns_and_keeps_its_budget():
    agent = km.GPUCRL("rkhs", fallback=(brake, TRUSTED), risk_for=4, seed=0, **SAFE)
    rows = list(interact(agent, 4))
    planned = [row["planned_risk"] for row in rows]
    assert all({"violations", "planned_risk", "fallback_share"} <= set(row) for row in rows)
    assert all(p <= 0.1 * (n + 1) / 4 for n, p in enumerate(np.cumsum(planned)))
    assert np.isclose(agent.totals["spent_risk"], sum(planned))
    assert rows[0]["fallback_share"] > 0
    assert rows[0]["violations"] == 0


def test_without_constraints_there_are_no_such_columns():
    rows = list(interact(km.GPUCRL("rkhs", seed=0), 1))
    assert "violations" not in rows[0]


def test_coverage_names_what_is_missing():
    agent = km.GPUCRL("rkhs", fallback=(brake, TRUSTED), seed=0, **SAFE)
    assert agent.safety.covered
    assert "Theorem 5" in agent.safety.theorem
    practical = km.GPUCRL("rkhs", constraints="state <= 0.8", seed=0)
    assert "beta is scaled by 0.1" in practical.safety.reasons
    function = km.GPUCRL("rkhs", seed=0, **SAFE | {"constraints": lambda s: s[:, 0] - 0.8})
    assert any("has no slope" in reason for reason in function.safety.reasons)
    each = km.GPUCRL("rkhs", risk_for="episode", seed=0, **SAFE)
    assert any("each episode" in reason for reason in each.safety.reasons)
    assert not km.PSRL("rkhs", constraints="state <= 0.8", seed=0).safety.covered


def test_a_trusted_set_that_is_a_function_is_not_covered():
    """Between the corners of a cell it is not known."""
    function = (brake, lambda s: abs(s[:, 0]) <= 0.6)
    agent = km.GPUCRL("rkhs", fallback=function, seed=0, **SAFE)
    assert any("trusted set is a function" in reason for reason in agent.safety.reasons)
    stay = (lambda s, h: 0.0 * s, lambda s: s[:, 0] <= 1)
    table = km.GPUCRL("riverswim", constraints="state <= 3", fallback=stay, seed=0)
    assert not any("trusted set" in reason for reason in table.safety.reasons)


@pytest.mark.parametrize(
    ("kernel", "jumps"), [("se(1.0)", True), ("periodic(1.0, 2.0)[0] * se(1.0)[1]", False)]
)
def test_means_that_may_jump_where_an_angle_ends_are_not_covered(kernel, jumps):
    """A cell across the seam is bounded from its node, which is at one end."""
    problem = km.Problem.from_spaces(
        states=km.Box([-1.0], [1.0], periodic=[0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=3,
    )
    kernels = {"reward_kernel": kernel, "transition_kernel": kernel}
    limit = km.mdp.Constraint(lambda s: s[:, 0] - 0.8, slope=1.0)
    agent = km.GPUCRL(problem, constraints=limit, planner="grid", seed=0, **kernels)
    assert any("may jump" in reason for reason in agent.safety.reasons) == jumps


def test_a_plan_beyond_the_risk_is_not_covered():
    agent = km.GPUCRL("rkhs", seed=0, **SAFE)  # nothing is known, and there is no fallback
    list(interact(agent, 1))
    assert any("no policy within the risk" in reason for reason in agent.safety.reasons)


def test_a_fallback_that_leaves_its_set_is_noticed():
    agent = km.GPUCRL("rkhs", fallback=(brake, km.Box([-0.05], [0.05])), seed=0, **SAFE)
    with pytest.warns(SafetyWarning, match="left its trusted set, from"):
        list(interact(agent, 2))
    assert any("left its trusted set" in reason for reason in agent.safety.reasons)


def test_regret_bounds_are_not_claimed_with_constraints():
    agent = km.GPUCRL("rkhs", seed=0, **SAFE)
    reasons = agent.theorem.coverage(agent.evidence, "regret").reasons
    assert "plans keep constraints, and the optimal policy need not" in reasons


def test_predict_keeps_the_constraints():
    agent = km.GPUCRL("rkhs", fallback=(brake, TRUSTED), seed=0, **SAFE)
    list(interact(agent, 2))
    assert agent.controller_plan().risk([0.0]) <= 0.1
    assert agent.predict([0.0]).shape == (1,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"risk": 0.0}, "risk: expected a probability between 0 and 1"),
        ({"risk": 1.0}, "risk: expected a probability between 0 and 1"),
        ({"risk": "much"}, "risk: expected a probability between 0 and 1"),
        ({"risk_for": 0}, "risk_for"),
        ({"first_episode": "fallback"}, "fallback: expected a controller to fall back to"),
        ({"constraints": "state <= -2"}, "constraints that allow some state"),
        ({"constraints": "known"}, "constraints: expected constraints of your own"),
        ({"fallback": "known"}, "fallback: expected fallback of your own"),
        ({"fallback": lambda s, h: 7.0 + 0 * s}, "fallback: expected actions inside"),
        (
            {"constraints": "state <= 0.5", "fallback": (brake, km.Box([0.0], [0.9]))},
            "a trusted set that keeps the constraints",
        ),
        (
            {"constraints": lambda s, a: 0.5 - a[:, 0], "fallback": (brake, TRUSTED)},
            "fallback: expected actions that keep the constraints in trusted states",
        ),
        (
            {"constraints": "state <= 0.5", "planner": "certified"},
            "planner: expected a planner that keeps constraints: safe-grid or safe-mpc",
        ),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_played(settings, message):
    with pytest.raises(ArgumentError, match=message):
        km.GPUCRL("rkhs", seed=0, **settings)


def test_a_start_that_violates():
    agent = km.GPUCRL("rkhs", constraints="state <= -0.5", seed=0)
    with pytest.raises(ArgumentError, match="first_state: expected a state that keeps state <= -0"):
        agent.learn(1, progress=False)
    assert agent.episode == 0


def test_saving(tmp_path):
    agent = km.GPUCRL("rkhs", fallback=(brake, TRUSTED), seed=0, **SAFE)
    list(interact(agent, 2))
    agent.save(tmp_path / "agent.kmdp")
    with pytest.raises(ArgumentError, match="fallback: expected the fallback that"):
        km.load(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp", fallback=(brake, TRUSTED))
    assert loaded.totals == agent.totals
    assert np.allclose(loaded.ask([0.0])([0.1], 0), agent.ask([0.0])([0.1], 0))
    assert loaded.planned.risk([0.0]) == agent.planned.risk([0.0])


@pytest.mark.parametrize(
    "constraints", [km.Box([-1.0], [0.8]), ["state <= 0.8"], {"state": (None, 0.8)}]
)
def test_limits_are_saved(tmp_path, constraints):
    agent = km.GPUCRL("rkhs", constraints=constraints, seed=0)
    agent.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp").problem.constraints
    functions = [each.function for each in loaded]
    assert functions == [each.function for each in agent.problem.constraints]


def test_an_audit_checks_the_constraints(tmp_path):
    settings = SAFE | {"constraints": ["state <= 0.95"]}
    run(RunConfig("rkhs", "gp-ucrl", settings=settings), tmp_path, episodes=2)
    result = audit(tmp_path)
    assert not result.failed
    names = {check.name: check for check in result.checks}
    assert names["violations, counted again"].holds
    assert names["plan replay: planned risk"].holds


def test_the_command_line(tmp_path):
    command = [sys.executable, "-m", "kmdp", "run", "rkhs", "--episodes", "1"]
    options = ["--constraint", "state <= 0.9", "--risk", "0.2", "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "planned risk, in all" in done.stdout
    assert "violations" in (tmp_path / "run" / "episodes.csv").read_text().splitlines()[0]
    bad = subprocess.run(
        [*command, "--constraint", "stat <= 1"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr


@given(
    st.floats(1e-3, 0.9), st.sampled_from(["learning", 7]), st.lists(st.floats(0, 1), max_size=20)
)
def test_budgets_never_exceed_the_risk(risk, episodes, shares):
    """Whatever share of its allowance each episode takes, the sum stays below the risk."""
    budget, spent = RiskBudget(risk, episodes), 0.0
    for number, share in enumerate(shares, start=1):
        spent += share * budget.allowed(number, spent=spent)
    assert spent <= risk * (1 + 1e-9)


def test_the_risk_of_each_episode_does_not_shrink():
    assert RiskBudget(0.1, "episode").allowed(50, spent=3.0) == 0.1


def test_a_table_with_a_fallback():
    stay = (lambda s, h: 0.0 * s, km.FiniteSet([[0.0], [1.0]]))
    agent = km.GPUCRL(
        "riverswim", constraints="state <= 3", fallback=stay, confidence="valid", seed=0
    )
    row = next(interact(agent, 1))
    assert row["planned_risk"] == 0.0
    assert row["violations"] == 0


def test_one_period_is_safe_optimisation():
    """SafeOpt's setting: what is measured is the next state, and must stay below a limit."""
    env = km.make("rkhs", horizon=1)
    agent = km.GPUCRL(env, fallback=(brake, TRUSTED), seed=0, **SAFE)
    for row in interact(agent, 5):
        assert row["planned_risk"] <= 0.1
    assert agent.safety.covered


def test_the_first_episode_of_fitted_kernels_is_the_fallback_s():
    problem = km.Problem.from_spaces(
        states=km.Box([-1.0], [1.0]), actions=km.Box([-1.0], [1.0]), horizon=5
    )
    agent = km.GPUCRL(problem, fallback=(brake, TRUSTED), constraints="state <= 0.8", seed=0)
    assert agent.first_episode == "fallback"
    policy = agent.ask([0.0])
    actions = np.array([policy([0.0], h)[0] for h in range(5)])
    assert 0 < np.abs(actions).max() <= 0.1
    assert jax.numpy.isnan(agent.planned.risk([0.0]))
