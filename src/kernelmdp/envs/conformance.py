"""What every environment promises, checked: for environments of ours and for those of others."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.conformance import Checklist, Conformance
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import KernelMDPError, UnknownPropertyError
from kernelmdp.kernels.conformance import check_kernel
from kernelmdp.mdp.policy import UniformPolicy

#: Points at which means are looked at, and episodes of random actions that are played.
POINTS, EPISODES = 400, 20
#: Standard errors that a mean of returns may be off by.
ERRORS = 6.0


def check_environment(environment: Environment) -> Conformance:
    """Check an environment against what is promised of environments.

    Raises ``ConformanceError`` at the first promise that is broken. Twenty episodes of random
    actions are played, and the optimal value is computed.

    >>> from kernelmdp.envs.bandits import bandit
    >>> from kernelmdp.domains import FiniteSet
    >>> from kernelmdp.kernels import SquaredExponential
    >>> arms = FiniteSet([[0.0], [1.0]])
    >>> check_environment(bandit(lambda a: a[:, 0], arms, SquaredExponential(0.5))).skipped
    ()
    """
    mdp, checklist = environment.mdp, Checklist()
    points = jnp.asarray(mdp.points.spread(POINTS))
    means = mdp.model(points)
    reward, after = np.asarray(means.reward), np.asarray(means.state)
    checklist.require(
        "means are finite, one reward and one next state a point",
        bool(np.isfinite(reward).all() and np.isfinite(after).all())
        and reward.shape == points.shape[:1]
        and after.shape == (len(points), mdp.mean_dimension),
        f"shapes {reward.shape} and {after.shape}, or numbers that are not finite",
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
        check_kernel(kernel, environment.seen.points)
        checklist.require(f"the {role} keeps what kernels promise", True, "")
    returns = _played(environment, checklist)
    _optimum(environment, returns, checklist)
    return checklist.result(environment.name)


def _played(environment: Environment, checklist: Checklist) -> np.ndarray:
    promise = "episodes stay inside the state space and depend on the key alone"
    mdp, returns = environment.mdp, []
    for number in range(EPISODES):
        start_key, play_key, action_key = jax.random.split(jax.random.key(number), 3)
        policy = UniformPolicy(mdp.actions, action_key)
        start = environment.starts(start_key)
        episode = environment.play(policy, start, key=play_key)
        try:
            mdp.states.require_inside("states", np.asarray(episode.states))
        except KernelMDPError as error:
            checklist.require(promise, False, str(error))
        if number == 0:
            again = environment.play(policy, start, key=play_key)
            same = np.array_equal(np.asarray(episode.rewards), np.asarray(again.rewards))
            checklist.require("the same key plays the same episode", same, "other rewards")
        returns.append(episode.total)
    checklist.require(promise, True, "")
    return np.array(returns)


def _optimum(environment: Environment, returns: np.ndarray, checklist: Checklist) -> None:
    promise = "the optimal value has an error, and random actions do not beat it"
    if callable(environment.start):
        return checklist.skip(promise, "there is no fixed start")
    try:
        best = environment.optimal_value()
    except UnknownPropertyError as error:
        return checklist.skip(promise, str(error))
    spread = ERRORS * float(returns.std()) / np.sqrt(EPISODES)
    kept = np.isfinite(best.error) and returns.mean() <= best.value + best.error + spread + 1e-9
    return checklist.require(
        promise, bool(kept), f"{best.value:.4g} ± {best.error:.2g}, random {returns.mean():.4g}"
    )
