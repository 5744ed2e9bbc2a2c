"""Dual certificates: upper bounds on the maximum information gain, and designs close to them.

For weights w on any finite support, f(w) = ½ ln|I + Σ_i w_i φ(x_i)φ(x_i)ᵀ| is concave with
∂f/∂w(x) = σ²_w(x)/2. Here σ²_w is the posterior variance given "w_i observations at x_i with unit
noise". Any sequence of n points at noise variance λ is a weight w' of total n/λ, and by concavity

    gain = f(w') ≤ f(w) + ½ Σ_x (w'(x) − w(x)) σ²_w(x) ≤ a + b·n/λ,
    a = f(w) − ½ Σ_i w_i σ²_w(x_i),   b = ½ sup_x σ²_w(x).

So each w certifies one line in n/λ, which is valid for every n and λ. A ladder is a set of such
lines for a geometric sequence of ratios n/λ (its rungs); their minimum is valid too. At the optimal
design the line touches the gain (Kiefer-Wolfowitz).

``KernelConstants.supremum`` bounds the supremum over the domain from a net. If m outputs with
kernels b_j·k are observed at the same points, f and σ² are sums over j. The b_j are ``scales``.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernelmdp.domains import Domain
from kernelmdp.gp.compilation import CERTIFIED_DIMENSION, pivots
from kernelmdp.kernels import Kernel, constants
from kernelmdp.kernels.base import gram, variances
from kernelmdp.numerics.factorisation import cholesky, solve_lower
from kernelmdp.numerics.modules import jit, split_into_chunks

#: Points of the net on which σ²_w is evaluated, by dimension of the domain. A finer net costs more
#: time and gives a tighter bound on the supremum; the bound is valid for any net.
NET_POINTS = {1: 40_001, 2: 90_000, 3: 200_000, 4: 200_000}
#: Points among which a design chooses, by dimension of the domain. More points cost more time and
#: allow better designs; the certificate is valid for any design.
CANDIDATE_POINTS = {1: 257, 2: 1_681, 3: 3_375, 4: 4_096}
#: Largest number of Nystrom features with which a design is searched. It bounds the time of the
#: search; the certificate itself uses the exact kernel.
FEATURE_LIMIT = 400
#: Points of the net that are evaluated together. Larger chunks take more memory.
NET_CHUNK = 2048
#: Supports are padded to multiples of this, so that few different shapes are compiled.
PADDING_MULTIPLE = 128
#: Multiplicative updates of the weights of all candidates, to find the region of the support.
CANDIDATE_ROUNDS = 40
#: Multiplicative updates of the weights of the support, in each sweep. They are cheaper than
#: updates of all candidates, so there are more of them.
SUPPORT_ROUNDS = 120
#: Largest number of sweeps. Each one chooses the support again and then updates its weights.
SUPPORT_SWEEPS = 6
#: Gap in nats, per unit of ln(ratio), between certificate and design at which the search stops.
GAP_TOLERANCE = 1e-3
#: Largest n for which the greedy design is tried for the lower bound. Its cost grows with n.
GREEDY_LIMIT = 512
#: Ratio of successive rungs of a ladder. A smaller ratio is tighter and needs more certificates.
RUNG = 1.5


@dataclasses.dataclass(frozen=True)
class GainCertificate:
    """A line that bounds the gain: gain ≤ intercept + slope · n/λ, for every n and λ.

    Attributes:
        ratio: The n/λ for which the line was made. The bound is tight near it.
        intercept: Value of the line at n/λ = 0, in nats.
        slope: Half a bound on the supremum of σ²_w over the domain.
    """

    ratio: float
    intercept: float
    slope: float

    def bound(self, ratio: float) -> float:
        """Return the bound on the gain at one value of n/λ.

        Args:
            ratio: The value of n/λ.

        Returns:
            The bound in nats.
        """
        return self.intercept + self.slope * ratio


@dataclasses.dataclass(frozen=True)
class Design:
    """Weights of total n/λ on finitely many points that nearly maximise the gain.

    Attributes:
        points: The support, (s, d).
        weights: Weight of each point, (s,).
    """

    points: np.ndarray
    weights: np.ndarray


def is_certifiable(kernel: Kernel, domain: Domain) -> bool:
    """Return whether the supremum of σ²_w over the domain can be certified.

    It can on finite domains. Elsewhere the domain needs at most ``CERTIFIED_DIMENSION``
    coordinates, and the kernel a variance bound and a modulus of continuity on it.

    Args:
        kernel: The kernel.
        domain: The domain of its points.

    Returns:
        Whether certificates exist.
    """
    if domain.finite:
        return True
    if domain.dimension > CERTIFIED_DIMENSION:
        return False
    _, spacing = domain.net(NET_POINTS[domain.dimension])
    constants = kernel.constants(domain)
    return math.isfinite(constants.variance_bound) and math.isfinite(constants.modulus(spacing / 2))


class CertificateLadder:
    """Certificates for one kernel on one domain, computed at first use and cached.

    Args:
        kernel: The kernel. It is evaluated in 64 bits.
        domain: The domain of the points.
        scales: Factors b_j of the outputs' kernels b_j·k; by default a single output.
    """

    def __init__(self, kernel: Kernel, domain: Domain, scales: tuple[float, ...] = (1.0,)) -> None:
        self.kernel = kernel.bind(domain.names).astype(jnp.float64)
        self.domain, self.scales = domain, scales
        dimension = domain.dimension
        self.candidates = domain.net(CANDIDATE_POINTS.get(dimension, 4096))[0]
        self.net, self.spacing = domain.net(NET_POINTS.get(dimension, 200_000))
        self.constants = constants.scale(self.kernel.constants(domain), sum(scales))
        self.certificates: dict[float, GainCertificate] = {}
        self._designs: dict[float, Design] = {}
        self._features_by_power: dict[int, np.ndarray] = {}

    def bound(self, ratio: float, *, exactly: bool = True, rung: float = RUNG) -> float:
        """Return the smallest certified bound on the gain at one value of n/λ.

        Args:
            ratio: The value of n/λ.
            exactly: Whether to make a certificate for this ratio, which is the default. If
                False, only the two nearest rungs of the ladder are made. Choose this for curves
                over n: the bound is larger by at most about half a percent (by at most 3.5 % with
                rungs of ratio 3).
            rung: Ratio of successive rungs, used when ``exactly`` is False.

        Returns:
            The bound in nats, the minimum over all certificates made so far; 0 if ratio ≤ 0.
        """
        if ratio <= 0:
            return 0.0
        if exactly:
            self._certificate(ratio)
        else:
            power = math.floor(math.log(ratio, rung))
            self._certificate(rung**power)
            self._certificate(rung ** (power + 1))
        return min(line.bound(ratio) for line in self.certificates.values())

    def design(self, ratio: float) -> Design:
        """Return a design of total weight ``ratio``, found by multiplicative updates.

        Args:
            ratio: The total weight n/λ.

        Returns:
            The design, with support among the candidates.
        """
        if ratio not in self._designs:
            # Features need only resolve what this many observations can distinguish. The
            # certificate does not rely on them.
            features = self._features(min(1e-2, 1e-2 / ratio))
            weights = np.full(len(features), ratio / len(features))
            weights = _improved(features, weights, self.scales, CANDIDATE_ROUNDS)
            for _ in range(SUPPORT_SWEEPS):
                # An optimal design has a small support. Update only points that have weight, or
                # whose variance says that they should have some.
                variance = _variance(jnp.asarray(features), jnp.asarray(weights), self.scales)
                variance = np.asarray(variance)
                mean_variance = weights @ variance / ratio
                # On the candidates the certificate exceeds the gain by ½·ratio·(max − mean).
                gap = 0.5 * ratio * (variance.max() - mean_variance)
                if gap <= GAP_TOLERANCE * max(1.0, math.log(ratio)):
                    break
                missing = (variance > mean_variance) & (weights < 1e-3 * weights.max())
                weights = np.where(missing, 1e-3 * weights.max(), weights)
                support = np.flatnonzero(weights > 1e-4 * weights.max())
                on_support = weights[support] * (ratio / weights[support].sum())
                weights = np.zeros(len(features))
                weights[support] = _improved(
                    features[support], on_support, self.scales, SUPPORT_ROUNDS
                )
            support = np.flatnonzero(weights > 1e-5 * weights.max())
            on_support = weights[support] * (ratio / weights[support].sum())
            self._designs[ratio] = Design(self.candidates[support], on_support)
        return self._designs[ratio]

    def _features(self, tolerance: float) -> np.ndarray:
        """Features of the candidates to a tolerance, rounded down to a power of ten."""
        power = min(math.floor(math.log10(tolerance)), -2)
        if power not in self._features_by_power:
            features = nystrom_features(self.kernel, self.candidates, 10.0**power)
            self._features_by_power[power] = features
        return self._features_by_power[power]

    def _certificate(self, ratio: float) -> GainCertificate:
        """The certificate that belongs to the design of total weight ``ratio``."""
        if ratio not in self.certificates:
            design = self.design(ratio)
            # Points of weight 0 do not change the result.
            padding = -len(design.weights) % PADDING_MULTIPLE
            value, weighted_variance, net_variance = _dual(
                self.kernel,
                jnp.asarray(np.pad(design.points, ((0, padding), (0, 0)), mode="edge")),
                jnp.asarray(np.pad(design.weights, (0, padding))),
                jnp.asarray(self.scales),
                jnp.asarray(self.net),
            )
            supremum = self.constants.supremum(max(float(net_variance), 0.0), self.spacing)
            self.certificates[ratio] = GainCertificate(
                ratio=ratio,
                intercept=float(value) - 0.5 * float(weighted_variance),
                slope=0.5 * supremum,
            )
        return self.certificates[ratio]

    def lower(self, n: int, noise_variance: float) -> float:
        """Return a lower bound on the maximum gain that a sequence of n points attains.

        The sequence is the design rounded to whole numbers of visits, or a greedy one, whichever
        gains more. The greedy one is tried for n ≤ ``GREEDY_LIMIT`` and a single output.

        Args:
            n: Number of points.
            noise_variance: Noise variance λ.

        Returns:
            The gain in nats.
        """
        if n == 0:
            return 0.0
        greedy = 0.0
        if n <= GREEDY_LIMIT and len(self.scales) == 1:
            # The features belong to a kernel k_r ⪯ k, under which the same points gain less. So
            # the gain under k_r is a lower bound for k.
            features = jnp.asarray(self._features(1e-2 * noise_variance))
            greedy = float(_greedy(features, jnp.asarray(noise_variance / self.scales[0]), n))
        design = self.design(n / noise_variance)
        visits = design.weights * noise_variance
        counts = np.floor(visits)
        unassigned = n - int(counts.sum())
        counts[np.argsort(visits - counts)[::-1][:unassigned]] += 1
        visited = counts > 0
        matrix = np.asarray(gram(self.kernel, *([jnp.asarray(design.points[visited])] * 2)))
        root = np.sqrt(counts[visited] / noise_variance)
        weighted = root[:, None] * matrix * root[None, :]
        identity = np.eye(len(root))
        gains = [0.5 * np.linalg.slogdet(identity + b * weighted)[1] for b in self.scales]
        return max(greedy, float(sum(gains)))


def ladder(kernel: Kernel, domain: Domain, scales: tuple[float, ...] = (1.0,)) -> CertificateLadder:
    """Return the ladder of a kernel on a domain, cached for the life of the process.

    Args:
        kernel: The kernel.
        domain: The domain of its points.
        scales: Factors b_j of the outputs' kernels b_j·k; by default a single output.

    Returns:
        The same object for equal arguments.
    """
    bound_kernel = kernel.bind(domain.names)
    leaves, structure = jax.tree.flatten(bound_kernel)
    parameters = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
    key = (structure, parameters, domain, scales)
    if key not in _LADDERS:
        _LADDERS[key] = CertificateLadder(bound_kernel, domain, scales)
    return _LADDERS[key]


#: Ladders by kernel, domain and scales: a certificate takes seconds, so it is made only once.
_LADDERS: dict[Any, CertificateLadder] = {}


def nystrom_features(kernel: Kernel, points: np.ndarray, tolerance: float) -> np.ndarray:
    """Return features at the points of a low-rank Nystrom approximation k_r ⪯ k.

    Args:
        kernel: The kernel k.
        points: The points, (n, d). The centres of the approximation are chosen among them.
        tolerance: Residual variance below which no further centre is chosen.

    Returns:
        Features (n, r'), r' being the rank r ≤ ``FEATURE_LIMIT`` padded with zero features.
    """
    chosen, _ = pivots(kernel, points, tolerance=tolerance, limit=FEATURE_LIMIT)
    centres = jnp.asarray(points[chosen])
    matrix = gram(kernel, centres, centres)
    jitter = 1e-13 * jnp.max(jnp.diagonal(matrix))
    factor = cholesky(matrix + jitter * jnp.eye(len(chosen)))
    features = np.asarray(solve_lower(factor, gram(kernel, centres, jnp.asarray(points))).T)
    # Features that are zero everywhere do not change the kernel.
    return np.pad(features, ((0, 0), (0, -len(chosen) % (PADDING_MULTIPLE // 2))))


def _improved(
    features: np.ndarray, weights: np.ndarray, scales: tuple[float, ...], rounds: int
) -> np.ndarray:
    """Weights after some rounds of multiplicative updates, computed on padded arrays."""
    padding = -len(weights) % PADDING_MULTIPLE
    padded = jnp.asarray(np.pad(features, ((0, padding), (0, 0))))
    updated = _multiplicative(padded, jnp.asarray(np.pad(weights, (0, padding))), scales, rounds)
    return np.asarray(updated)[: len(weights)]


@functools.partial(jax.jit, static_argnames="scales")
def _multiplicative(
    features: jax.Array, weights: jax.Array, scales: tuple[float, ...], rounds: int | jax.Array
) -> jax.Array:
    """w_i ← w_i σ²_w(x_i) · Σw / Σ_j w_j σ²_w(x_j), repeated; every step increases the gain."""
    total = jnp.sum(weights)

    def step(_: jax.Array, w: jax.Array) -> jax.Array:
        unnormalised = w * _variance(features, w, scales)
        return unnormalised * (total / jnp.sum(unnormalised))

    return lax.fori_loop(0, rounds, step, weights)


@functools.partial(jax.jit, static_argnames="scales")
def _variance(features: jax.Array, weights: jax.Array, scales: tuple[float, ...]) -> jax.Array:
    """σ²_w at every candidate, summed over scales, from features."""
    information = features.T @ (weights[:, None] * features)
    identity = jnp.eye(features.shape[1])

    def variance(scale: float) -> jax.Array:
        # Inverting the factor and multiplying is far quicker than a substitution for every
        # candidate. It is accurate enough to search for a design; _dual, which computes the
        # certificate, substitutes.
        inverse = solve_lower(cholesky(identity + scale * information), identity)
        return scale * jnp.sum((features @ inverse.T) ** 2, axis=1)

    return functools.reduce(jnp.add, [variance(scale) for scale in scales])


@functools.partial(jax.jit, static_argnames="n")
def _greedy(features: jax.Array, noise: jax.Array, n: int) -> jax.Array:
    """Gain of n points, each chosen where the variance given the previous ones is largest."""

    def step(_: jax.Array, state: Any) -> Any:
        covariance, variance, gain = state
        pick = jnp.argmax(variance)
        direction = covariance @ features[pick]
        scale = noise + variance[pick]
        cross_covariance = features @ direction
        return (
            covariance - jnp.outer(direction, direction) / scale,
            variance - cross_covariance**2 / scale,
            gain + 0.5 * jnp.log1p(variance[pick] / noise),
        )

    start = (jnp.eye(features.shape[1]), jnp.sum(features**2, axis=1), jnp.zeros(()))
    return lax.fori_loop(0, n, step, start)[2]


@jit
def _dual(
    kernel: Kernel, points: jax.Array, weights: jax.Array, scales: jax.Array, net: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """f(w), Σ w_i σ²_w(x_i) and the largest σ²_w on the net, with the exact kernel."""
    root = jnp.sqrt(weights)
    weighted = root[:, None] * gram(kernel, points, points) * root[None, :]
    identity = jnp.eye(points.shape[0])
    factors = lax.map(lambda scale: cholesky(identity + scale * weighted), scales)
    value = jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)))

    def variance(x: jax.Array) -> jax.Array:
        cross = root[:, None] * gram(kernel, points, x)
        explained = lax.map(
            lambda pair: pair[0] ** 2 * jnp.sum(solve_lower(pair[1], cross) ** 2, axis=0),
            (scales, factors),
        )
        return jnp.sum(scales) * variances(kernel, x) - jnp.sum(explained, axis=0)

    largest = jnp.max(lax.map(lambda x: jnp.max(variance(x)), split_into_chunks(net, NET_CHUNK)))
    return value, weights @ variance(points), largest
