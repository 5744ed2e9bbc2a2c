"""Unknown hyper-parameters: NUTS over their logarithms, then the function exactly (math E (i)).

θ = ln of the factors on lengthscales, on the signal variance and (if asked for) on the noise
variance. The basis φ is fixed, compiled for lengthscales two deviations shorter than the kernel's:
functions of longer ones are spanned by it. Given θ the weights are N(0, S(θ)),

    S(θ) = rootᵀ K_θ(U, U) root,   U the centres of the basis,

the law of the function that has the values of a GP(0, k_θ) at U and is interpolated by φ. With
S = LLᵀ, G = ΦᵀΦ, M = I + LᵀGL/v, the marginal likelihood of each column is

    ln p(y | θ) = −½ [n ln v + ln|M| + (yᵀy − |M^−½ LᵀΦᵀy|²/v)/v] + const:

O(r³) whatever n is. It is exact for the finite-rank model, which *is* the prior.
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
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem
from kernelmdp.priors.sampling import default_promotion
from kernelmdp.priors.sufficient_statistics import Statistics
from kernelmdp.priors.weight_space import WeightColumns
from kernelmdp.types import Key

#: Deviations of the log-lengthscale below the kernel's for which the basis is compiled, and how
#: closely, as a share of the noise variance.
SHORTER, ACCURACY = 2.0, 1e-2
#: Added to S(θ), which is nearly singular for long lengthscales, as a share of the signal.
JITTER = 1e-9
#: Newton steps to the mode, from the last one; the step of NUTS in units of the Laplace deviation
#: there; and doublings of a trajectory at most.
NEWTON, STEP, DOUBLINGS = 4, 0.7, 6
#: Half the distance between gradients whose difference gives the curvature, in prior deviations.
DIFFERENCE = 1e-3


class HyperparameterState(Module):
    """What was seen, and chains of θ."""

    columns: WeightColumns
    statistics: Statistics
    spreads: Float[Array, " k"]  # prior deviations of θ
    mode: Float[Array, " k"]
    positions: Float[Array, "chains k"]
    average: Float[Array, " k"]


@dataclasses.dataclass(frozen=True)
class Hyperparameters(Prior):
    """A Gaussian process prior whose lengthscales and variances are known only roughly.

    Logarithms of factors on the kernel's own parameters are N(0, deviation²): ``lengthscale`` (one
    factor for all), ``signal`` and ``noise`` are those deviations, 0 for a parameter that is known.
    ``log_prior``, a function of θ = the logarithms in that order, takes the place of the normal
    law. Reward and transition have their own θ, and so have outputs with kernels of their own.

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
            reward = self._wider(reward)
        return reward, self._wider(beliefs.transition)

    def _wider(self, own: Posterior) -> Posterior:
        """The posterior with a basis for shorter lengthscales, that remembers the same points."""
        kernel = stretched(own.kernel, jnp.exp(-SHORTER * self.lengthscale))
        tolerance = ACCURACY * float(np.min(np.asarray(own.noise_variance)))
        made = posterior(
            kernel, noise_variance=own.noise_variance, domain=own.domain, tolerance=tolerance
        )
        cached = own.engines[0].cached
        return made if cached is None else made.cache_at(cached.points)

    @property
    def free(self) -> tuple[int, ...]:
        """Which of lengthscale, signal and noise are unknown: what θ is made of."""
        return tuple(i for i, spread in enumerate(self._spreads) if spread > 0)

    @property
    def _spreads(self) -> tuple[float, float, float]:
        return self.lengthscale, self.signal, self.noise

    def start(
        self, columns: WeightColumns, setting: PriorProblem, place: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        spreads = jnp.array([self._spreads[i] for i in self.free], columns.root.dtype)
        nothing = jnp.zeros_like(spreads)
        draws = jax.random.normal(key, (self.chains, len(self.free)), columns.root.dtype)
        own = HyperparameterState(
            columns=columns,
            statistics=Statistics.none(columns),
            spreads=spreads,
            mode=nothing,
            positions=draws * spreads[None, :],
            average=nothing,
        )
        if self.log_prior is None:
            return own, EXACT
        return self._moved(changed(own, positions=self._started(own)), key)

    def _started(self, own: HyperparameterState) -> Float[Array, "chains k"]:
        """Starts where the user's log-density is finite; ArgumentError when there is none."""
        values = np.asarray(_log_priors(self, own))
        good = np.flatnonzero(np.isfinite(values))
        if not len(good):
            raise ArgumentError(
                "log_prior",
                "a log-density that is finite near θ = 0",
                f"{values[0]} at {np.asarray(own.positions[0]).tolist()}, and no better elsewhere",
            )
        return own.positions[jnp.asarray(good[np.arange(self.chains) % len(good)])]

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        seen = learned.statistics.after(features, targets)
        return self._moved(changed(learned, statistics=seen), key)

    def _moved(self, own: HyperparameterState, key: Key) -> tuple[HyperparameterState, Diagnostics]:
        def run(own: HyperparameterState, key: Key) -> tuple[HyperparameterState, Segment]:
            mode, positions, found = _chains(self, own, self.steps, key)
            return changed(own, mode=mode, positions=positions), found

        return run_segment(own, run, key=key)

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return _weights(self, learned, key)

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return _mean_weights(self, learned)


def stretched(kernel: Any, factor: Float[Array, ""]) -> Any:
    """The kernel (or kernel of several outputs) with every lengthscale times a factor."""

    def each(path: Any, leaf: Any) -> Any:
        named = bool(path) and getattr(path[-1], "name", None) == "lengthscale"
        return leaf * factor.astype(leaf.dtype) if named else leaf

    return jax.tree_util.tree_map_with_path(each, kernel)


def factors_of(prior: Hyperparameters, theta: Float[Array, " k"]) -> Float[Array, " 3"]:
    """Logarithms of all three factors; 0 for what is known."""
    return jnp.zeros(3, theta.dtype).at[jnp.array(prior.free)].set(theta)


def prior_root(
    prior: Hyperparameters, columns: WeightColumns, factors: Float[Array, " 3"]
) -> Float[Array, "r r"]:
    """L with LLᵀ = S(θ).

    S is that of a lengthscale exp(longer) times that of the basis. A kernel of finite rank has no
    lengthscale.
    """
    identity = jnp.eye(columns.rank, dtype=factors.dtype)
    longer = factors[0] + SHORTER * prior.lengthscale
    covariance = columns.basis.reweighted(
        columns.root, lambda kernel: stretched(kernel, jnp.exp(longer))
    )
    return jnp.exp(0.5 * factors[1]) * cholesky(covariance + JITTER * identity)


def log_density(
    prior: Hyperparameters, own: HyperparameterState, theta: Float[Array, " k"]
) -> Float[Array, ""]:
    """ln p(y | θ) + ln p(θ), up to a constant."""
    seen = own.statistics
    _, factor, pulled, variances = _conditional(prior, own, theta)
    halves = jax.vmap(lambda c, b: solve_lower(c, b[:, None])[:, 0], in_axes=(0, 1))(factor, pulled)
    left = seen.squares - jnp.sum(halves**2, axis=1) / variances
    determinants = 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    likelihood = -0.5 * jnp.sum(seen.count * jnp.log(variances) + determinants + left / variances)
    if prior.log_prior is not None:
        return likelihood + jnp.asarray(prior.log_prior(theta), theta.dtype)
    return likelihood - 0.5 * jnp.sum((theta / own.spreads) ** 2)


def _conditional(
    prior: Hyperparameters, own: HyperparameterState, theta: Array
) -> tuple[Array, Array, Array, Array]:
    """L, Cholesky factors of M (p, r, r), LᵀΦᵀy (r, p), and noise variances (p,) given θ."""
    factors = factors_of(prior, theta)
    root = prior_root(prior, own.columns, factors)
    variances = own.columns.sizes**2 * jnp.exp(factors[2])
    inner = root.T @ own.statistics.gram @ root
    inner = 0.5 * (inner + inner.T)
    identity = jnp.eye(inner.shape[0], dtype=inner.dtype)
    factor = jax.vmap(lambda v: cholesky(identity + inner / v))(variances)
    return root, factor, root.T @ own.statistics.products, variances


@jit
def _log_priors(prior: Hyperparameters, own: HyperparameterState) -> Array:
    assert prior.log_prior is not None
    values = [jnp.asarray(prior.log_prior(position), float) for position in own.positions]
    return jnp.stack(values)


@jit
def _chains(
    prior: Hyperparameters, own: HyperparameterState, steps: int, key: Key
) -> tuple[Array, Array, Segment]:
    """Mode, last positions, and what there is to say of the chains."""
    import blackjax

    def target(whitened: Array) -> Array:
        value = log_density(prior, own, mode + scale @ whitened)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    mode, scale = _laplace(prior, own)
    with default_promotion():
        k = mode.shape[0]
        sampler = blackjax.nuts(target, STEP, jnp.ones(k, mode.dtype), max_num_doublings=DOUBLINGS)

        def step(state: Any, each: Array) -> tuple[Any, Any]:
            after, info = sampler.step(each, state)
            return after, (after.position, info.acceptance_rate, info.is_divergent)

        def chain(position: Array, key: Array) -> tuple[Array, Array, Array]:
            start = jnp.linalg.solve(scale, position - mode)
            # A start that fell out of reach goes back to the mode.
            start = jnp.where(jnp.isfinite(target(start)), start, jnp.zeros_like(start))
            return jax.lax.scan(step, sampler.init(start), jax.random.split(key, steps))[1]

        keys = jax.random.split(key, own.positions.shape[0])
        path, accepted, diverged = jax.vmap(chain)(own.positions, keys)
    drawn = mode[None, None, :] + jnp.einsum("kj,csj->csk", scale, path)
    found = Segment(
        watched=drawn,
        average=jnp.mean(drawn, axis=(0, 1)),
        acceptance=jnp.mean(accepted),
        divergences=jnp.sum(diverged),
        sound=jnp.all(jnp.isfinite(drawn)),
    )
    return mode, drawn[:, -1], found


def _laplace(prior: Hyperparameters, own: HyperparameterState) -> tuple[Array, Array]:
    """A mode of θ by guarded Newton steps, and a root of the inverse curvature there.

    Both depend on the data alone and not on where the chains are, so that these stay invariant.
    """

    def value(theta: Array) -> Array:
        return log_density(prior, own, theta)

    units = own.spreads  # the prior's deviations
    k = units.shape[0]
    identity = jnp.eye(k, dtype=units.dtype)
    # Second derivatives of the program would take longer to compile than all the chains.
    apart = jnp.concatenate([DIFFERENCE * identity, -DIFFERENCE * identity, jnp.zeros((1, k))])

    def curvature(theta: Array) -> tuple[Array, Array, Array]:
        """Slope and curvature in units of the prior's; at least half that of a normal prior."""
        around = theta[None, :] + apart * units[None, :]
        slopes = jax.vmap(jax.grad(value))(around) * units[None, :]
        hessian = (slopes[:k] - slopes[k : 2 * k]) / (2 * DIFFERENCE)
        hessian = jnp.where(jnp.all(jnp.isfinite(hessian)), hessian, -identity)
        values, vectors = jnp.linalg.eigh(-0.5 * (hessian + hessian.T))
        return slopes[-1], jnp.maximum(values, 0.5), vectors

    def newton(theta: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        slope, values, vectors = curvature(theta)
        move = (vectors.T @ slope) / values
        move = jnp.where(jnp.all(jnp.isfinite(move)), move, jnp.zeros_like(move))
        after = theta + units * (vectors @ jnp.clip(move, -1.0, 1.0))
        better = value(after) > value(theta)
        scale = units[:, None] * vectors / jnp.sqrt(values)[None, :]
        return jnp.where(better, after, theta), (theta, scale)

    # One step more than is taken, for the curvature where the last one led.
    modes, scales = jax.lax.scan(newton, own.mode, length=NEWTON + 1)[1]
    return modes[-1], scales[-1]


def draw_given(
    prior: Hyperparameters, own: HyperparameterState, theta: Float[Array, " k"], *, key: Key
) -> Float[Array, "r p"]:
    """ξ = Lη given θ, with η | y ~ N(M⁻¹LᵀΦᵀy/v, M⁻¹): exact."""
    root, factor, pulled, variances = _conditional(prior, own, theta)
    noise = jax.random.normal(key, pulled.shape, pulled.dtype)
    return root @ _solved(factor, pulled, variances, noise)


def _solved(factor: Array, pulled: Array, variances: Array, noise: Array) -> Array:
    def one(c: Array, b: Array, v: Array, e: Array) -> Array:
        half = solve_lower(c, b[:, None]) / v + e[:, None]
        return solve_lower_transposed(c, half)[:, 0]

    return jax.vmap(one, in_axes=(0, 1, 0, 1), out_axes=1)(factor, pulled, variances, noise)


@jit
def _weights(prior: Hyperparameters, own: HyperparameterState, key: Key) -> Array:
    chain_key, weight_key = jax.random.split(key)
    chosen = jax.random.randint(chain_key, (), 0, own.positions.shape[0])
    return draw_given(prior, own, own.positions[chosen], key=weight_key)


@jit
def _mean_weights(prior: Hyperparameters, own: HyperparameterState) -> Array:
    """The mean of the function given the mean of θ."""
    root, factor, pulled, variances = _conditional(prior, own, own.average)
    return root @ _solved(factor, pulled, variances, jnp.zeros_like(pulled))
