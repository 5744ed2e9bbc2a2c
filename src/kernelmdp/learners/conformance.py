"""A check that a learner keeps the contract of learners."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import as_confidence
from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.domains import Box
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.learners.learner import Learner
from kernelmdp.mdp import MDP, Episode, Gaussian, MeanModel, Problem, play
from kernelmdp.mdp.policy import UniformPolicy
from kernelmdp.types import AnyArray

#: Number of episodes that a learner gets. Four are enough to see predictions improve.
EPISODES = 4
#: Number of points at which models are compared; more than one episode's, and still fast.
PROBES = 32


def check_learner(learner: Learner, *, problem: Problem | None = None) -> ConformanceReport:
    """Check on a small system that a learner keeps the contract of learners.

    Args:
        learner: The learner.
        problem: The problem to learn. The default has one state and one action coordinate.

    Returns:
        The checks that passed, and those that could not be made.

    Raises:
        ConformanceError: At the first check that fails.

    >>> import kernelmdp as km
    >>> print(check_learner(km.learners.FixedKernels()).name)
    fixed
    """
    checklist, keys = Checklist(), jax.random.split(jax.random.key(0), 4)
    problem = small_problem() if problem is None else problem
    episodes = _episodes(problem)
    points = jnp.asarray(np.concatenate([episode.points for episode in episodes])[:PROBES])
    before = learner.init(problem, key=keys[0])
    copies = [np.array(leaf) for leaf in _arrays(before)]
    after = before
    for episode in episodes:
        after = learner.update(after, episode, key=keys[1])
    unchanged = all(
        np.array_equal(old, new) for old, new in zip(copies, _arrays(before), strict=True)
    )
    checklist.require("update leaves the old state as it was", unchanged, "another")
    again = before
    for episode in episodes:
        again = learner.update(again, episode, key=keys[1])
    for name, model in (
        ("mean", lambda state: learner.mean(state)),
        ("sample", lambda state: learner.sample(state, key=keys[2])),
    ):
        mdp = model(after)
        checklist.require(f"{name} is an MDP", isinstance(mdp, MDP), type(mdp).__name__)
        first, second = (_predicted(model_mdp, points) for model_mdp in (mdp, model(again)))
        finite = bool(np.isfinite(first).all())
        checklist.require(f"{name} predicts finite rewards and next states", finite, f"{first[:2]}")
        same = np.array_equal(first, second)
        checklist.require(f"{name} is the same for the same data and key", same, "another")
    drawn = _predicted(learner.sample(before, key=keys[2]), points)
    differs = not np.array_equal(drawn, _predicted(learner.sample(before, key=keys[3]), points))
    checklist.require("another key gives another sample before any data", differs, "the same")
    truth = np.concatenate([episode.outcomes for episode in episodes])[:PROBES]
    errors = [
        float(np.mean((_predicted(learner.mean(state), points)[:, 1:] - truth) ** 2))
        for state in (before, after)
    ]
    promise = "data make the mean's next states better"
    checklist.require(
        promise, errors[1] < errors[0], f"squared errors {errors[0]:.3g}, {errors[1]:.3g}"
    )
    info = learner.info(after)
    promise = "info has the columns that the learner declares, all numbers"
    right = set(info) == set(learner.columns) and all(map(np.isscalar, info.values()))
    checklist.require(promise, right, f"{sorted(info)} for {sorted(learner.columns)}")
    promise = "its confidence sets have a centre and widths"
    try:
        confidence = as_confidence("practical").for_problem(problem)
        sets, family = learner.plausible(after, confidence, episode=EPISODES + 1)
    except UnknownPropertyError as error:
        checklist.skip(promise, str(error))
        return checklist.result(learner.name)
    widths = np.concatenate([np.asarray(width) for width in sets.half_widths(points)])
    good = isinstance(family, MDP) and bool((np.isfinite(widths) & (widths >= 0)).all())
    checklist.require(promise, good, f"widths {widths[:3]}")
    return checklist.result(learner.name)


def small_problem() -> Problem:
    """Make a problem with one state and one action coordinate and smooth kernels.

    Returns:
        The problem.
    """
    box, smooth = Box([-1.0], [1.0]), SquaredExponential(0.7)
    return Problem(
        name="small",
        states=box,
        actions=box,
        horizon=6,
        reward_kernel=smooth,
        transition_kernel=smooth @ Index(1),
        reward=None,
        reward_noise=Gaussian(0.05),
        transition_noise=Gaussian(0.05),
        offset="zero",
        norm_reward=2.0,
        norm_transition=2.0,
    )


def _episodes(problem: Problem) -> list[Episode]:
    truth = problem.mdp(
        MeanModel(lambda z: -(z[:, 0] ** 2), lambda z: 0.8 * z[:, :1] - 0.5 * z[:, 1:])
    )
    keys = jax.random.split(jax.random.key(1), EPISODES)
    start = jnp.full(problem.states.dimension, 0.5)
    return [
        play(truth, UniformPolicy(problem.actions, key), start, key=key).on_host() for key in keys
    ]


def _arrays(state: object) -> list[AnyArray]:
    leaves = jax.tree.leaves(state)
    return [leaf for leaf in leaves if eqx.is_inexact_array_like(leaf)]


def _predicted(mdp: MDP, points: jax.Array) -> np.ndarray:
    """Predicted rewards and next states, (n, 1 + m)."""
    prediction = mdp.model(points)
    return np.concatenate(
        [np.asarray(prediction.reward)[:, None], np.asarray(prediction.state)], axis=1
    )
