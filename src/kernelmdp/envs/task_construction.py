"""Make tasks from Gymnasium environments."""

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from kernelmdp.domains import Box, Domain
from kernelmdp.envs.action_spaces import action_domain
from kernelmdp.envs.angles import AnglePairs, cos_sin_pairs
from kernelmdp.envs.environment_calls import (
    require_environment,
    reset_environment,
    time_limit,
)
from kernelmdp.envs.flat_spaces import flat_space
from kernelmdp.envs.gymnasium_task import GymnasiumTask, inner_environment
from kernelmdp.envs.observation_spaces import state_domain
from kernelmdp.envs.observed_clock import ObservedClock
from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.keywords import suggests_keywords

#: Resets whose first observations are searched for cosines and sines. Too few of them may show
#: pairs that are on the unit circle by chance.
RESETS = 8
#: Packages that register the ids of a namespace with Gymnasium when they are imported.
NAMESPACE_PACKAGES = {"dm_control": "shimmy"}


@suggests_keywords
def from_gymnasium(
    env_or_id: Any,
    *,
    horizon: int | None = None,
    states: Box | None = None,
    angles: Sequence[int | str] = (),
    known_reward: Callable[..., Any] | None = None,
    action_repeat: int = 1,
    clock: bool = False,
    cost: bool = False,
) -> GymnasiumTask:
    """Make a task from a Gymnasium environment.

    Observations and actions may be made of Box, Discrete, MultiDiscrete, MultiBinary, Dict and
    Tuple. They become vectors, whose coordinates have names (``GymnasiumTask.coordinate_names``).
    A Discrete observation stays the number of a row in a table.

    If ``states`` is None, the first observations of a few resets are searched for cosines and
    sines. Two coordinates that are a cosine and a sine in all of them become one angle.

    Args:
        env_or_id: The environment, or its id. Ids of ``dm_control`` need the package ``shimmy``.
        horizon: The number of periods, H. None means the environment's time limit divided by
            ``action_repeat``, rounded up.
        states: The state space. None means the observation space. Axes without bounds then get
            provisional ones (``GymnasiumTask.unbounded``). An observation beyond declared bounds is
            clipped, with a warning. Beyond bounds that you give, it is an error.
        angles: Coordinates that are angles in radians, which wrap from π to −π. Their numbers or
            their names.
        known_reward: The mean reward of a period as a function of points (n, d) -> (n,).
            Environments of this library bring theirs, if ``action_repeat`` is 1.
        action_repeat: The number of steps of the environment for which each action is held. Their
            rewards are summed, and a period is one decision.
        clock: Whether the number of steps since the start is the last coordinate of the state. Use
            it where the reward or the motion depends on the time, as where set points follow a
            schedule. ``GymnasiumTask.env`` then observes it too (``ObservedClock``).
        cost: Whether the state has one more coordinate, ``cost``, with what the last step was
            measured to cost: ``info["cost"]``, or the third of six values that ``step`` returns.
            Agents with a constraint on ``cost`` add it by themselves. ``GymnasiumTask.env`` then
            observes it too (``ObservedCost``). You need not pass it where you pass observations.

    Returns:
        The task.

    Raises:
        ArgumentError: If there is no such environment, its spaces cannot be written as vectors, or
            the horizon is unknown or too long. Also for the clock of a table, or of an environment
            of this library, whose rewards and motions do not depend on the time. The same for the
            cost.

    >>> from_gymnasium("CartPole-v1").unbounded
    (1, 3)
    >>> from_gymnasium("Pendulum-v1", action_repeat=4).horizon
    50
    >>> from_gymnasium("MountainCar-v0", clock=True).coordinate_names
    ('observation[0]', 'observation[1]', 'clock')
    """
    env = make_gymnasium(env_or_id) if isinstance(env_or_id, str) else env_or_id
    require_environment(env)
    repeat = integer("action_repeat", action_repeat, least=1)
    periods, inner = _periods(env, horizon, repeat), inner_environment(env)
    if clock:
        if inner is not None or isinstance(env.observation_space, gymnasium.spaces.Discrete):
            raise ArgumentError(
                "clock", "False for a table or an environment of this library", True
            )
        env = ObservedClock(env, periods * repeat)
    known_states: Domain | None = states
    if inner is not None and states is None and inner.states.bounded and not inner.states.finite:
        known_states = inner.states
    domain, unbounded = state_domain(env.observation_space, known_states, angles)
    angle_pairs = AnglePairs()
    if known_states is None and not domain.finite:
        angle_pairs = _find_angle_pairs(env, domain, unbounded)
        axes = angle_pairs.observation_axes(domain.dimension)
        domain = angle_pairs.box(domain)
        unbounded = tuple(
            n for n, axis in enumerate(axes) if axis in unbounded and n not in domain.periodic
        )
    if inner is None:
        actions = action_domain(env.action_space, numbered=domain.finite)
    else:
        actions = inner.environment.mdp.actions
    if inner is not None and known_reward is None and repeat == 1:
        known_reward = inner.known_reward
    task = GymnasiumTask(
        env=env,
        states=domain,
        angle_pairs=angle_pairs,
        actions=actions,
        horizon=periods,
        known_reward=known_reward,
        unbounded=unbounded,
        action_repeat=repeat,
        given_bounds=states is not None,
        clock=clock,
    )
    return task.with_cost() if cost else task


