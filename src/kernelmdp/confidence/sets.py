"""Confidence sets and the family of MDPs they leave plausible (paper, Sections 3.1 and 4.1)."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.confidence import shapes
from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import Coverage
from kernelmdp.confidence.nets import Net
from kernelmdp.gp import Posterior
from kernelmdp.gp.weight_engine import WeightEngine
from kernelmdp.mdp import MDP, Model, Prediction
from kernelmdp.numerics.modules import Module, changed, jit

EVERYTHING = (-math.inf, math.inf)
#: Errors below this, relative to the numbers compared, are rounding and not a miss.
ROUNDING = 1e-12


class Plausible(Model):
    """Every MDP whose means lie in the confidence sets, seen as a centre and a width at each z.

    |R(z) − μ_R([z])| ≤ β_R σ_R([z]) + slack_R, and in units of the beliefs' scale
    P(z) − μ_P([z]) in a ball, ellipsoid or box of β_P, Σ_P([z]) and slack_P. Without a net
    [z] = z; the slacks are 0 unless a net, or a compiled kernel, asks for them. What is known,
    prior means and offset, is taken at z itself.

    Rewards are intersected with ``reward_range`` (math B24). Everything that changes from episode
    to episode is an array leaf: a program compiled for one episode serves the next.

    >>> import kernelmdp as km
    >>> plausible = km.GPUCRL("riverswim", seed=0).confidence_sets().plausible
    >>> centre, width = plausible.reward(jnp.array([[0.0, 0.0]]))
    >>> bool(width[0] > 0)
    True
    """

    beliefs: Beliefs
    beta_reward: Any  # scalar arrays: nothing retraces when they change
    beta_transition: Any
    slack_reward: Any
    slack_transition: Any
    net: Net | None
    shape: str = eqx.field(static=True)
    reward_range: tuple[float, float] = eqx.field(static=True)

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
        """Centre and half-width of the plausible mean rewards; the latter 0 when it is known."""
        known: Any = self.beliefs.reward
        if not known.learned:
            return known.predict(points)
        centre, std = _moments(known, points, self._representative(points))
        width = self.beta_reward.astype(points.dtype) * std[:, 0]
        width = width + self.slack_reward.astype(points.dtype)
        return _intersect(centre[:, 0], width, self.reward_range)

    def quadratic_width(self) -> Float[Array, " d"]:
        """u with β_R σ_R(z) ≤ Σ_j u_j z_j² at every z, for kernels of quadratic forms (math D8).

        σ_R(z) = ‖rootᵀφ(z)‖, and φ(z) = Tφ(√D z) for every diagonal D > 0, T diagonal too; with
        ‖φ(y)‖ ≤ √κ ‖y‖² that is at most √κ ‖rootᵀT‖₂ zᵀDz. D is taken as σ_R at unit vectors: what
        is known of states is not spoilt by actions that were never tried. NaN when features are
        no quadratic forms.
        """
        known: Any = self.beliefs.reward
        if not known.learned:
            d = self.beliefs.transition.dimension
            return jnp.zeros(d, self.beliefs.scale.dtype)
        engine = known.engines[0]
        exact = isinstance(engine, WeightEngine) and known.engine == "finite rank"
        if not exact or self.net is not None:
            return super().quadratic_width()
        assert isinstance(engine, WeightEngine)
        basis, root = engine.basis, engine.root
        unit = jnp.eye(known.dimension, dtype=root.dtype)
        own = jnp.linalg.norm(basis(unit) @ root, axis=1)
        sizes = jnp.maximum(own, 1e-9 * jnp.max(own))
        ones = jnp.ones((1, known.dimension), root.dtype)
        at_ones, at_sizes = basis(ones)[0], basis(jnp.sqrt(sizes)[None, :])[0]
        stretched = (at_ones / at_sizes)[:, None] * root
        largest = jnp.linalg.norm(stretched, ord=2)
        pairs = ((unit[:, None, :] + unit[None, :, :]) / 2).reshape(-1, known.dimension)
        lengths = jnp.sum(pairs**2, axis=1)
        variance = jnp.max(jnp.sum(basis(pairs) ** 2, axis=1) / lengths**2)
        width = self.beta_reward.astype(root.dtype) * jnp.sqrt(variance) * largest * sizes
        quadratic = jnp.all(jnp.abs(basis(2 * ones)[0] - 4 * at_ones) <= 1e-9 * jnp.abs(at_ones))
        return jnp.where(quadratic, width, jnp.nan)

    def _state(self, points: Array) -> tuple[Array, Array, Array]:
        """Centres in state units, deviations in scaled ones, and where they were evaluated."""
        at = self._representative(points)
        mean, std = _moments(self.beliefs.transition, points, at)
        scale = self.beliefs.scale.astype(points.dtype)
        return self.beliefs.offset(points) + scale[None, :] * mean, std, at

    def _representative(self, points: Array) -> Array:
        return points if self.net is None else self.net(points)


class Containment(NamedTuple):
    """Largest |error|/width over points, for reward and transition; at most 1 means inside.

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
    """What GP-UCRL knows before an episode; made by ``Confidence.sets``.

    ``coverage`` says whether the truth lies in both sets with the promised probability, and why
    not.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("riverswim", confidence="valid", seed=0)
    >>> sets = agent.confidence_sets()
    >>> sets.contains(agent.task.mdp.model, jnp.array([[0.0, 0.0], [5.0, 1.0]]))
    True
    """

    plausible: Plausible
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
        """Of the reward, and of the next state in scaled units: the radius, or the longest half
        axis or side."""
        prediction = _prediction(self.plausible, points)
        assert prediction.reward_width is not None
        if prediction.radius is not None:
            return prediction.reward_width, prediction.radius
        if prediction.sides is not None:
            scale = self.plausible.beliefs.scale[None, :]
            return prediction.reward_width, jnp.max(prediction.sides / scale, axis=1)
        axes, _ = _ellipsoid(self.plausible, prediction)
        return prediction.reward_width, jnp.max(axes, axis=1)

    def containment(self, model: Model, points: Float[Array, "n d"]) -> Containment:
        """How far a model, such as the true one, is from the centres, in units of the widths.

        In scaled units; for the ellipsoid ‖M⁻¹ error‖, the Mahalanobis distance over β; for the
        box the largest of its coordinates.
        """
        return Containment(*map(float, _ratios(self.plausible, model(points), points)))

    def contains(self, model: Model, points: Float[Array, "n d"]) -> bool:
        """Whether both means of a model lie in their sets at all the points."""
        inside = self.containment(model, points)
        return inside.reward and inside.transition

    def family(self, mdp: MDP) -> MDP:
        """The MDP with its means replaced by all plausible ones, measured in the beliefs' scale.

        ``lipschitz`` is carried over to that metric: |p − p'| in the old one is at most
        max_j scale_j/metric_j times that in the new one.
        """
        scale = tuple(float(s) for s in self.plausible.beliefs.scale)
        stretch = max(new / old for new, old in zip(scale, mdp.metric, strict=True))
        return changed(
            mdp,
            model=dataclasses.replace(self.plausible, reward_range=mdp.reward_range),
            metric=scale,
            lipschitz=jnp.asarray(mdp.lipschitz * stretch, float),
        )


