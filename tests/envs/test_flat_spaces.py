"""Elements of Gymnasium spaces as vectors, and back."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.envs.action_spaces import MOST_COMBINATIONS, action_domain, action_rows
from kernelmdp.envs.flat_spaces import flat_space
from kernelmdp.envs.observation_spaces import state_domain
from kernelmdp.errors import ArgumentError, DataError, ShapeError

ROBOT = spaces.Dict(
    {
        "arm": spaces.Dict({"angle": spaces.Box(-3.0, 3.0, ()), "joints": spaces.Box(0, 1, (2,))}),
        "load": spaces.Discrete(3, start=1),
        "map": spaces.Box(-1.0, 1.0, (2, 2)),
        "switches": spaces.MultiBinary(2),
    }
)
BOXES = st.builds(
    lambda shape, dtype: spaces.Box(-2.0, 5.0, tuple(shape), dtype),
    st.lists(st.integers(1, 3), max_size=3),
    st.sampled_from([np.float32, np.float64, np.int64]),
)
FINITE = st.one_of(
    st.builds(
        lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 4), st.integers(-3, 3)
    ),
    st.builds(
        lambda sizes, start: spaces.MultiDiscrete(sizes, start=[start] * len(sizes)),
        st.lists(st.integers(1, 3), min_size=1, max_size=3),
        st.integers(-2, 2),
    ),
    st.builds(spaces.MultiBinary, st.one_of(st.integers(1, 3), st.just([2, 2]))),
)


def nested(parts):
    """A space of these parts: one of them, a tuple or a dictionary of some."""
    several = st.lists(parts, min_size=1, max_size=2)
    return st.one_of(
        parts,
        st.builds(spaces.Tuple, several),
        st.builds(lambda each: spaces.Dict({f"part{i}": p for i, p in enumerate(each)}), several),
    )


def test_coordinates_have_the_names_of_their_parts():
    flat = flat_space(ROBOT, "observation")
    assert flat.names == (
        *("arm.angle", "arm.joints[0]", "arm.joints[1]", "load"),
        *("map[0,0]", "map[0,1]", "map[1,0]", "map[1,1]", "switches[0]", "switches[1]"),
    )
    assert (flat.low[[0, 3, 8]].tolist(), flat.high[[0, 3, 8]].tolist()) == ([-3, 1, 0], [3, 3, 1])
    assert [values is None for values in flat.choices] == [True] * 3 + [False] + [True] * 4 + [
        False
    ] * 2
    pair = spaces.Tuple([spaces.Box(0, 1, (2,)), spaces.Discrete(2)])
    names = ("observation[0][0]", "observation[0][1]", "observation[1]")
    assert flat_space(pair, "observation").names == names
    assert flat_space(spaces.Discrete(2), "action").names == ("action",)


@settings(max_examples=60, deadline=None)
@given(space=nested(nested(st.one_of(BOXES, FINITE))), seed=st.integers(0, 99))
def test_elements_become_vectors_and_the_same_elements(space, seed):
    space.seed(seed)
    flat, element = flat_space(space, "observation"), space.sample()
    vector = flat.to_vector(element, "")
    assert vector.shape == (len(flat.names),) == flat.low.shape == (len(flat.choices),)
    assert len(set(flat.names)) == len(flat.names)
    assert ((flat.low <= vector) & (vector <= flat.high)).all()
    np.testing.assert_array_equal(vector, gymnasium.spaces.flatten(_as_boxes(space), element))
    restored = flat.to_element(vector)
    assert space.contains(restored)
    np.testing.assert_array_equal(flat.to_vector(restored, ""), vector)


def _as_boxes(space):
    """The same space with boxes for finite parts, which Gymnasium flattens without one-hot."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _as_boxes(part) for key, part in space.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_as_boxes(part) for part in space])
    return spaces.Box(-np.inf, np.inf, space.shape, np.float64)