def make_gymnasium(identifier: str) -> gymnasium.Env[Any, Any]:
    """Make a Gymnasium environment. A package that registers its namespace is imported before.

    Args:
        identifier: The id.

    Returns:
        The environment.

    >>> make_gymnasium("CartPole-v1").spec.id
    'CartPole-v1'
    """
    import_namespace(identifier)
    return gymnasium.make(identifier)


def import_namespace(identifier: str) -> None:
    """Import the package that registers an id: that of its namespace, or that before a colon.

    Args:
        identifier: The id.

    Raises:
        ArgumentError: If the package, or one that it needs, is not installed.
    """
    module, colon, _ = identifier.partition(":")
    package = module if colon else NAMESPACE_PACKAGES.get(identifier.partition("/")[0])
    if package is None:
        return
    try:
        importlib.import_module(package)
    except ImportError as error:
        expected = f"the package {package} to be installed, for {identifier}"
        raise ArgumentError("env_or_id", expected, " ".join(str(error).split())) from None


def _periods(env: gymnasium.Env[Any, Any], horizon: int | None, repeat: int) -> int:
    """The horizon, in decisions: that of the user, or the time limit of the environment."""
    inner = inner_environment(env)
    if inner is not None:
        limit: int | None = inner.environment.mdp.horizon
    else:
        limit = time_limit(env)
    if horizon is None and limit is None:
        expected = (
            "a whole number, as the environment has no time limit (horizon=40, --set horizon=40 on "
            "the command line, or the wrapper TimeLimit)"
        )
        raise ArgumentError("horizon", expected, None)
    most = math.inf if limit is None else math.ceil(limit / repeat)
    periods = integer("horizon", most if horizon is None else horizon, least=1)
    if periods > most:
        decisions = "" if repeat == 1 else f": {most} actions, each for {repeat} of them"
        expected = f"at most the time limit of {limit} steps{decisions}"
        raise ArgumentError("horizon", expected, periods)
    return periods


def _find_angle_pairs(
    env: gymnasium.Env[Any, Any], box: Domain, unbounded: Sequence[int]
) -> AnglePairs:
    """Find cosines and sines in first observations. No step is taken."""
    low, high = box.bounds
    possible = (np.abs(low) <= 1.01) & (np.abs(high) <= 1.01)
    possible[list(unbounded)] = True
    if np.count_nonzero(possible) < 2:
        return AnglePairs()
    flat = flat_space(env.observation_space, "observation")
    first = []
    for seed in range(RESETS):
        observation = reset_environment(env, seed=seed)
        first.append(flat.to_vector(observation, "at the start"))
    return AnglePairs(tuple(cos_sin_pairs(np.stack(first))))
