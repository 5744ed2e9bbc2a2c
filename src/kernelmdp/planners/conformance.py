"""Check that a planner keeps the promises of its interface. It also works for your own planners."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.domains import Box
from kernelmdp.errors import KernelMDPError
from kernelmdp.mdp import MDP, Gaussian, MeanModel, monte_carlo_value
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.policy import Policy, UniformPolicy
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner

#: Episodes by which the values of policies are estimated. More of them tell closer policies apart
#: and take longer.
EPISODES = 200


class WidenedModel(Model):
    """A family of models: the means of a model, with one width for reward and next state.

    Attributes:
        model: The model of the means.
        width: The half-width of the reward and the radius of the next state.
    """

    model: MeanModel
    width: float

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        means, width = self.model(points), jnp.full(points.shape[0], self.width)
        return means._replace(reward_width=width, radius=width)


def check_planner(planner: Planner) -> ConformanceReport:
    """Check that a planner keeps its promises, on a small problem with one coordinate.

    The first promise that is broken raises ``ConformanceError``.

    Args:
        planner: The planner to check.

    Returns:
        The promises that it keeps, and those that could not be checked.

    >>> from kernelmdp.planners import Planner
    >>> class Lazy(Planner):
    ...     def plan(self, mdp, *, start, key):
    ...         return "some other day"
    >>> try:
    ...     check_planner(Lazy())
    ... except KernelMDPError as error:
    ...     print(error)
    promised: a plan is a Plan; found: str
    """
    checklist, key = Checklist(), jax.random.key(0)
    mdp = _small_mdp(MeanModel(_reward, _transition))
    points = planner.query_points(mdp)
    checklist.require(
        "query_points(spaces) is None, or all points z at which the plan evaluates the model",
        points is None or (np.ndim(points) == 2 and np.shape(points)[1] == 2),
        f"shape {np.shape(points) if points is not None else None}",
    )
    start = [0.8]
    plan = planner.plan(mdp, start=start, key=key)
    checklist.require("a plan is a Plan", isinstance(plan, Plan), type(plan).__name__)
    checklist.require(
        "its value is one number", isinstance(plan.value(start), float), "something else"
    )
    actions, repeated_actions = (
        _actions(p.policy) for p in (plan, planner.plan(mdp, start=start, key=key))
    )
    inside = actions.shape == (3, 9, 1) and bool((np.abs(actions) <= 1 + 1e-9).all())
    checklist.require("actions are inside the action space", inside, f"{actions.ravel()[:3]} …")
    checklist.require(
        "the same key gives the same plan", np.array_equal(actions, repeated_actions), "another"
    )
    planned, random = (
        monte_carlo_value(mdp, policy, start, episodes=EPISODES, key=key)
        for policy in (plan.policy, UniformPolicy(mdp.actions, key))
    )
    checklist.require(
        "its policy earns more than random actions",
        planned.value > random.value,
        f"{planned.value:.3g} and {random.value:.3g}",
    )
    promise = "the planned value of a family is at least that of its centre"
    try:
        optimistic = planner.plan(
            _small_mdp(WidenedModel(MeanModel(_reward, _transition), 0.1)), start=start, key=key
        ).value(start)
    except KernelMDPError as error:
        checklist.skip(promise, f"it plans for no family ({error})")
        return checklist.result(type(planner).__name__)
    checklist.require(promise, not optimistic < plan.value(start) - 1e-9, f"{optimistic:.3g}")
    return checklist.result(type(planner).__name__)


def _reward(z: Float[Array, "n 2"]) -> Float[Array, " n"]:
    return -(z[:, 0] ** 2) - 0.1 * z[:, 1] ** 2


def _transition(z: Float[Array, "n 2"]) -> Float[Array, "n 1"]:
    return 0.9 * z[:, :1] + 0.3 * z[:, 1:]


def _small_mdp(model: Model) -> MDP:
    box = Box([-1.0], [1.0])
    noise = Gaussian(0.05)
    return MDP(
        model,
        states=box,
        actions=box,
        horizon=3,
        reward_noise=noise,
        transition_noise=noise,
        reward_range=(-1.1, 0.0),
    )


def _actions(policy: Policy) -> np.ndarray:
    """Actions at 9 states in each of the 3 periods, (3, 9, 1)."""
    states = jnp.linspace(-1, 1, 9)[:, None]
    return np.array([policy.actions(states, jnp.asarray(period)) for period in range(3)])
