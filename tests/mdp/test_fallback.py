"""Fallback controllers: functions, PID controllers and trusted sets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.constraint_parsing import as_constraints
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.fallback import Fallback, as_fallback
from kernelmdp.mdp.first_policies import ExcitedPolicy
from kernelmdp.mdp.pid import PID
from kernelmdp.mdp.policy import PolicyPlayer
from kernelmdp.mdp.trusted_set import as_trusted

BOX = km.Box([-1.0], [1.0])
SPACES = {"states": BOX, "actions": BOX}


def python_only(state, period):
    """A controller that JAX cannot trace."""
    return [-0.5 if float(state[0]) > 0 else 0.5]


def test_functions_of_jax_and_of_python():
    for function in (lambda s, h: -0.5 * jnp.sign(s), python_only):
        policy = as_fallback(function, **SPACES).policy
        assert np.allclose(policy.actions(jnp.array([[0.3], [-0.3]]), 0), [[-0.5], [0.5]])
        assert np.allclose(jax.jit(lambda s, p=policy: p.actions(s, 0))(jnp.array([[0.3]])), -0.5)


def test_a_pid_is_the_textbook_formula():
    pid = PID(0, 0.5, 2.0, integral=0.3, derivative=0.7, bias=0.1, low=-9.0, high=9.0)
    player, total, last = PolicyPlayer(pid), 0.0, None
    for period, x in enumerate([0.1, 0.3, 0.6, 0.4]):
        error = 0.5 - x
        total += error
        change = 0.0 if last is None else error - last
        expected = 0.1 + 2.0 * error + 0.3 * total + 0.7 * change
        last = error
        assert np.isclose(player([x], period)[0], expected)


def test_the_sum_of_errors_stops_at_a_limit():
    pid = PID(0, 1.0, 1.0, integral=1.0, low=0.0, high=1.5)
    memory = pid.reset(1)
    for period in range(5):
        action, memory = pid.decide(memory, jnp.array([[0.0]]), period)
    assert float(action[0, 0]) == 1.5
    assert float(memory[0][0]) == 0.0  # every period was at the limit


def test_only_a_pid_with_memory_remembers():
    assert not Fallback(PID(0, 1.0, 1.0, derivative=0.5, rate=1)).remembers
    assert Fallback(PID(0, 1.0, 1.0, derivative=0.5)).remembers


def test_the_rate_takes_the_place_of_differences():
    pid = PID(0, 0.0, 1.0, derivative=0.5, rate=1)
    assert np.allclose(pid([0.2, 0.4], 0), -0.2 - 0.5 * 0.4)


def test_trusted_sets_are_boxes_points_or_functions():
    rows = jnp.array([[0.2], [0.8]])
    for trusted in (km.Box([0.0], [0.5]), km.FiniteSet([[0.2]]), lambda s: s[:, 0] < 0.5):
        assert Fallback(None, trusted).is_trusted(rows).tolist() == [True, False]


def test_excitation_is_small_and_only_in_trusted_states():
    policy = as_fallback(lambda s, h: 0.9 + 0 * s, **SPACES).policy
    trusted = Fallback(policy, km.Box([0.0], [1.0])).is_trusted
    excited = ExcitedPolicy(policy, trusted, BOX, jax.random.key(0))
    actions = np.asarray(excited.actions(jnp.array([[0.5], [-0.5]]), 0))
    assert actions[1] == 0.9
    assert 0 < abs(actions[0, 0] - 0.9) <= 0.1
    assert actions.max() <= 1.0


@pytest.mark.parametrize(
    ("fallback", "error", "message"),
    [
        (lambda s, h: 2.0 + 0 * s, ArgumentError, r"actions inside Box.* got \[2\.\] in state"),
        (lambda s, h: jnp.zeros(2), ShapeError, "actions of 1 numbers"),
        (lambda s: s, ArgumentError, r"a function f\(state, period\) -> action"),
        (3, ArgumentError, r"a function f\(state, period\) -> action, a Policy"),
        ((lambda s, h: s, 3), ArgumentError, "a trusted set: a Domain or a function, got 3"),
        ((lambda s, h: s, lambda s: s[:, 0] > 9), ArgumentError, "a trusted set with some states"),
        (
            (lambda s, h: s, km.Box([0.0, 0.0], [1.0, 1.0])),
            ArgumentError,
            "a trusted set of 1 coordinates",
        ),
    ],
)
def test_bad_fallbacks(fallback, error, message):
    with pytest.raises(error, match=message):
        as_fallback(fallback, **SPACES)


def test_a_trusted_set_keeps_the_constraints():
    violation = Violation(as_constraints("state <= 0.5", **SPACES), 1)
    with pytest.raises(ArgumentError, match="a trusted set that keeps the constraints"):
        as_fallback((lambda s, h: 0 * s, km.Box([0.0], [0.6])), violation=violation, **SPACES)


@pytest.mark.parametrize("trusted", [km.Box([0.0], [0.6]), lambda s: s[:, 0] > 0.2])
def test_trusted_actions_keep_the_constraints(trusted):
    """The action 0.7 breaks s + a <= 1 in trusted states above 0.3."""
    violation = Violation(as_constraints(lambda s, a: s[:, 0] + a[:, 0] - 1.0, **SPACES), 1)
    with pytest.raises(ArgumentError, match="actions that keep the constraints in trusted states"):
        as_fallback((lambda s, h: 0.7 + 0 * s, trusted), violation=violation, **SPACES)
    gentle = (lambda s, h: 0 * s, trusted)
    assert as_fallback(gentle, violation=violation, **SPACES) is not None
    # Elsewhere nothing is claimed of the fallback.
    assert as_fallback(lambda s, h: 0.7 + 0 * s, violation=violation, **SPACES) is not None


def test_domains_decide_whole_cells():
    """Cells [-0.5, 0.5] and [0.5, 1.5] of one coordinate, and a point inside the first."""
    corners = np.array([[-0.5, 0.5], [0.5, 1.5]])[:, :, None]
    box = as_trusted(km.Box([-0.6], [0.6]))
    assert box.covers(corners).tolist() == [True, False]
    assert box.touches(corners).tolist() == [True, True]
    inner = as_trusted(km.Box([-0.1], [0.1]))
    assert inner.touches(corners).tolist() == [True, False]
    points = as_trusted(km.FiniteSet([[-0.5], [0.2], [0.5]]))
    assert points.touches(corners).tolist() == [True, True]
    assert not points.covers(corners).any()  # both corners of the first, and not all between


def test_an_error_of_a_function_is_one_sentence():
    def broken(state, period):
        raise KeyError("gain")

    with pytest.raises(ArgumentError, match="KeyError: 'gain'"):
        as_fallback(broken, **SPACES)


def test_leaving_has_a_probability():
    with pytest.raises(ArgumentError, match="a probability below 1"):
        Fallback(None, BOX, leaves=1.0)
