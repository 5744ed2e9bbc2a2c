"""Unknown hyper-parameters: NUTS over their logarithms, then the function exactly (note E (i)).

θ contains logarithms of factors of the lengthscales, the signal variance and, as an option, the
noise variance. The basis φ is fixed. It is compiled for lengthscales two deviations shorter than
the kernel's, and also spans functions with longer ones. Given θ the weights are N(0, S(θ)),

    S(θ) = rootᵀ K_θ(U, U) root,   U the centres of the basis,

the law of the function that has the values of a GP(0, k_θ) at U and is interpolated by φ. With
S = LLᵀ, G = ΦᵀΦ, M = I + LᵀGL/v, the marginal likelihood of each column is

    ln p(y | θ) = −½ [n ln v + ln|M| + (yᵀy − |M^−½ LᵀΦᵀy|²/v)/v] + const.

Its cost is O(r³) for any n. It is exact for the finite-rank model, which *is* the prior.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior, posterior
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.priors.blackjax_sampling import default_promotion
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem
from kernelmdp.priors.sufficient_statistics import Statistics
from kernelmdp.priors.weight_space import WeightColumns
from kernelmdp.types import Key

#: The basis is compiled for lengthscales that are shorter than the kernel's by this number of prior
#: deviations. Shorter ones are improbable.
SHORTER = 2.0
#: Error of that compilation as a share of the noise variance.
ACCURACY = 1e-2
#: Added to S(θ) as a share of the signal, because S(θ) is nearly singular for long lengthscales.
JITTER = 1e-9
#: Number of Newton steps to the mode. They start from the last mode, so few suffice.
NEWTON = 4
#: Step size of NUTS in units of the Laplace deviation. It gives a high acceptance for a law that is
#: close to normal.
STEP = 0.7
#: Largest number of doublings of a NUTS trajectory, which bounds its cost.
DOUBLINGS = 6
#: Half the distance, in prior deviations, between gradients whose difference gives the curvature.
DIFFERENCE = 1e-3


class HyperparameterState(Module):
    """The state of a group: statistics of its data, and chains of θ.

    Attributes:
        columns: The unknown functions.
        statistics: Sufficient statistics of the data.
        spreads: Prior standard deviations of θ.
        mode: The posterior mode of θ.
        positions: The last position of each chain.
        average: The mean of θ over the last segment.
    """

    columns: WeightColumns
    statistics: Statistics
    spreads: Float[Array, " k"]
    mode: Float[Array, " k"]
    positions: Float[Array, "chains k"]
    average: Float[Array, " k"]


@dataclasses.dataclass(frozen=True)
class Hyperparameters(Prior):
    """A Gaussian process prior with uncertain lengthscales and variances.

    Logarithms of factors of the kernel's parameters are N(0, deviation²). Reward and transition
    have different θ, and so have outputs with different kernels.

    Attributes:
        name: "hyperparameters".
        lengthscale: The deviation of the factor of all lengthscales; 0 if they are known.
        signal: The deviation of the factor of the signal variance; 0 if it is known.
        noise: The deviation of the factor of the noise variance; 0 if it is known.
        log_prior: A log-density of θ, the logarithms in this order, instead of the normal law.
        chains: The number of chains.
        steps: The number of NUTS steps of each chain in an episode.

    >>> Hyperparameters(lengthscale=0.3, noise=0.5).name
    'hyperparameters'
    """

    name: ClassVar[str] = "hyperparameters"

    lengthscale: float = 0.35
    signal: float = 0.5
    noise: float = 0.0
    log_prior: Callable[[Array], Any] | None = None
    chains: int = 4
    steps: int = 25

    def __post_init__(self) -> None:
        for name in ("lengthscale", "signal", "noise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ArgumentError(name, "a standard deviation, at least 0", value)
        if not max(self.lengthscale, self.signal, self.noise) > 0:
            raise ArgumentError("prior", "something unknown: a deviation above 0", repr(self))
        integer("chains", self.chains, least=2)
        integer("steps", self.steps, least=4)

    def posteriors(self, beliefs: Beliefs) -> tuple[Posterior | Callable[..., Any], Posterior]:
        reward = beliefs.reward
        if isinstance(reward, Posterior):
            reward = self._with_shorter_lengthscales(reward)
        return reward, self._with_shorter_lengthscales(beliefs.transition)

    def _with_shorter_lengthscales(self, before: Posterior) -> Posterior:
        """The posterior with a basis for shorter lengthscales, and the same cached points."""
        kernel = stretched(before.kernel, jnp.exp(-SHORTER * self.lengthscale))
        noise_variance = before.noise_variance
        tolerance = ACCURACY * float(np.min(np.asarray(noise_variance)))
        after = posterior(
            kernel,
            noise_variance=noise_variance,
            domain=before.domain,
            tolerance=tolerance,
            std_tolerance=before.std_tolerance,
        )
        cached = before.engines[0].cached
        return after if cached is None else after.cache_at(cached.points)

    @property
    def free(self) -> tuple[int, ...]:
        """Which of lengthscale (0), signal (1) and noise (2) are unknown: the entries of θ."""
        return tuple(i for i, spread in enumerate(self._spreads) if spread > 0)

    @property
    def _spreads(self) -> tuple[float, float, float]:
        return self.lengthscale, self.signal, self.noise

    def start(
        self, columns: WeightColumns, problem: PriorProblem, role: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        spreads = jnp.array([self._spreads[i] for i in self.free], columns.root.dtype)
        zeros = jnp.zeros_like(spreads)
        draws = jax.random.normal(key, (self.chains, len(self.free)), columns.root.dtype)
        state = HyperparameterState(
            columns=columns,
            statistics=Statistics.none(columns),
            spreads=spreads,
            mode=zeros,
            positions=draws * spreads[None, :],
            average=zeros,
        )
        if self.log_prior is None:
            return state, EXACT
        return self._run_chains(replace_fields(state, positions=self._finite_starts(state)), key)

    def _finite_starts(self, state: HyperparameterState) -> Float[Array, "chains k"]:
        """Starts where the user's log-density is finite; ArgumentError if there is none."""
        values = np.asarray(_log_priors(self, state))
        finite = np.flatnonzero(np.isfinite(values))
        if not len(finite):
            position = np.asarray(state.positions[0]).tolist()
            raise ArgumentError(
                "log_prior",
                "a log-density that is finite near θ = 0",
                f"{values[0]} at {position}, and no better elsewhere",
            )
        return state.positions[jnp.asarray(finite[np.arange(self.chains) % len(finite)])]

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        statistics = learned.statistics.after(features, targets)
        return self._run_chains(replace_fields(learned, statistics=statistics), key)

    def _run_chains(
        self, state: HyperparameterState, key: Key
    ) -> tuple[HyperparameterState, Diagnostics]:
        def run(state: HyperparameterState, key: Key) -> tuple[HyperparameterState, Segment]:
            mode, positions, segment = _chains(self, state, self.steps, key)
            return replace_fields(state, mode=mode, positions=positions), segment

        return run_segment(state, run, key=key)

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return _weights(self, learned, key)

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return _mean_weights(self, learned)


