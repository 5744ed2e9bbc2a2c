"""Constraints: what users may write, what it means, and what is refused."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelmdp as km
from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.mdp.constraint_parsing import as_constraints, require_possible
from kernelmdp.mdp.constraints import Constraint, Limit, Violation, require_allowed

STATES = km.Box([0.0, -5.0], [100.0, 5.0])
ACTIONS = km.Box([0.0], [1.0])
SPACES = {"states": STATES, "actions": ACTIONS}
NAMES = ("temperature", "rate")


def made(constraints):
    return as_constraints(constraints, names=NAMES, **SPACES)


def values(constraints, states, actions=None):
    """The largest value at each state, by NumPy."""
    rows, given_actions = np.atleast_2d(states), np.atleast_2d(actions or [[0.0]])
    parts = []
    for each in constraints:
        arguments = (rows, given_actions) if each.on_actions else (rows,)
        parts.append(np.asarray(each.function(*arguments)))
    return np.max(parts, axis=0)


@pytest.mark.parametrize(
    ("text", "allowed", "broken"),
    [
        ("temperature <= 80", [80.0, 0.0], [80.1, 0.0]),
        ("temperature < 80", [80.0, 0.0], [80.1, 0.0]),
        ("rate >= -2", [0.0, -2.0], [0.0, -2.1]),
        ("|rate| <= 2 K/s", [0.0, 2.0], [0.0, -2.1]),
        ("10 <= temperature <= 80 °C", [10.0, 0.0], [9.0, 0.0]),
        ("state[1] <= 1e-1", [0.0, 0.1], [0.0, 0.2]),
    ],
)
def test_text(text, allowed, broken):
    constraints = made(text)
    assert values(constraints, allowed)[0] <= 0 < values(constraints, broken)[0]


def test_text_of_an_action_is_checked_with_the_action():
    (constraint,) = made("action <= 0.5")
    assert constraint.on_actions
    violation = Violation((constraint,), 2)
    points = jnp.array([[0.0, 0.0, 0.4], [0.0, 0.0, 0.6]])
    assert violation(points, jnp.zeros((2, 2))).tolist() == [False, True]


def test_units_are_kept():
    assert made("temperature <= 80 °C")[0].unit == "°C"


def test_a_box_limits_what_it_narrows():
    constraints = made(km.Box([0.0, -1.0], [80.0, 7.0]))
    assert [each.name for each in constraints] == ["temperature <= 80", "rate >= -1"]


def test_a_mapping_of_limits():
    constraints = made({"temperature": (None, 80), "rate": [-1, 1]})
    assert [each.name for each in constraints] == ["temperature <= 80", "rate >= -1", "rate <= 1"]
    assert made({"temperature": (0, 100)}) == ()  # the state space keeps these by itself


def test_functions_by_their_parameters():
    on_states, on_both = made([lambda s: s[:, 0] - 1, lambda s, a: s[:, 0] * a[:, 0] - 1])
    assert not on_states.on_actions
    assert on_both.on_actions


def test_an_episode_is_checked_after_the_last_action_too():
    violation = Violation(made("temperature <= 80"), 2)
    states = np.array([[10.0, 0.0], [20.0, 0.0], [90.0, 0.0]])
    assert violation.count(states, np.zeros((2, 1))) == 1


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_limit_is_a_comparison(value, bound):
    violation = Violation((Constraint(Limit(0, bound), "limit"),), 1)
    assert bool(violation.at_states(jnp.array([[float(value)]]))[0]) == (value > bound)


@pytest.mark.parametrize(
    ("constraints", "error", "message"),
    [
        ("temperatures <= 80", ArgumentError, "did you mean 'temperature'"),
        ("temperature = 80", ArgumentError, "text such as 'temperature <= 80'"),
        ("|rate| >= 2", ArgumentError, "an upper limit of an absolute value"),
        ("3 <= rate <= 1", ArgumentError, "the lower one first"),
        ({"rate": 3}, ArgumentError, r"\(low, high\) for rate"),
        (km.Box([0.0], [1.0]), ShapeError, "a Box of 2 axes"),
        (lambda s, a, h: s, ArgumentError, "a function of states, or of states and actions"),
        (7, ArgumentError, "a Box, text, a function, a Constraint, or a list"),
    ],
)
def test_bad_constraints(constraints, error, message):
    with pytest.raises(error, match=message):
        made(constraints)


@pytest.mark.parametrize(
    ("constraints", "error", "message"),
    [
        ("temperature <= -1", ArgumentError, "constraints that allow some state, got temperature"),
        ("action <= -1", ArgumentError, "constraints that allow some action"),
        (lambda s: s, ShapeError, "a function of n states"),
        (lambda s: jnp.log(s[:, 0] - 50), DataError, "finite"),
    ],
)
def test_impossible_constraints(constraints, error, message):
    with pytest.raises(error, match=message):
        require_possible(made(constraints), **SPACES)


def test_a_state_that_violates():
    violation = Violation(made("temperature <= 80"), 2)
    require_allowed(violation, "first_state", np.array([80.0, 0.0]))
    with pytest.raises(ArgumentError, match="a state that keeps temperature <= 80"):
        require_allowed(violation, "first_state", np.array([81.0, 0.0]))


def test_the_signal_is_part_of_the_mdp():
    problem = km.make("rkhs").problem
    limits = as_constraints("state <= 0.5", states=problem.states, actions=problem.actions)
    mdp = dataclasses.replace(problem, constraints=limits).mdp(km.make("rkhs").mdp.model)
    points, after = jnp.zeros((2, 2)), jnp.array([[0.4], [0.6]])
    assert mdp.signals["violation"](points, after).tolist() == [False, True]