@settings(max_examples=40, deadline=None)
@given(space=nested(FINITE))
def test_finite_actions_are_all_their_combinations(space):
    flat = flat_space(space, "action")
    assume(np.prod([len(values) for values in flat.choices]) <= MOST_COMBINATIONS)
    rows = action_rows(flat)
    elements = [flat.to_element(row) for row in rows]
    assert all(space.contains(element) for element in elements)
    assert len({tuple(flat.to_vector(element, "")) for element in elements}) == len(rows)
    sizes = [len(values) for values in flat.choices]
    assert len(rows) == np.prod(sizes)
    assert action_domain(space) == FiniteSet(rows)
    assert action_domain(space, numbered=True) == FiniteSet.range(len(rows))


def test_continuous_actions_are_a_box():
    space = spaces.Dict({"throttle": spaces.Box(0, 1, ()), "wheels": spaces.Box(-1, 1, (2, 2))})
    assert action_domain(space) == Box([0, -1, -1, -1, -1], [1] * 5)
    element = flat_space(space, "action").to_element(np.array([0.5, -1, -0.5, 0.5, 1]))
    assert space.contains(element)
    assert element["wheels"].tolist() == [[-1, -0.5], [0.5, 1]]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.MultiDiscrete([17, 16]), f"at most {MOST_COMBINATIONS} .*, got 272 of 2 choices"),
        (spaces.MultiBinary(200), "combinations"),
        (spaces.Box(-np.inf, 1.0, (2,)), r"TransformAction\(.*, got action\[0\] in \[-inf, 1\]"),
        (spaces.Box(np.array([0.0, 2.0]), np.array([1.0, 2.0])), r"got action\[1\] in \[2, 2\]"),
        (spaces.Tuple([spaces.Box(0, 1, ()), spaces.Discrete(2)]), "all finite or all continuous"),
        (spaces.Sequence(spaces.Discrete(2)), "actions made of Box, .*, got Sequence"),
    ],
)
def test_bad_action_spaces(space, words):
    with pytest.raises(ArgumentError, match=words) as error:
        action_domain(space)
    assert "\n" not in str(error.value)


def test_a_large_discrete_space_is_no_combination():
    assert action_domain(spaces.Discrete(300)).count == 300


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(0, 255, (64, 64, 3), np.uint8), "for images, .* got Box"),
        (spaces.Dict({"eye": spaces.Box(0, 255, (8, 8, 1), np.uint8)}), "for images, .* got eye"),
        (spaces.Dict({"word": spaces.Text(4)}), "observations made of Box, .* got word Text"),
        (spaces.Dict({}), "at least one number"),
    ],
)
def test_bad_observation_spaces(space, words):
    with pytest.raises(ArgumentError, match=words):
        state_domain(space, None, ())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"arm": None}, ShapeError, "the parts angle, joints, got None after step 3"),
        ({"arm": {"angle": 0.0}}, ShapeError, "angle, joints"),
        ({"map": np.zeros(4)}, ShapeError, r"shape \(2, 2\) for map, got shape \(4,\)"),
        ({"load": [1, 2]}, ShapeError, r"shape \(\) for load"),
        ({"switches": "on"}, DataError, "expected numbers, got 'on' after step 3"),
    ],
)
def test_bad_elements(change, error, words):
    element = ROBOT.sample() | change
    with pytest.raises(error, match=words):
        flat_space(ROBOT, "observation").to_vector(element, "after step 3")


def test_states_of_parts():
    domain, unbounded = state_domain(ROBOT, None, ["arm.angle"])
    assert (domain.dimension, domain.periodic, unbounded) == (10, (0,), ())
    assert domain.low[0] == -np.pi
    counts = spaces.MultiDiscrete([3, 1], start=[2, 7])
    assert state_domain(counts, None, ()) == (Box([2.0, 6.5], [4.0, 7.5]), ())
    with pytest.raises(ArgumentError, match=r"angles: .*arm\.angle"):
        state_domain(ROBOT, None, ["angle"])
