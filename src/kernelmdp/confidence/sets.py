"""Confidence sets and the family of MDPs they leave plausible (paper, Sections 3.1 and 4.1)."""

import abc
import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import rel_entr
from jaxtyping import Array, Float

from kernelmdp.confidence import shapes
from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import Coverage
from kernelmdp.confidence.joint_sets import family_of
from kernelmdp.confidence.nets import Net
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp import Posterior
from kernelmdp.gp.weight_engine import WeightEngine
from kernelmdp.mdp import MDP, Model, Prediction
from kernelmdp.mdp.model import FunctionFamily
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.numerics.tracing import as_float, is_traced

#: The reward range where nothing is known: all real numbers.
EVERYTHING = (-math.inf, math.inf)
#: Errors below this share of the numbers compared are rounding. 64-bit rounding errors of a
#: posterior mean stay below it.
ROUNDING = 1e-12


class PlausibleModel(Model):
    """A family of plausible models, as ``ConfidenceSets`` needs it.

    Attributes:
        beliefs: Posteriors of reward and transition.
        beta_reward: β_R, a scalar array.
        beta_transition: β_P, a scalar array.
    """

    beliefs: eqx.AbstractVar[Beliefs]
    beta_reward: eqx.AbstractVar[Any]
    beta_transition: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def within(self, reward_range: tuple[Any, Any]) -> "PlausibleModel":
        """Intersect with the models whose mean rewards lie in an interval.

        Args:
            reward_range: The interval.

        Returns:
            The family.
        """

    def whole_functions(self) -> FunctionFamily:
        raise UnknownPropertyError(
            f"{type(self).__name__} says what is plausible at each point, not for whole functions: "
            "planner 'joint' needs confidence 'valid', 'dual' or 'practical' in the setting 'rkhs'"
        )

    @property
    def contradicted(self) -> bool:
        """Whether the data contradict all models that the sets allow."""
        return False

    def numbers(self) -> dict[str, float]:
        """Report numbers of the sets.

        Returns:
            One number for each of the rule's ``columns``.
        """
        return {}


