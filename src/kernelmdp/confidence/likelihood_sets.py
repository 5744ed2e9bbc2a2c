"""Likelihood-ratio confidence sets of tables, one for each pair (docs/theory.md, Proposition 9).

Let n next states of a pair have the frequencies p̂, and let q be their probability under a mixture
of all rows p with the prior Dirichlet(1/S). The ratio of q and the likelihood of the true row is a
supermartingale that begins at 1. So with probability 1 − δ' for all n, the true row satisfies

    n KL(p̂‖p) ≤ ln(1/δ') + Σ_i n_i ln p̂_i − ln q.

Rewards are treated in the same way, with a mixture of shifts N(0, σ²). A norm bounds the rewards of
pairs that were never seen, and nothing else.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.sets import EVERYTHING, Plausible, PlausibleModel, intersect
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.gp.output_layouts import SharedLayout
from kernelmdp.gp.table_engine import TableEngine
from kernelmdp.mdp import Noise, Prediction
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.numerics.tracing import is_traced


class TableLikelihood(PlausibleModel):
    """All tables whose rows and rewards lie in their likelihood-ratio sets.

    Attributes:
        beliefs: Posteriors of reward and transition, with the counts.
        beta_reward: ln(1/δ') of the sets of rewards.
        beta_transition: ln(1/δ') of the sets of rows.
        deviation: σ, the sub-Gaussian constant of the noise of rewards.
        norm: A bound of |R̄ − mean|, for pairs without data.
        reward_range: An interval that contains every mean reward.
    """

    beliefs: Beliefs
    beta_reward: Any
    beta_transition: Any
    deviation: Any
    norm: Any
    reward_range: tuple[Any, Any] = eqx.field(default=EVERYTHING)

    def within(self, reward_range: tuple[Any, Any]) -> "TableLikelihood":
        return replace_fields(self, reward_range=reward_range)

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        reward, width = self._reward(points)
        n, mean = _data(self.beliefs.transition, points)
        scale = self.beliefs.scale.astype(points.dtype)
        frequencies = self.beliefs.offset(points) + scale[None, :] * mean
        # Counts are integers. Their rounding errors would make impossible states possible.
        counts = jnp.maximum(jnp.round(n[:, None] * frequencies), 0.0)
        seen, divisor = n > 0, jnp.maximum(n, 1.0)
        rows = jnp.where(seen[:, None], counts / divisor[:, None], 1 / mean.shape[1])
        level = self.beta_transition + log_mixture_ratio(counts)
        divergence = jnp.where(seen, level / divisor, jnp.inf)
        # Pinsker: |p − p̂|₂ ≤ |p − p̂|₁/√2 ≤ √KL. No two distributions are farther than √2.
        radius = jnp.minimum(jnp.sqrt(divergence), jnp.sqrt(2.0)) / scale[0]
        return Prediction(reward, rows, width, radius=radius, divergence=divergence)

    def _reward(self, points: Array) -> tuple[Array, Array]:
        reward: Any = self.beliefs.reward
        if not reward.learned:
            return reward.predict(points)
        n, mean = _data(reward, points)
        level = jnp.log1p(n) + 2 * self.beta_reward
        width = self.deviation * jnp.sqrt((n + 1) * level) / jnp.maximum(n, 1.0)
        width = jnp.where(n > 0, width, self.norm)
        # Without data the mean is the prior mean.
        return intersect(mean[:, 0], width, self.reward_range)


def log_mixture_ratio(counts: Float[Array, "n S"]) -> Float[Array, " n"]:
    """Compute Σ_i n_i ln p̂_i − ln q for the prior Dirichlet(1/S).

    Args:
        counts: n_i, (n, S).

    Returns:
        The logarithms, at least 0.
    """
    states, total = counts.shape[1], jnp.sum(counts, axis=1)
    likelihood = jnp.sum(xlogy(counts, counts), axis=1) - xlogy(total, total)
    terms = gammaln(counts + 1 / states) - gammaln(1 / states)
    return likelihood - (jnp.sum(terms, axis=1) - gammaln(total + 1))


def likelihood_sets(
    plausible: Plausible,
    *,
    log_odds: Any,
    deviation: Any,
    norm: Any,
    transition_noise: Noise,
) -> TableLikelihood:
    """Make the sets from beliefs about a table.

    Args:
        plausible: The other sets of the same beliefs.
        log_odds: ln(share/δ). Each set of δ/share is divided among the pairs (s, a) of its table.
        deviation: The sub-Gaussian constant of the noise of rewards.
        norm: B_R, a bound of the norm of the mean reward.
        transition_noise: The noise of next states, which must be drawn from a row of a table.

    Returns:
        The sets.

    Raises:
        ArgumentError: If the beliefs are not about a table whose next states are drawn from rows.
    """
    beliefs = plausible.beliefs
    learned = beliefs.learned
    scales = beliefs.scale
    equal = is_traced(scales) or bool(jnp.all(scales == scales[0]))
    tables = all(
        isinstance(posterior.layout, SharedLayout) and isinstance(posterior.engines[0], TableEngine)
        for posterior in learned.values()
    )
    if not (tables and equal and transition_noise.categorical):
        kinds = [type(posterior.engines[0]).__name__ for posterior in learned.values()]
        expected = "another than 'likelihood' where next states are not drawn from a table"
        raise ArgumentError("shape", expected, f"{', '.join(kinds)} with {transition_noise}")
    levels, largest = {}, jnp.asarray(0.0)
    for role, posterior in learned.items():
        engine: Any = posterior.engines[0]
        levels[role] = jnp.asarray(log_odds + math.log(engine.precision.shape[0]))
        if role == "reward":  # |R̄ − mean| ≤ B_R √κ (note B2)
            largest = norm * jnp.sqrt(engine.variance)
    return TableLikelihood(
        beliefs=beliefs,
        beta_reward=levels.get("reward", jnp.asarray(0.0)),
        beta_transition=levels["transition"],
        deviation=jnp.asarray(deviation, float),
        norm=jnp.asarray(largest, float),
    )


def _data(posterior: Posterior, points: Array) -> tuple[Array, Array]:
    """How often the pairs were seen, and the mean of what was observed; else the prior mean."""
    engine: Any = posterior.engines[0]
    cells = jax.vmap(engine.kernel.cell)(points)
    precision = engine.precision[cells]
    mean = engine.sums[cells] / jnp.where(precision > 0, precision, 1.0)[:, None]
    mean = mean + posterior.mean(points).reshape(mean.shape)
    return jnp.round(precision * posterior.noise_variance[0]), mean