def stretched(kernel: Any, factor: Float[Array, ""]) -> Any:
    """Multiply every lengthscale of a kernel by a factor.

    Args:
        kernel: A kernel of one or several outputs.
        factor: The factor.

    Returns:
        The kernel.
    """

    def stretch(path: Any, leaf: Any) -> Any:
        is_lengthscale = bool(path) and getattr(path[-1], "name", None) == "lengthscale"
        return leaf * factor.astype(leaf.dtype) if is_lengthscale else leaf

    return jax.tree_util.tree_map_with_path(stretch, kernel)


def factors_of(prior: Hyperparameters, theta: Float[Array, " k"]) -> Float[Array, " 3"]:
    """Return the logarithms of all three factors.

    Args:
        prior: Defines which are unknown.
        theta: θ, the unknown ones.

    Returns:
        The logarithms for lengthscale, signal and noise; 0 for those that are known.
    """
    return jnp.zeros(3, theta.dtype).at[jnp.array(prior.free)].set(theta)


def prior_root(
    prior: Hyperparameters, columns: WeightColumns, factors: Float[Array, " 3"]
) -> Float[Array, "r r"]:
    """Compute L with LLᵀ = S(θ).

    Lengthscales of S are longer than those of the basis by a factor. A kernel of finite rank has no
    lengthscale.

    Args:
        prior: The prior.
        columns: The unknown functions.
        factors: Logarithms of the three factors.

    Returns:
        L.
    """
    identity = jnp.eye(columns.rank, dtype=factors.dtype)
    log_factor = factors[0] + SHORTER * prior.lengthscale
    covariance = columns.basis.reweighted(
        columns.root, lambda kernel: stretched(kernel, jnp.exp(log_factor))
    )
    return jnp.exp(0.5 * factors[1]) * cholesky(covariance + JITTER * identity)


