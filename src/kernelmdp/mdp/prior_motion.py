"""What users know of the motion: a rough model, coordinates that are known, and schedules."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.mdp.known_motion import KnownMotion
from kernelmdp.mdp.memory import RememberedMotion
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.schedules import (
    checked_schedule,
    observed_coordinates,
    scheduled_episodes,
    schedules_of,
)
from kernelmdp.numerics.checks import float_array, with_suggestion
from kernelmdp.numerics.modules import Module

#: Points at which known functions are tried when an agent is made.
PROBES = 4
#: Errors in a user's function that are reported with what the function should be.
FUNCTION_ERRORS = (
    jax.errors.JAXTypeError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError,
)  # fmt: skip


class LinearModel(Module):
    """The rough model s' = A s + B a.

    Attributes:
        state_matrix: A.
        action_matrix: B.
    """

    state_matrix: Float[Array, "m m"]
    action_matrix: Float[Array, "m q"]

    def __call__(self, state: Float[Array, " m"], action: Float[Array, " q"]) -> Array:
        return self.state_matrix @ state + self.action_matrix @ action


class PriorMotion(Module):
    """Next observations as far as users know them, for one period.

    Attributes:
        names: The names of the coordinates of an observation.
        states: The space of observations.
        model: A rough model of state and action, or None. It returns the next state, or a mapping
            from names of coordinates to their next values.
        known: Functions of state and action by the number of the coordinate that they know.
        schedules: Values of scheduled coordinates at times 0, …, H, one row for each.
        scheduled: The numbers of these coordinates.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    states: Domain = eqx.field(static=True)
    model: Callable[..., Any] | None
    known: dict[int, Callable[..., Any]]
    schedules: Float[Array, "c H1"]
    scheduled: tuple[int, ...] = eqx.field(static=True)

    def __call__(
        self,
        points: Float[Array, "n d"],
        unchanged: Float[Array, "n m"],
        time: Float[Array, " n"] | None,
    ) -> Float[Array, "n m"]:
        """Compute the next observations, angles within half a turn of the ones before.

        Episodes are recorded in this way (:func:`~kernelmdp.mdp.episode.unwrapped`), and a turn
        between the two would be learned as an error of the model.

        Args:
            points: Observations and actions.
            unchanged: The next observations if nothing were known.
            time: The period, where there are schedules.

        Returns:
            The next observations.
        """
        m = len(self.names)

        def one(point: Array, following: Array) -> Array:
            state, action = point[:m], point[m:]
            if self.model is not None:
                following = self._predicted(self.model(state, action), following)
            for axis, function in self.known.items():
                argument = f"known[{self.names[axis]!r}]"
                value = _shaped(argument, function(state, action), (), "one number")
                following = following.at[axis].set(value.astype(point.dtype))
            return following

        following = jax.vmap(one)(points, unchanged)
        if self.states.periodic:
            axes, before = np.array(self.states.periodic), points[:, :m]
            nearest = before + self.states.difference(following, before)
            following = following.at[:, axes].set(nearest[:, axes])
        if time is not None and self.scheduled:
            last = self.schedules.shape[1] - 1
            period = jnp.clip(jnp.round(time).astype(jnp.int32) + 1, 0, last)
            values = self.schedules[:, period].T.astype(following.dtype)
            following = following.at[:, np.array(self.scheduled)].set(values)
        return following

    def _predicted(self, value: Any, following: Array) -> Array:
        if not isinstance(value, Mapping):
            m = len(self.names)
            expected = f"a next state of {m} numbers" if m > 1 else "a next state of one number"
            return _shaped("prior_model", value, (m,), expected).astype(following.dtype)
        for name, number in value.items():
            if name not in self.names:
                expected = f"next values by name, among {', '.join(self.names)}"
                raise ArgumentError("prior_model", expected, repr(name))
            argument = f"prior_model, {name!r}"
            number = _shaped(argument, number, (), "one number").astype(following.dtype)
            following = following.at[self.names.index(name)].set(number)
        return following


class StatePriorMotion(Module):
    """The same for states without a memory.

    Attributes:
        prior: What users know.
    """

    prior: PriorMotion

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.prior(points, points[:, : len(self.prior.names)], None)


