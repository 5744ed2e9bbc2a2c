"""Distilled controllers: what they learn from, how they are trained, and what files hold."""

import ctypes
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.export import ControllerTable, Inputs, NumpyController, SelfCheck, controller_of
from kernelmdp.export.c_source import c_source
from kernelmdp.export.distillation import DistillationConfig
from kernelmdp.export.distilled_law import law_arrays
from kernelmdp.export.distilling import Distillation
from kernelmdp.export.labelled_states import best_plan, labelled_episodes
from kernelmdp.export.network_policy import NetworkPolicy
from kernelmdp.export.network_training import (
    box_loss,
    inputs_with_period,
    targets_of,
    trained,
    untrained,
)
from kernelmdp.export.numpy_archive import numpy_archive
from kernelmdp.export.onnx_model import onnx_model
from tests.export import agents_to_export
from tests.export.test_formats import c_actions, compiled

STATES = km.Box([-1.0, 0.0, -3.0], [1.0, 2.0, 3.0], periodic=[1])
INPUTS = Inputs(("a", "b", "c"), np.zeros(3), (), *STATES.bounds, STATES.periodic)
BOX, CHOICES = km.Box([-1.0, 0.0], [1.0, 0.5]), km.FiniteSet([[5.0], [-1.0], [2.0]])


def network(space, reads_period, widths=(7, 5)):
    generator = np.random.default_rng(4)
    outputs = 3 if space is CHOICES else 2
    sizes = [4 + reads_period, *widths, outputs]
    pairs = list(itertools.pairwise(sizes))
    numbers = [generator.normal(size=(after, before)).astype(np.float32) for before, after in pairs]
    biases = [generator.normal(size=after).astype(np.float32) for _, after in pairs]
    layers = (tuple(jnp.asarray(x.astype(float)) for x in y) for y in (numbers, biases))
    return NetworkPolicy(*layers, STATES, space, 9, reads_period)


@pytest.mark.parametrize("space", [BOX, CHOICES])
@pytest.mark.parametrize("reads_period", [False, True])
def test_all_formats_evaluate_networks(space, reads_period, tmp_path):
    """With an angle that wraps, clipped states, and periods, at 1,000 states."""
    policy = network(space, reads_period)
    names = tuple("pq")[: space.dimension]
    fields = ("network", law_arrays(policy), np.arange(9), names, *space.bounds, {})
    table = ControllerTable(INPUTS, *fields)
    check = SelfCheck.of(table, policy, STATES)
    generator = np.random.default_rng(5)
    rows, periods = generator.uniform(-4, 4, (1000, 3)), generator.integers(9, size=1000)
    inside = np.array([table.numpy_controller().state(row) for row in rows])
    each = jax.vmap(lambda row, period: policy.actions(row[None], period)[0])
    actions = np.asarray(each(jnp.asarray(inside), jnp.asarray(periods)))
    assert len(np.unique(actions, axis=0)) > 1
    path = compiled(c_source(table, check), tmp_path / "network.so", "-shared", "-fPIC")
    library = ctypes.CDLL(str(path))
    chosen = c_actions(library, rows, periods, space.dimension)
    np.testing.assert_allclose(chosen, actions, rtol=1e-6, atol=1e-6)
    assert library.kmdp_self_check() == 0
    session = onnxruntime.InferenceSession(onnx_model(table, check))
    given = [{"observation": r, "period": np.array(h)} for r, h in zip(rows, periods, strict=True)]
    chosen = [session.run(None, each)[0] for each in given]
    np.testing.assert_allclose(chosen, actions, rtol=1e-6, atol=1e-6)
    (tmp_path / "network.npz").write_bytes(numpy_archive(table, check))
    controller = NumpyController.load(tmp_path / "network.npz")
    chosen = [controller(row, period) for row, period in zip(rows, periods, strict=True)]
    np.testing.assert_allclose(chosen, actions, rtol=1e-6, atol=1e-6)