def _moments(posterior: Posterior, points: Array, at: Array) -> tuple[Array, Array]:
    """Mean and deviation, (n, m): what was learned at the representatives, prior means at z."""
    mean, std = posterior.predict(at)
    shape = (points.shape[0], posterior.outputs)
    mean, std = (a.astype(points.dtype).reshape(shape) for a in (mean, std))
    return (mean if at is points else mean - posterior.mean(at) + posterior.mean(points)), std


def _intersect(centre: Array, width: Array, bounds: tuple[float, float]) -> tuple[Array, Array]:
    if bounds == EVERYTHING:
        return centre, width
    low, high = (jnp.clip(end, *bounds) for end in (centre - width, centre + width))
    return (low + high) / 2, (high - low) / 2


@jit
def _prediction(plausible: Plausible, points: Array) -> Prediction:
    return plausible(points)


def _ellipsoid(plausible: Plausible, prediction: Prediction) -> tuple[Array, Array]:
    """Lengths and directions of the axes in scaled units, where the root is symmetric."""
    assert prediction.root is not None
    return jnp.linalg.eigh(prediction.root / plausible.beliefs.scale[None, :, None])


@jit
def _ratios(plausible: Plausible, truth: Prediction, points: Array) -> tuple[Array, Array]:
    prediction = plausible(points)
    assert prediction.reward_width is not None
    size = jnp.abs(prediction.reward)
    reward = _ratio(jnp.abs(truth.reward - prediction.reward), prediction.reward_width, size)
    scale = plausible.beliefs.scale[None, :]
    error = (truth.state - prediction.state) / scale
    if prediction.radius is not None:
        widths = prediction.radius[:, None]
        errors = jnp.linalg.norm(error, axis=1)[:, None]
    elif prediction.sides is not None:
        widths, errors = prediction.sides / scale, jnp.abs(error)
    else:
        widths, axes = _ellipsoid(plausible, prediction)
        errors = jnp.abs(jnp.einsum("nij,ni->nj", axes, error))
    size = jnp.max(jnp.abs(prediction.state) / scale, axis=1, keepdims=True)
    along = _ratio(errors, widths, jnp.broadcast_to(size, errors.shape))
    far = jnp.max(along, axis=1) if prediction.sides is not None else jnp.linalg.norm(along, axis=1)
    return jnp.max(reward), jnp.max(far)


def _ratio(error: Array, width: Array, size: Array) -> Array:
    """error/width, where an error within rounding of 0 is 0 whatever the width."""
    rounding = error <= ROUNDING * (1 + size)
    return jnp.where(rounding, 0.0, error / jnp.maximum(width, 0.0))