class Plausible(PlausibleModel):
    """All models whose means lie in the confidence sets: a centre and a width at each point z.

    Rewards satisfy |R(z) − μ_R([z])| ≤ β_R σ_R([z]) + slack_R. In units of the beliefs' scale,
    P(z) − μ_P([z]) lies in a ball, ellipsoid or box of β_P, Σ_P([z]) and slack_P. Without a net
    [z] = z. The slacks are 0 unless there is a net or a compiled kernel. Known parts, which are
    prior means and offset, are evaluated at z itself.

    Rewards are intersected with ``reward_range`` (note B24). Everything that changes from episode
    to episode is an array leaf, so a program compiled for one episode serves the next.

    Attributes:
        beliefs: Posteriors of reward and transition.
        beta_reward: β_R, a scalar array.
        beta_transition: β_P, a scalar array.
        slack_reward: Added to the reward's half-width.
        slack_transition: Added to the transition's radius, in scaled units.
        net: The net of the GP setting, or None.
        shape: "trace", "lmax", "ellipsoid" or "box".
        reward_range: An interval that contains every mean reward.
        joint: Whether β bounds the whole function in the norm of the RKHS, as in Lemma 7, and not
            only its value at each point.

    >>> import kernelmdp as km
    >>> plausible = km.GPUCRL("riverswim", seed=0).confidence_sets().plausible
    >>> centre, width = plausible.reward(jnp.array([[0.0, 0.0]]))
    >>> bool(width[0] > 0)
    True
    """

    beliefs: Beliefs
    beta_reward: Any
    beta_transition: Any
    slack_reward: Any
    slack_transition: Any
    net: Net | None
    shape: str = eqx.field(static=True)
    reward_range: tuple[Any, Any]
    joint: bool = eqx.field(static=True, default=False)

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        reward, reward_width = self.reward(points)
        state, std, at = self._state(points)
        posterior, dtype = self.beliefs.transition, points.dtype
        beta, slack = (
            jnp.asarray(number, dtype) for number in (self.beta_transition, self.slack_transition)
        )
        if self.shape == "box":
            sides = self.beliefs.scale.astype(dtype)[None, :] * (beta * std + slack)
            return Prediction(reward, state, reward_width, sides=sides)
        if self.shape == "ellipsoid":
            scaled = shapes.root(posterior, at, std, beta, slack)
            root = self.beliefs.scale.astype(dtype)[None, :, None] * scaled
            return Prediction(reward, state, reward_width, root=root)
        radius = beta * shapes.radius(posterior, at, std, self.shape) + slack
        return Prediction(reward, state, reward_width, radius=radius)

    def reward(self, points: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Compute the interval of plausible mean rewards.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Centres and half-widths, (n,) each. A known reward has half-width 0.
        """
        reward: Any = self.beliefs.reward
        if not reward.learned:
            return reward.predict(points)
        centre, std = _moments(reward, points, self._representative(points))
        width = self.beta_reward.astype(points.dtype) * std[:, 0]
        width = width + self.slack_reward.astype(points.dtype)
        return intersect(centre[:, 0], width, self.reward_range)

    def whole_functions(self) -> FunctionFamily:
        if not self.joint:
            return super().whole_functions()
        return family_of([(self.beliefs, self.beta_reward, self.beta_transition)])

    def within(self, reward_range: tuple[Any, Any]) -> "Plausible":
        return dataclasses.replace(self, reward_range=reward_range)

    def quadratic_width(self) -> Float[Array, " d"]:
        """Compute u with β_R σ_R(z) ≤ Σ_j u_j z_j² at every z, for quadratic kernels (note D8).

        σ_R(z) = ‖rootᵀφ(z)‖, and φ(z) = Tφ(√D z) for every diagonal D > 0, with T diagonal too.
        With ‖φ(y)‖ ≤ √κ ‖y‖² that is at most √κ ‖rootᵀT‖₂ zᵀDz. D is σ_R at the unit vectors.
        Actions that were never tried then do not widen the bound along well-known states.

        Returns:
            u, (d,). NaN where the features are not quadratic forms.
        """
        reward: Any = self.beliefs.reward
        if not reward.learned:
            d = self.beliefs.transition.dimension
            return jnp.zeros(d, self.beliefs.scale.dtype)
        engine = reward.engines[0]
        exact = isinstance(engine, WeightEngine) and reward.engine == "finite rank"
        if not exact or self.net is not None:
            return super().quadratic_width()
        assert isinstance(engine, WeightEngine)
        basis, root = engine.basis, engine.root
        unit = jnp.eye(reward.dimension, dtype=root.dtype)
        deviations = jnp.linalg.norm(basis(unit) @ root, axis=1)
        sizes = jnp.maximum(deviations, 1e-9 * jnp.max(deviations))
        ones = jnp.ones((1, reward.dimension), root.dtype)
        at_ones, at_sizes = basis(ones)[0], basis(jnp.sqrt(sizes)[None, :])[0]
        stretched = (at_ones / at_sizes)[:, None] * root
        largest = jnp.linalg.norm(stretched, ord=2)
        pairs = ((unit[:, None, :] + unit[None, :, :]) / 2).reshape(-1, reward.dimension)
        lengths = jnp.sum(pairs**2, axis=1)
        variance = jnp.max(jnp.sum(basis(pairs) ** 2, axis=1) / lengths**2)
        width = self.beta_reward.astype(root.dtype) * jnp.sqrt(variance) * largest * sizes
        quadratic = jnp.all(jnp.abs(basis(2 * ones)[0] - 4 * at_ones) <= 1e-9 * jnp.abs(at_ones))
        return jnp.where(quadratic, width, jnp.nan)

    def _state(self, points: Array) -> tuple[Array, Array, Array]:
        """Centres in state units, deviations in scaled units, and the representatives."""
        at = self._representative(points)
        mean, std = _moments(self.beliefs.transition, points, at)
        scale = self.beliefs.scale.astype(points.dtype)
        return self.beliefs.offset(points) + scale[None, :] * mean, std, at

    def _representative(self, points: Array) -> Array:
        return points if self.net is None else self.net(points)


class Containment(NamedTuple):
    """How far a model is from the centres of the sets, in units of the widths.

    Attributes:
        reward_ratio: Largest |error|/width of the reward over points; at most 1 means inside.
        transition_ratio: The same for the transition.

    >>> truth = Containment(reward_ratio=0.4, transition_ratio=1.2)
    >>> truth.reward, truth.transition
    (True, False)
    """

    reward_ratio: float
    transition_ratio: float

    @property
    def reward(self) -> bool:
        """Whether the mean reward lies in its set."""
        return self.reward_ratio <= 1

    @property
    def transition(self) -> bool:
        """Whether the mean transition lies in its set."""
        return self.transition_ratio <= 1


class ConfidenceSets(Module):
    """The confidence sets of an episode, made by ``Confidence.sets``.

    Attributes:
        plausible: All models inside the sets.
        coverage: Whether a theorem guarantees that the truth lies in both sets, or why not.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("riverswim", confidence="valid", seed=0)
    >>> sets = agent.confidence_sets()
    >>> sets.contains(agent.task.mdp.model, jnp.array([[0.0, 0.0], [5.0, 1.0]]))
    True
    """

    plausible: PlausibleModel
    coverage: Coverage = eqx.field(static=True)

    @property
    def beta_reward(self) -> Any:
        """β_R of this episode, 0 when the reward is known."""
        return self.plausible.beta_reward

    @property
    def beta_transition(self) -> Any:
        """β_P of this episode."""
        return self.plausible.beta_transition

    def half_widths(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Compute half-widths of the sets.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Half-widths of the reward, and of the next state in scaled units, (n,) each. For the
            next state it is the radius, the longest half axis, or the half diagonal of the box.
        """
        prediction = _prediction(self.plausible, points)
        assert prediction.reward_width is not None
        if prediction.radius is not None:
            return prediction.reward_width, prediction.radius
        if prediction.sides is not None:
            scale = self.plausible.beliefs.scale[None, :]
            return prediction.reward_width, jnp.linalg.norm(prediction.sides / scale, axis=1)
        axes, _ = _ellipsoid(self.plausible, prediction)
        return prediction.reward_width, jnp.max(axes, axis=1)

    def containment(self, model: Model, points: Float[Array, "n d"]) -> Containment:
        """Compare a model, such as the true one, with the sets.

        Errors are in scaled units. For the ellipsoid the ratio is ‖M⁻¹ error‖, the Mahalanobis
        distance divided by β. For the box it is the largest over coordinates.

        Args:
            model: The model.
            points: z = (s, a), (n, d).

        Returns:
            The largest ratios of error and width over the points.
        """
        return Containment(*map(as_float, _ratios(self.plausible, model(points), points)))

    def contains(self, model: Model, points: Float[Array, "n d"]) -> bool:
        """Whether both means of a model lie in their sets at all points.

        Args:
            model: The model.
            points: z = (s, a), (n, d).

        Returns:
            True if they do.
        """
        inside = self.containment(model, points)
        return inside.reward and inside.transition

    def family(self, mdp: MDP) -> MDP:
        """Replace the means of an MDP by all plausible ones, with the beliefs' scale as metric.

        ``lipschitz`` is converted to that metric (``MDP.lipschitz_in``).

        Args:
            mdp: Defines spaces, horizon and noise.

        Returns:
            The family of plausible MDPs.
        """
        scale = tuple(np.asarray(self.plausible.beliefs.scale, float).tolist())
        return replace_fields(
            mdp,
            model=self.plausible.within(mdp.reward_range),
            metric=scale,
            lipschitz=mdp.lipschitz_in(scale),
        )


def _moments(posterior: Posterior, points: Array, at: Array) -> tuple[Array, Array]:
    """Mean and deviation, (n, m): the learned part at representatives, the prior mean at z."""
    mean, std = posterior.predict(at)
    shape = (points.shape[0], posterior.outputs)
    mean, std = (a.astype(points.dtype).reshape(shape) for a in (mean, std))
    return (mean if at is points else mean - posterior.mean(at) + posterior.mean(points)), std


def intersect(centre: Array, width: Array, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """Intersect intervals with a fixed one.

    Args:
        centre: The centres of the intervals.
        width: Their half-widths.
        bounds: The ends of the fixed interval.

    Returns:
        Centres and half-widths of the intersections.
    """
    if not is_traced(bounds) and bounds == EVERYTHING:
        return centre, width
    low, high = (jnp.clip(end, *bounds) for end in (centre - width, centre + width))
    return (low + high) / 2, (high - low) / 2


@jit
def _prediction(plausible: PlausibleModel, points: Array) -> Prediction:
    return plausible(points)


def _ellipsoid(plausible: PlausibleModel, prediction: Prediction) -> tuple[Array, Array]:
    """Lengths and directions of the axes in scaled units, in which the root is symmetric."""
    assert prediction.root is not None
    return jnp.linalg.eigh(prediction.root / plausible.beliefs.scale[None, :, None])


@jit
def _ratios(plausible: PlausibleModel, truth: Prediction, points: Array) -> tuple[Array, Array]:
    prediction = plausible(points)
    assert prediction.reward_width is not None
    size = jnp.abs(prediction.reward)
    reward = _ratio(jnp.abs(truth.reward - prediction.reward), prediction.reward_width, size)
    scale = plausible.beliefs.scale[None, :]
    error = (truth.state - prediction.state) / scale
    if prediction.divergence is not None:
        # The true rows are distributions, and so are the frequencies.
        divergence = jnp.sum(rel_entr(prediction.state, truth.state), axis=1)
        # Before any data every row is plausible.
        divergence = jnp.where(jnp.isinf(prediction.divergence), 0.0, jnp.maximum(divergence, 0.0))
        widths, errors = jnp.sqrt(prediction.divergence)[:, None], jnp.sqrt(divergence)[:, None]
    elif prediction.radius is not None:
        widths = prediction.radius[:, None]
        errors = jnp.linalg.norm(error, axis=1)[:, None]
    elif prediction.sides is not None:
        widths, errors = prediction.sides / scale, jnp.abs(error)
    else:
        widths, axes = _ellipsoid(plausible, prediction)
        errors = jnp.abs(jnp.einsum("nij,ni->nj", axes, error))
    size = jnp.max(jnp.abs(prediction.state) / scale, axis=1, keepdims=True)
    ratios = _ratio(errors, widths, jnp.broadcast_to(size, errors.shape))
    if prediction.sides is not None:
        return jnp.max(reward), jnp.max(jnp.max(ratios, axis=1))
    return jnp.max(reward), jnp.max(jnp.linalg.norm(ratios, axis=1))


def _ratio(error: Array, width: Array, size: Array) -> Array:
    """error/width; 0 if the error is within rounding of 0, whatever the width."""
    is_rounding = error <= ROUNDING * (1 + size)
    return jnp.where(is_rounding, 0.0, error / jnp.maximum(width, 0.0))