def test_a_network_learns_a_clipped_law():
    """Labels at a limit hold from one side only, and the policy clips."""
    states = km.Box([-2.0], [4.0])
    config = DistillationConfig(width=32, steps=3000, rounds=1, states=400)
    rows = np.random.default_rng(0).uniform(-2, 4, (400, 1))
    space, periods = km.Box([-1.0], [3.0]), np.zeros(400, int)
    labels = np.clip(1.0 - 2.0 * rows, -1.0, 3.0)
    inputs, targets = inputs_with_period(rows, periods, states, 5), targets_of(labels, space)
    first = untrained(inputs, 1, config, reads_period=False, key=jax.random.key(0))
    after = trained(first, inputs, targets, config, finite=False, key=jax.random.key(1))
    policy = after.policy(states, space, 5)
    grid = np.linspace(-2, 4, 300)[:, None]
    chosen = np.asarray(policy.actions(jnp.asarray(grid), 0))
    assert np.abs(chosen - np.clip(1.0 - 2.0 * grid, -1.0, 3.0)).mean() < 0.05
    np.testing.assert_array_equal(chosen, np.asarray(policy.actions(jnp.asarray(grid), 4)))
    beyond = jax.grad(lambda x: box_loss(x, jnp.ones((1, 1))))(jnp.full((1, 1), 1.5))
    assert float(beyond[0, 0]) == 0.0


@pytest.fixture(scope="module")
def agent():
    return agents_to_export.export_of(agents_to_export.distilled)[0]


def test_a_distillation_imitates_and_repeats_itself(agent):
    """The same seed makes the same numbers, and another one others."""
    config = DistillationConfig.of(agents_to_export.SMALL)
    plan = agent.controller_plan().policy
    runs = [Distillation(agent, plan, config) for _ in range(2)]
    first, second = (law_arrays(each.run()) for each in runs)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    assert len(runs[0].returns) == 2
    loss = agents_to_export.export_of(agents_to_export.distilled)[2].loss
    assert loss.of == "network"
    assert loss.mean_difference < 0.1
    assert loss.in_model < 0.05 * abs(loss.value)
    assert np.isfinite(loss.in_truth)


def test_episodes_may_begin_with_one_plan(agent):
    plan, config = agent.controller_plan().policy, DistillationConfig.of(agents_to_export.SMALL)
    distillation = Distillation(agent, plan, config)
    starts = jnp.asarray(distillation.starts(4, key=jax.random.key(0)))
    common = best_plan(plan, starts)
    assert common[0].shape == (1,)
    student = NetworkPolicy(
        (jnp.zeros((1, 2)),), (jnp.zeros(1),), plan.mdp.states, plan.mdp.actions, 10, True
    )
    data = (plan.mdp, plan, student, starts, jnp.array([True, True, False, False]))
    noise = (jnp.zeros(4), jnp.zeros(1), jax.random.key(1))
    states, labels, counted = labelled_episodes(*data, *noise, common)
    np.testing.assert_array_equal(labels[0], np.broadcast_to(common[0], (4, 1)))
    assert np.ptp(np.asarray(labels[3])) > 0
    assert counted.all()
    # The network acts in the first two episodes: it does nothing, as a plan without an effect.
    expected = plan.mdp.model(jnp.concatenate([states[0, :2], jnp.zeros((2, 1))], axis=1)).state
    assert np.abs(np.asarray(plan.mdp.states.nearest(expected) - states[1, :2])).max() < 0.6


def test_options_belong_to_their_plans(agent):
    with pytest.raises(ArgumentError, match=r"distillation: expected settings among .*'heads'"):
        controller_of(agent, heads=3)
    with pytest.raises(ArgumentError, match="distillation: expected settings among"):
        controller_of(agent, interpolation="linear")
    with pytest.raises(ArgumentError, match="width: expected None, as only MPC plans"):
        controller_of(km.Greedy("riverswim", seed=0), width=3)
    with pytest.raises(ArgumentError, match="perturbation: expected a share"):
        DistillationConfig(perturbation=2.0)
