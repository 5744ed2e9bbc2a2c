"""Check an environment against the promises that every environment must keep."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import KernelMDPError, UnknownPropertyError
from kernelmdp.kernels.conformance import check_kernel
from kernelmdp.mdp.policy import UniformPolicy

#: Points at which means are checked. More of them make the check slower.
POINTS = 400
#: Episodes of random actions that are played. More of them make the check slower.
EPISODES = 20
#: Standard errors by which the mean return of random actions may exceed the optimal value. Chance
#: alone hardly ever reaches this many.
STANDARD_ERRORS = 6.0


def check_environment(environment: Environment) -> ConformanceReport:
    """Check an environment against all promises.

    Twenty episodes of random actions are played, and the optimal value is computed.

    Args:
        environment: The environment.

    Returns:
        The promises that it keeps, and those that could not be checked.

    Raises:
        ConformanceError: If the environment breaks a promise.

    >>> from kernelmdp.envs.bandits import bandit
    >>> from kernelmdp.domains import FiniteSet
    >>> from kernelmdp.kernels import SquaredExponential
    >>> arms = FiniteSet([[0.0], [1.0]])
    >>> check_environment(bandit(lambda a: a[:, 0], arms, SquaredExponential(0.5))).skipped
    ()
    """
    mdp, checklist = environment.mdp, Checklist()
    points = jnp.asarray(mdp.points.spread_points(POINTS))
    means = mdp.model(points)
    reward, next_state = np.asarray(means.reward), np.asarray(means.state)
    checklist.require(
        "means are finite, one reward and one next state a point",
        bool(np.isfinite(reward).all() and np.isfinite(next_state).all())
        and reward.shape == points.shape[:1]
        and next_state.shape == (len(points), mdp.mean_dimension),
        f"shapes {reward.shape} and {next_state.shape}, or numbers that are not finite",
    )
    low, high = mdp.reward_range
    checklist.require(
        "every mean reward is inside reward_range",
        bool(low - 1e-9 <= reward.min() and reward.max() <= high + 1e-9),
        f"{reward.min():.4g} to {reward.max():.4g} in [{low:g}, {high:g}]",
    )
    for role, kernel in (
        ("reward_kernel", environment.problem.reward_kernel),
        *(
            ("transition_kernel", kernel)
            for kernel in environment.problem.transition_kernel.parts()
        ),
    ):
        check_kernel(kernel, environment.agent_mdp.points)
        checklist.require(f"the {role} keeps what kernels promise", True, "")
    returns = _check_episodes(environment, checklist)
    _check_optimum(environment, returns, checklist)
    return checklist.result(environment.name)


def _check_episodes(environment: Environment, checklist: Checklist) -> np.ndarray:
    """Play episodes of random actions and return their returns."""
    promise = "episodes stay inside the state space and depend on the key alone"
    mdp, returns = environment.mdp, []
    for number in range(EPISODES):
        start_key, play_key, action_key = jax.random.split(jax.random.key(number), 3)
        policy = UniformPolicy(mdp.actions, action_key)
        start = environment.draw_start(start_key)
        episode = environment.play(policy, start, key=play_key)
        try:
            mdp.states.require_inside("states", np.asarray(episode.states))
        except KernelMDPError as error:
            checklist.require(promise, False, str(error))
        if number == 0:
            repeated = environment.play(policy, start, key=play_key)
            same = np.array_equal(np.asarray(episode.rewards), np.asarray(repeated.rewards))
            checklist.require("the same key plays the same episode", same, "other rewards")
        returns.append(episode.total)
    checklist.require(promise, True, "")
    return np.array(returns)


def _check_optimum(environment: Environment, returns: np.ndarray, checklist: Checklist) -> None:
    promise = "the optimal value has an error, and random actions do not beat it"
    if callable(environment.start):
        return checklist.skip(promise, "there is no fixed start")
    try:
        best = environment.optimal_value()
    except UnknownPropertyError as error:
        return checklist.skip(promise, str(error))
    margin = STANDARD_ERRORS * float(returns.std()) / np.sqrt(EPISODES)
    satisfied = (
        np.isfinite(best.error) and returns.mean() <= best.value + best.error + margin + 1e-9
    )
    return checklist.require(
        promise,
        bool(satisfied),
        f"{best.value:.4g} ± {best.error:.2g}, random {returns.mean():.4g}",
    )
