"""Small problems that the theorems cover, with truths to draw: one problem, many truths.

Every truth of a toy has the same shapes and the same constants, so that one compiled program
serves all runs. Norms and noise are known exactly; L is that of the truth, and planners on boxes
keep to it. In tables L is that of the plan itself, which is known when the episode starts.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp import theory
from kernelmdp.envs.gp_prior import gp_prior
from kernelmdp.envs.noise_lipschitz import with_lipschitz
from kernelmdp.envs.rkhs import KernelExpansion
from kernelmdp.envs.tabular import LookupTable, prior_variance, table_kernels
from kernelmdp.envs.unit_box import StackedFunctions
from kernelmdp.kernels.base import gram
from kernelmdp.mdp import Categorical, Gaussian, MeanModel
from kernelmdp.planners import GridPlanner

DELTA = 0.1
VALID, PLANNER = km.Confidence(delta=DELTA), GridPlanner(41, 9)


@dataclasses.dataclass(frozen=True)
class Toy:
    """A problem, how its truths are drawn, and what a theorem says of it."""

    problem: km.Problem
    #: From a seed the true means and their L; NaN where L is taken from the plans.
    truth: Callable[[int], tuple[MeanModel, float]]
    start: tuple[float, ...]
    episodes: int
    #: A bound of |R̄|, to which plans are clipped.
    reward_bound: float
    #: From L the theorem's bound of the regret; None where no plan is optimal.
    bound: Callable[[float], theory.Bound] | None
    confidence: km.Confidence = VALID
    planner: GridPlanner = PLANNER


def rkhs() -> Toy:
    """The environment ``rkhs`` with H = 3: SE kernels of lengthscale 0.5, noise 0.1."""
    norms = (1.5, 1.25)
    environment = functools.partial(km.make, "rkhs", horizon=3)

    def truth(seed: int) -> tuple[MeanModel, float]:
        drawn = environment(seed=seed)
        return drawn.mdp.model, drawn.problem.lipschitz

    return _bounded(environment(seed=0), norms, truth, episodes=30)


def smooth() -> Toy:
    """So smooth and short that bounds say something: lengthscale 2, H = 2, noise 0.2, norms 1."""
    environment = km.make("rkhs", seed=0, horizon=2, noise=0.2)
    kernel = km.kernels.SquaredExponential(2.0)
    kernels = {"reward_kernel": kernel, "transition_kernel": kernel @ km.kernels.Index(1)}
    problem = dataclasses.replace(environment.problem, **kernels)
    changed = dataclasses.replace(environment, problem=problem)
    points = environment.mdp.points
    centres = jnp.asarray(points.spread_points(40))
    matrix = np.asarray(gram(kernel, centres, centres))

    def expansion(rng: np.random.Generator) -> KernelExpansion:
        weights = rng.normal(size=len(matrix))
        weights /= math.sqrt(weights @ matrix @ weights)
        return KernelExpansion(kernel, centres, jnp.asarray(weights))

    def truth(seed: int) -> tuple[MeanModel, float]:
        rng = np.random.default_rng(seed)
        model = MeanModel(expansion(rng), StackedFunctions((expansion(rng),)))
        mdp = dataclasses.replace(environment.mdp, model=model, reward_range=(-1.0, 1.0))
        return model, float(
            with_lipschitz(mdp, state_points=(121,), action_points=(9,))[0].lipschitz
        )

    return _bounded(changed, (1.0, 1.0), truth, episodes=80)


def table() -> Toy:
    """Tables of 3 states and 2 actions, H = 3: Dirichlet(1) rows, rewards uniform on [0, 1]."""
    S, A, H = 3, 2, 3
    states, actions = km.FiniteSet.range(S), km.FiniteSet.range(A)
    reward_kernel, transition_kernel = table_kernels(S, A)
    # What holds for every such table: rewards at most 1, rows at most √(1 − 1/S) from uniform.
    norms = math.sqrt(S * A), math.sqrt(S * A * (1 - 1 / S) / prior_variance(S))
    problem = km.Problem(
        name="table",
        states=states,
        actions=actions,
        horizon=H,
        reward_kernel=reward_kernel,
        transition_kernel=transition_kernel,
        reward=None,
        reward_noise=Gaussian(0.1),
        # A variance to regress with, the mean of p(1 − p) over all tables; any would be valid.
        transition_noise=Categorical(states, variance=1 / (S + 1) * (1 - 1 / S)),
        offset="uniform",
        norm_reward=norms[0],
        norm_transition=norms[1],
    )

    def truth(seed: int) -> tuple[MeanModel, float]:
        rng = np.random.default_rng(seed)
        P, R = rng.dirichlet(np.ones(S), (S, A)), rng.uniform(size=(S, A))
        return MeanModel(LookupTable(jnp.asarray(R)), LookupTable(jnp.asarray(P))), math.nan

    # |V − mean V| ≤ √S/2 · span, and plans are clipped to ±B_R a period.
    steepest = math.sqrt(S) * norms[0] * (H - 1)
    bound = _theorem1(problem, norms, 60, steepest)
    return Toy(problem, truth, (0.0,), 60, norms[0], bound)


def gp() -> Toy:
    """Draws of the prior: linear means of kernels of rank 2 on the unit box, H = 3, noise 0.1."""
    kernel = km.kernel("0.3*linear")
    draw = functools.partial(gp_prior, horizon=3, reward_kernel=kernel, transition_kernel=kernel)
    environment = draw(0)
    points, noise = environment.mdp.points, 0.1
    suprema = theory.prior_suprema(kernel, environment.problem.transition_kernel, points)
    level = suprema.reward_level(DELTA, "improved")
    problem = _problem(environment)
    top = math.sqrt(kernel.variance_bound(points))
    # Plans are clipped to sup|R̄| ≤ C, which the theorem counts on.
    problem = dataclasses.replace(problem, norm_reward=level / top)

    def truth(seed: int) -> tuple[MeanModel, float]:
        drawn = draw(seed)
        return drawn.mdp.model, drawn.problem.lipschitz

    def bound(lipschitz: float) -> theory.Bound:
        return theory.theorem3(
            horizon=3,
            episodes=30,
            reward_noise=noise,
            transition_noise=noise,
            lipschitz=lipschitz,
            delta=DELTA,
            suprema=suprema,
            reward_kernel=kernel,
            transition_kernel=environment.problem.transition_kernel,
            domain=points,
        )

    settings = km.Confidence(setting="gp", delta=DELTA)
    return Toy(problem, truth, (0.0,), 30, level, bound, settings)


def finite_gp() -> Toy:
    """Draws of the prior on 7 states x 3 actions; next states are the nearest to P̄ + ε.

    Grid planners do not know this noise in a finite set, so plans are not optimistic and only
    coverage, which needs no plan, is looked at.
    """
    kernel = km.kernel("0.3*linear")
    states = km.FiniteSet(np.linspace(-1, 1, 7)[:, None])
    actions = km.FiniteSet(np.linspace(-1, 1, 3)[:, None])
    problem = km.Problem(
        name="finite",
        states=states,
        actions=actions,
        horizon=3,
        reward_kernel=kernel,
        transition_kernel=kernel @ km.kernels.Index(1),
        reward=None,
        reward_noise=Gaussian(0.1),
        transition_noise=Gaussian(0.1),
        lipschitz=1.0,  # for the bonus of plans; coverage needs none
        drawn_from_prior=True,
    )
    settings = km.Confidence(setting="gp", delta=DELTA)
    prior = km.gp.posterior(kernel, noise_variance=1.0, domain=problem.points)

    def truth(seed: int) -> tuple[MeanModel, float]:
        reward, transition = (
            prior.sample(key=key) for key in jax.random.split(jax.random.key(seed))
        )
        return MeanModel(reward, StackedFunctions((transition,))), math.nan

    planner = GridPlanner(optimism="bonus")
    return Toy(problem, truth, (0.0,), 30, math.inf, None, settings, planner)


#: By name: the setting of its sets, and how it is made.
TOYS: dict[str, tuple[str, Callable[[], Toy]]] = {
    "rkhs": ("rkhs", rkhs),
    "smooth": ("rkhs", smooth),
    "table": ("rkhs", table),
    "gp": ("gp", gp),
    "finite-gp": ("gp", finite_gp),
}


def _problem(environment: km.Environment, **words: Any) -> km.Problem:
    return dataclasses.replace(km.GPUCRL(environment, confidence="valid").problem, **words)


def _bounded(
    environment: km.Environment,
    norms: tuple[float, float],
    truth: Callable[[int], tuple[MeanModel, float]],
    *,
    episodes: int,
) -> Toy:
    # Truths have these norms up to rounding.
    words = {"norm_reward": norms[0] * (1 + 1e-9), "norm_transition": norms[1] * (1 + 1e-9)}
    problem = _problem(environment, **words)
    bound = _theorem1(problem, norms, episodes)
    return Toy(problem, truth, (0.0,), episodes, norms[0], bound)


def _theorem1(
    problem: km.Problem, norms: tuple[float, float], episodes: int, steepest: float | None = None
) -> Callable[[float], theory.Bound]:
    def bound(lipschitz: float) -> theory.Bound:
        reward, transition = problem.noise_variances
        outputs = problem.mean_dimension
        return theory.theorem1(
            horizon=problem.horizon,
            episodes=episodes,
            norm_reward=norms[0],
            norm_transition=norms[1],
            reward_noise=float(problem.reward_noise.sub_gaussian_proxies(1)[0]),
            transition_noise=float(problem.transition_noise.sub_gaussian_proxies(outputs).max()),
            lipschitz=lipschitz if steepest is None else steepest,
            delta=DELTA,
            regulariser_reward=reward,
            regulariser_transition=transition,
            reward_kernel=problem.reward_kernel,
            transition_kernel=problem.transition_kernel,
            domain=problem.points,
        )

    return bound
