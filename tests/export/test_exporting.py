"""What an export says of itself, and how it relates to predict."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, run
from kernelmdp.export import NumpyController, controller_of
from kernelmdp.export.exporting import write_stablehlo
from kmdp import main


def predicted(agent, export):
    """Actions of predict at states inside the limits, and those of the export."""
    check, table = export.check, export.table
    inside = [
        np.array_equal(np.clip(row, low, high), row)
        for row in check.observations
        for low, high in [observed_limits(agent)]
    ]
    rows = [
        (o, int(h))
        for o, h, ok in zip(check.observations, check.periods, inside, strict=True)
        if ok
    ]
    controller = table.numpy_controller()
    actions = [agent.predict(as_observation(agent, row), period) for row, period in rows]
    return np.array(actions), np.array([controller(row, period) for row, period in rows])


def observed_limits(agent):
    if hasattr(agent.task, "env"):
        space = agent.task.env.observation_space
        return getattr(space, "low", 0), getattr(space, "high", np.inf)
    return agent.problem.states.bounds


def as_observation(agent, row):
    discrete = hasattr(agent.task, "env") and agent.problem.states.finite
    return int(row[0]) if discrete else row


def test_exports_follow_predict(exported):
    """Gains, arms and tables of states exactly; grids up to what the export says."""
    agent, _, export = exported
    actions, chosen = predicted(agent, export)
    assert len(actions) > 20
    if export.table.kind in ("linear", "points"):
        np.testing.assert_allclose(chosen, actions, rtol=1e-6, atol=1e-6)
    elif export.table.kind == "network":
        # Most of these states were never visited. Scores of finite actions are then far off.
        width = export.table.action_high - export.table.action_low
        assert (np.abs(chosen - actions) / width).mean() < 0.35
    else:
        width = export.table.action_high - export.table.action_low
        assert (np.abs(chosen - actions) / width).mean() < 3 * export.loss.mean_difference + 0.02
        assert export.loss.mean_difference > 0


@pytest.mark.parametrize("exported", ["interpolated", "angles", "nearest_angles"], indirect=True)
def test_tables_hold_the_actions_of_the_plan(exported):
    agent, _, export = exported
    policy = agent.controller_plan().policy
    grid = policy.optimistic_backup.grid
    for period in range(agent.problem.horizon):
        chosen = export.policy.actions(jnp.asarray(grid.nodes), period)
        np.testing.assert_allclose(chosen, policy.at_nodes(grid, period), rtol=1e-6, atol=1e-6)


def test_more_nodes_come_closer_to_predict():
    agent = km.Greedy("rkhs", seed=0)
    agent.learn(2, progress=False)
    coarse, fine = (controller_of(agent, state_points=n).loss for n in (6, 401))
    assert fine.mean_difference < coarse.mean_difference / 10
    assert np.isfinite(fine.in_truth)


def test_the_loss_is_that_of_the_table():
    """A table of two nodes is poor. The loss is near the difference of values on a grid."""
    agent = km.Greedy("rkhs", seed=0)
    agent.learn(3, progress=False)
    export, mdp = controller_of(agent, state_points=2), agent.careful_mdp()
    grid, start = agent.task.grid, agent.starts[-1]
    values = [
        km.mdp.grid_value(mdp, policy, grid, start)
        for policy in (agent.controller_plan().policy, export.policy)
    ]
    loss = export.loss
    assert loss.in_model > 5 * loss.in_model_error > 0
    assert abs(loss.in_model - (values[0] - values[1])) < 4 * loss.in_model_error + 0.02


def test_the_description_says_what_is_needed(exported, tmp_path):
    agent, options, export = exported
    agent.export(tmp_path / "controller.npz", **options)
    controller = NumpyController.load(tmp_path / "controller.npz")
    description = controller.description
    with pytest.raises(ValueError, match="observation: expected"):
        controller(np.zeros(len(description["inputs"]) + 1))
    assert description["task"] == agent.problem.name
    assert description["agent"] == "greedy"
    assert description["version"] == km.__version__
    assert description["horizon"] == agent.problem.horizon
    assert len(description["inputs"]) == export.check.observations.shape[1]
    assert len(description["actions"]) == export.check.actions.shape[1]
    assert len(description["state_low"]) == agent.problem.states.dimension
    assert description["loss"] == str(export.loss)
    assert len(export.check.periods) == 100


def test_other_plans_name_the_format_that_they_have(tmp_path):
    agent = km.Greedy("rkhs", seed=0, planner={"name": "mpc", "horizon": 3, "samples": 16})
    with pytest.raises(ArgumentError, match=r"format: expected one of '\.c'"):
        agent.export(tmp_path / "controller.xyz")
    with pytest.raises(ArgumentError, match="state_points: expected None"):
        agent.export(tmp_path / "controller.stablehlo", state_points=5)
    with pytest.raises(ArgumentError, match=r"of: expected 'model' for '\.py'"):
        agent.export(tmp_path / "controller.py")
    with pytest.raises(ArgumentError, match="path: expected a file that can be written"):
        km.Greedy("riverswim").export(tmp_path / "no folder" / "controller.npz")
    agent._greedy = km.planners.UnplannedPolicy(policy=Still())
    with pytest.raises(ArgumentError, match=r"expected '\.stablehlo' for plans"):
        agent.export(tmp_path / "controller.c")
    assert list(tmp_path.iterdir()) == []


class Still(km.mdp.Policy):
    def actions(self, states, period):
        return 0.0 * states


@pytest.mark.parametrize("state_points", [5, 6])
def test_auto_takes_what_loses_less(state_points):
    agent = km.Greedy("rkhs", seed=0)
    agent.learn(2, progress=False)
    losses = {
        name: controller_of(agent, state_points=state_points, interpolation=name).loss.in_model
        for name in ("auto", "linear", "nearest")
    }
    assert losses["auto"] == min(losses.values())
    assert losses["linear"] != losses["nearest"]


def test_options_of_tables():
    agent = km.Greedy("riverswim", seed=0)
    with pytest.raises(ArgumentError, match="interpolation: expected 'nearest'"):
        controller_of(agent, interpolation="linear")
    with pytest.raises(ArgumentError, match="interpolation: expected one of"):
        controller_of(agent, interpolation="cubic")


@pytest.mark.parametrize("planner", ["grid", {"name": "mpc", "horizon": 3, "samples": 16}])
def test_stablehlo_is_predict_itself(planner, tmp_path):
    """Also with a memory, which one period hands to the next."""
    agent = km.Greedy("rkhs", seed=0, planner=planner)
    agent.learn(1, progress=False)
    agent.export(tmp_path / "controller.stablehlo")
    description = json.loads((tmp_path / "controller.stablehlo.json").read_text())
    program = jax.export.deserialize((tmp_path / "controller.stablehlo").read_bytes())
    first = [np.array(m["values"], m["type"]).reshape(m["shape"]) for m in description["memory"]]
    check = description["self_check"]
    for row, period, action in zip(*check.values(), strict=True):
        chosen = program.call(np.array(row), np.array(period), *first)[0]
        np.testing.assert_allclose(chosen, action, rtol=1e-6, atol=1e-6)
    # JAX compiles the program without the options of this library, so the policy is too. With
    # other options the round-off decides between actions that are nearly as good.
    decide = jax.jit(agent.controller_plan().policy.decide)
    before, memory = agent.controller_plan().policy.reset(1), first
    for period in range(3):
        state = np.array([0.3 + 0.1 * period])
        action, *memory = program.call(state, np.array(period), *memory)
        expected, before = decide(before, state[None], np.array(period))
        np.testing.assert_allclose(action, expected[0], rtol=1e-9, atol=1e-12)


def test_a_policy_of_python_is_refused(tmp_path):
    class Calls(km.mdp.Policy):
        def actions(self, states, period):
            shape = jax.ShapeDtypeStruct(states.shape, states.dtype)
            return jax.pure_callback(lambda x: x, shape, states)

    agent = km.Greedy("rkhs", seed=0)
    plan = agent.controller_plan()
    agent._greedy = km.planners.UnplannedPolicy(policy=Calls())
    with pytest.raises(ArgumentError, match=r"a policy that jax\.export can write"):
        write_stablehlo(agent, tmp_path / "controller.stablehlo")
    agent._greedy = plan


def test_onnx_is_asked_for_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ArgumentError, match=r"pip install 'kernelmdp\[export\]'"):
        km.Greedy("riverswim", seed=0).export(tmp_path / "controller.onnx")


def test_the_command(tmp_path, monkeypatch, capsys):
    run(RunConfig("lqr-1d", "greedy", 0), tmp_path / "run", episodes=2)
    out = tmp_path / "controller.npz"
    monkeypatch.setattr(sys, "argv", ["kmdp", "export", str(tmp_path / "run"), "--out", str(out)])
    main()
    assert "exactly that of predict" in capsys.readouterr().out
    assert NumpyController.load(out).self_check() < 1e-6
    monkeypatch.setattr(sys, "argv", ["kmdp", "export", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