def with_known_motion(
    problem: Problem, *, known: Mapping[str, Any] | None, prior_model: Any, prior_error: float
) -> Problem:
    """Give a problem what a user knows of its motion.

    Args:
        problem: The problem. It has a clock if a coordinate follows a schedule.
        known: By coordinate name, functions of (state, action), schedules (H + 1,), or schedules of
            several episodes (E, H + 1).
        prior_model: A function of (state, action), a pair of matrices (A, B), or None.
        prior_error: How wrong the model may be where nothing was observed.

    Returns:
        The problem, tried at some points.

    Raises:
        ArgumentError: If a name is unknown, or a function does not return finite numbers of the
            right shape.
    """
    if not known and prior_model is None:
        return problem
    memory = problem.memory
    names, space = observed_coordinates(problem)
    m = space.dimension
    for name in known or {}:
        if name not in names:
            raise ArgumentError(
                "known", f"coordinates among {', '.join(names)}", with_suggestion(name, names)
            )
    functions = {names.index(n): f for n, f in (known or {}).items() if callable(f)}
    first = schedules_of(known, 0, problem)
    for episode in range(1, scheduled_episodes(known)):
        schedules_of(known, episode, problem)
    tables = {names.index(n): values for n, values in first.items()}
    rows = np.array(list(tables.values())).reshape(len(tables), problem.horizon + 1)
    model = _as_model(prior_model, m, problem.actions.dimension)
    prior = PriorMotion(names, space, model, functions, jnp.asarray(rows), tuple(tables))
    exact = {*functions, *tables}
    before = problem.known_motion
    motion = dataclasses.replace(
        before,
        function=StatePriorMotion(prior) if memory is None else RememberedMotion(memory, prior),
        learned=tuple(j for j in before.learned if j not in exact),
        followers=tuple(pair for pair in before.followers if pair[1] not in exact),
        is_prior=model is not None,
    )
    if not motion.learned:
        raise ArgumentError("known", "at least one coordinate that is learned", list(known or {}))
    _require_valid(prior, problem, m)
    return dataclasses.replace(problem, motion=motion, prior_error=prior_error)


def scheduled_values(motion: KnownMotion) -> dict[str, Float[np.ndarray, " H1"]]:
    """Return the schedules of a motion.

    Args:
        motion: The motion.

    Returns:
        Values at the times 0 to H, by the name of the coordinate.
    """
    prior = getattr(motion.function, "function", None)
    if not isinstance(prior, PriorMotion):
        return {}
    rows = np.asarray(prior.schedules)
    return {prior.names[j]: row for j, row in zip(prior.scheduled, rows, strict=True)}


def with_schedules(motion: KnownMotion, schedules: Mapping[str, Any], horizon: int) -> KnownMotion:
    """Replace schedules, such as a reference that differs from episode to episode.

    Args:
        motion: The motion of a problem with schedules.
        schedules: New values (H + 1,) by the name of the coordinate.
        horizon: H.

    Returns:
        The motion. Programs compiled for the other one serve it.

    Raises:
        ArgumentError: If a coordinate has no schedule.
    """
    table = scheduled_values(motion)
    for name, values in schedules.items():
        if name not in table:
            expected = f"coordinates with a schedule ({', '.join(table) or 'there are none'})"
            raise ArgumentError("known", expected, repr(name))
        function: Any = motion.function  # schedules are those of states with a clock
        space, axis = function.memory.states, function.function.names.index(name)
        table[name] = checked_schedule(name, values, horizon, space, axis)
    if not table:
        return motion
    rows = np.stack(list(table.values()))
    return eqx.tree_at(lambda each: each.function.function.schedules, motion, jnp.asarray(rows))


def _shaped(argument: str, value: Any, shape: tuple[int, ...], expected: str) -> Array:
    """What a user's function returned, as an array of this shape."""
    if value is None or isinstance(value, str | Mapping):
        raise ArgumentError(argument, expected, repr(value))
    array = jnp.asarray(value)
    if array.size != math.prod(shape):
        raise ShapeError(argument, expected, f"shape {array.shape}")
    return array.reshape(shape)


def _as_model(model: Any, m: int, q: int) -> Callable[..., Any] | None:
    if model is None or callable(model):
        return model
    expected = f"a function of (state, action), or matrices ({m}, {m}) and ({m}, {q})"
    if not isinstance(model, list | tuple) or len(model) != 2:
        raise ArgumentError("prior_model", expected, type(model).__name__)
    matrices = [jnp.asarray(float_array(matrix, "prior_model"), float) for matrix in model]
    if [matrix.shape for matrix in matrices] != [(m, m), (m, q)]:
        raise ShapeError("prior_model", expected, " and ".join(str(x.shape) for x in matrices))
    return LinearModel(*matrices)


def _require_valid(prior: PriorMotion, problem: Problem, m: int) -> None:
    """Try the user's functions at a few points: shapes, names, and finite numbers."""
    memory = problem.memory
    states = np.asarray((problem.states if memory is None else memory.states).spread_points(PROBES))
    actions = np.asarray(problem.actions.spread_points(1))[:1]
    states = states[:PROBES]
    # Provisional bounds are far away, where a model need not hold.
    for axis in (axis for axis in problem.unbounded if axis < m):
        states[:, axis] = 0.0
    points = jnp.asarray(np.concatenate([states, np.repeat(actions, len(states), 0)], axis=1))
    try:
        following = np.asarray(prior(points, points[:, :m], None))
    except ArgumentError:
        raise
    except FUNCTION_ERRORS as error:
        # JAX adds paragraphs of advice to its first sentence.
        reason = " ".join(str(error).split()).split(". ")[0].split(" The problem arose")[0][:200]
        expected = (
            f"a function of a state ({m},) and an action ({problem.actions.dimension},) with the "
            "next state, written with jax.numpy"
        )
        raise ArgumentError("prior_model or known", expected, reason) from error
    if not np.isfinite(following).all():
        got = following[~np.isfinite(following)][0]
        raise DataError("prior_model or known", "finite next states", got)