def log_density(
    prior: Hyperparameters, state: HyperparameterState, theta: Float[Array, " k"]
) -> Float[Array, ""]:
    """Compute ln p(y | θ) + ln p(θ), up to a constant.

    Args:
        prior: The prior.
        state: The state of a group.
        theta: θ.

    Returns:
        The log-density.
    """
    statistics = state.statistics
    _, factor, moment, variances = _conditional(prior, state, theta)
    whitened = jax.vmap(lambda c, b: solve_lower(c, b[:, None])[:, 0], in_axes=(0, 1))(
        factor, moment
    )
    residual = statistics.squares - jnp.sum(whitened**2, axis=1) / variances
    determinants = 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    terms = statistics.count * jnp.log(variances) + determinants + residual / variances
    likelihood = -0.5 * jnp.sum(terms)
    if prior.log_prior is not None:
        return likelihood + jnp.asarray(prior.log_prior(theta), theta.dtype)
    return likelihood - 0.5 * jnp.sum((theta / state.spreads) ** 2)


def _conditional(
    prior: Hyperparameters, state: HyperparameterState, theta: Array
) -> tuple[Array, Array, Array, Array]:
    """L, Cholesky factors of M (p, r, r), LᵀΦᵀy (r, p), and noise variances (p,) given θ."""
    factors = factors_of(prior, theta)
    root = prior_root(prior, state.columns, factors)
    variances = state.columns.sizes**2 * jnp.exp(factors[2])
    gram = root.T @ state.statistics.gram @ root
    gram = 0.5 * (gram + gram.T)
    identity = jnp.eye(gram.shape[0], dtype=gram.dtype)
    factor = jax.vmap(lambda v: cholesky(identity + gram / v))(variances)
    return root, factor, root.T @ state.statistics.products, variances


@jit
def _log_priors(prior: Hyperparameters, state: HyperparameterState) -> Array:
    assert prior.log_prior is not None
    values = [jnp.asarray(prior.log_prior(position), float) for position in state.positions]
    return jnp.stack(values)


@jit
def _chains(
    prior: Hyperparameters, state: HyperparameterState, steps: int, key: Key
) -> tuple[Array, Array, Segment]:
    """Mode, last positions, and a report of the chains."""
    import blackjax

    def target(whitened: Array) -> Array:
        value = log_density(prior, state, mode + scale @ whitened)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    mode, scale = _laplace(prior, state)
    with default_promotion():
        k = mode.shape[0]
        sampler = blackjax.nuts(target, STEP, jnp.ones(k, mode.dtype), max_num_doublings=DOUBLINGS)

        def step(nuts_state: Any, step_key: Array) -> tuple[Any, Any]:
            after, info = sampler.step(step_key, nuts_state)
            return after, (after.position, info.acceptance_rate, info.is_divergent)

        def chain(position: Array, key: Array) -> tuple[Array, Array, Array]:
            start = jnp.linalg.solve(scale, position - mode)
            # If new data made the density of a start vanish, the chain starts at the mode.
            start = jnp.where(jnp.isfinite(target(start)), start, jnp.zeros_like(start))
            return jax.lax.scan(step, sampler.init(start), jax.random.split(key, steps))[1]

        keys = jax.random.split(key, state.positions.shape[0])
        path, accepted, diverged = jax.vmap(chain)(state.positions, keys)
    draws = mode[None, None, :] + jnp.einsum("kj,csj->csk", scale, path)
    segment = Segment(
        watched=draws,
        average=jnp.mean(draws, axis=(0, 1)),
        acceptance=jnp.mean(accepted),
        divergences=jnp.sum(diverged),
        sound=jnp.all(jnp.isfinite(draws)),
    )
    return mode, draws[:, -1], segment


def _laplace(prior: Hyperparameters, state: HyperparameterState) -> tuple[Array, Array]:
    """A mode of θ by guarded Newton steps, and a root of the inverse curvature there.

    Both depend on the data only and not on the chains, so that the chains keep their target law.
    """

    def value(theta: Array) -> Array:
        return log_density(prior, state, theta)

    deviations = state.spreads
    k = deviations.shape[0]
    identity = jnp.eye(k, dtype=deviations.dtype)
    # Differences of gradients: a program of second derivatives would compile longer than all
    # chains run.
    offsets = jnp.concatenate([DIFFERENCE * identity, -DIFFERENCE * identity, jnp.zeros((1, k))])

    def curvature(theta: Array) -> tuple[Array, Array, Array]:
        """Gradient and curvature in prior units; at least half the curvature of the prior."""
        around = theta[None, :] + offsets * deviations[None, :]
        gradients = jax.vmap(jax.grad(value))(around) * deviations[None, :]
        hessian = (gradients[:k] - gradients[k : 2 * k]) / (2 * DIFFERENCE)
        hessian = jnp.where(jnp.all(jnp.isfinite(hessian)), hessian, -identity)
        values, vectors = jnp.linalg.eigh(-0.5 * (hessian + hessian.T))
        return gradients[-1], jnp.maximum(values, 0.5), vectors

    def newton(theta: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        gradient, values, vectors = curvature(theta)
        step = (vectors.T @ gradient) / values
        step = jnp.where(jnp.all(jnp.isfinite(step)), step, jnp.zeros_like(step))
        after = theta + deviations * (vectors @ jnp.clip(step, -1.0, 1.0))
        better = value(after) > value(theta)
        scale = deviations[:, None] * vectors / jnp.sqrt(values)[None, :]
        return jnp.where(better, after, theta), (theta, scale)

    # The scan has one step more than Newton takes, for the curvature at the last position.
    modes, scales = jax.lax.scan(newton, state.mode, length=NEWTON + 1)[1]
    return modes[-1], scales[-1]


def draw_given(
    prior: Hyperparameters, state: HyperparameterState, theta: Float[Array, " k"], *, key: Key
) -> Float[Array, "r p"]:
    """Draw ξ = Lη given θ, with η | y ~ N(M⁻¹LᵀΦᵀy/v, M⁻¹). The draw is exact.

    Args:
        prior: The prior.
        state: The state of a group.
        theta: θ.
        key: Decides the draw.

    Returns:
        The weights ξ.
    """
    root, factor, moment, variances = _conditional(prior, state, theta)
    noise = jax.random.normal(key, moment.shape, moment.dtype)
    return root @ _solved(factor, moment, variances, noise)


def _solved(factor: Array, moment: Array, variances: Array, noise: Array) -> Array:
    def one_column(factor: Array, moment: Array, variance: Array, noise: Array) -> Array:
        whitened = solve_lower(factor, moment[:, None]) / variance + noise[:, None]
        return solve_lower_transposed(factor, whitened)[:, 0]

    columns = jax.vmap(one_column, in_axes=(0, 1, 0, 1), out_axes=1)
    return columns(factor, moment, variances, noise)


@jit
def _weights(prior: Hyperparameters, state: HyperparameterState, key: Key) -> Array:
    chain_key, weight_key = jax.random.split(key)
    chain = jax.random.randint(chain_key, (), 0, state.positions.shape[0])
    return draw_given(prior, state, state.positions[chain], key=weight_key)


@jit
def _mean_weights(prior: Hyperparameters, state: HyperparameterState) -> Array:
    """The mean of the weights given the mean of θ."""
    root, factor, moment, variances = _conditional(prior, state, state.average)
    return root @ _solved(factor, moment, variances, jnp.zeros_like(moment))
