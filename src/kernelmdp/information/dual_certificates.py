"""Upper bounds of the maximum information gain by a dual certificate, and designs that nearly
attain them.

For weights w on any finite support, f(w) = ½ ln|I + Σ_i w_i φ(x_i)φ(x_i)ᵀ| is concave with
∂f/∂w(x) = σ²_w(x)/2, σ²_w the posterior variance given "w_i observations at x_i with unit noise".
Any sequence of n points at noise variance λ is a weight w' of total n/λ, and by concavity

    gain = f(w') ≤ f(w) + ½ Σ_x (w'(x) − w(x)) σ²_w(x) ≤ a + b·n/λ,
    a = f(w) − ½ Σ_i w_i σ²_w(x_i),   b = ½ sup_x σ²_w(x).

So each w certifies one line in n/λ, valid for every n and λ; the minimum over a ladder of lines is
valid too. At the optimal design the line touches the gain (Kiefer-Wolfowitz). The supremum over
the domain comes from a net by ``KernelConstants.supremum``. For m outputs with kernels b_j·k seen at the same
points, f and σ² are sums over j ("scales").
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
from kernelmdp.numerics.modules import chunked, jit

NETS = {1: 40_001, 2: 90_000, 3: 200_000, 4: 200_000}  # points on which the supremum is measured
CANDIDATES = {1: 257, 2: 1_681, 3: 3_375, 4: 4_096}  # points a design chooses among
RANK = 400  # features a design works with
CHUNK = 2048  # points of the net looked at together
STEP = 128  # supports are padded to multiples of this, so that programs are compiled rarely
ROUGH, FINE, SWEEPS = 40, 120, 6  # rounds of improvement: on all candidates, then on a support
GAP = 1e-3  # nats, times ln ratio: a certificate that close to its design is good enough
GREEDY = 512  # up to so many points the greedy design is tried for the lower bound
RUNG = 1.5  # ratio of a ladder


@dataclasses.dataclass(frozen=True)
class GainCertificate:
    """gain ≤ intercept + slope · n/λ, for every n and λ; tight near n/λ = ``ratio``."""

    ratio: float
    intercept: float
    slope: float

    def bound(self, ratio: float) -> float:
        """The bound at n/λ = ratio."""
        return self.intercept + self.slope * ratio


@dataclasses.dataclass(frozen=True)
class Design:
    """Weights of total n/λ on finitely many points, nearly maximising the gain."""

    points: np.ndarray
    weights: np.ndarray


def applicable(kernel: Kernel, domain: Domain) -> bool:
    """Whether the supremum over the domain can be certified."""
    if domain.finite:
        return True
    if domain.dimension > CERTIFIED_DIMENSION:
        return False
    _, spacing = domain.net(NETS[domain.dimension])
    known = kernel.constants(domain)
    return math.isfinite(known.variance_bound) and math.isfinite(known.modulus(spacing / 2))


class CertificateLadder:
    """Certificates for one kernel on one domain, made when first needed and kept."""

    def __init__(self, kernel: Kernel, domain: Domain, scales: tuple[float, ...] = (1.0,)) -> None:
        self.kernel = kernel.bind(domain.names).astype(jnp.float64)
        self.domain, self.scales = domain, scales
        dimension = domain.dimension
        self.candidates = domain.net(CANDIDATES.get(dimension, 4096))[0]
        self.net, self.spacing = domain.net(NETS.get(dimension, 200_000))
        self.constants = constants.scale(self.kernel.constants(domain), sum(scales))
        self.certificates: dict[float, GainCertificate] = {}
        self._designs: dict[float, Design] = {}
        self._known_features: dict[int, np.ndarray] = {}

    def bound(self, ratio: float, *, exactly: bool = True, rung: float = RUNG) -> float:
        """The least certified bound at n/λ = ratio; with exactly=False only rungs of the ladder
        are made, which costs at most about half a percent and is what curves over n want.
        (With rungs of ratio 3 it costs at most 3.5 %.)"""
        if ratio <= 0:
            return 0.0
        if exactly:
            self._certificate(ratio)
        else:
            step = math.floor(math.log(ratio, rung))
            self._certificate(rung**step)
            self._certificate(rung ** (step + 1))
        return min(line.bound(ratio) for line in self.certificates.values())

    def design(self, ratio: float) -> Design:
        """Weights of total ``ratio`` by multiplicative updates on the candidates."""
        if ratio not in self._designs:
            # Features need only resolve what ratio observations could see; this is not the proof.
            features = self._features(min(1e-2, 1e-2 / ratio))
            weights = np.full(len(features), ratio / len(features))
            weights = _improved(features, weights, self.scales, ROUGH)
            for _ in range(SWEEPS):
                # Few points matter: work on those with weight, and on those that deserve some.
                variance = _variance(jnp.asarray(features), jnp.asarray(weights), self.scales)
                variance = np.asarray(variance)
                typical = weights @ variance / ratio
                # On the candidates the certificate exceeds the gain by ½·ratio·(max − typical).
                if 0.5 * ratio * (variance.max() - typical) <= GAP * max(1.0, math.log(ratio)):
                    break
                missing = (variance > typical) & (weights < 1e-3 * weights.max())
                weights = np.where(missing, 1e-3 * weights.max(), weights)
                support = np.flatnonzero(weights > 1e-4 * weights.max())
                fine = weights[support] * (ratio / weights[support].sum())
                weights = np.zeros(len(features))
                weights[support] = _improved(features[support], fine, self.scales, FINE)
            support = np.flatnonzero(weights > 1e-5 * weights.max())
            kept = weights[support] * (ratio / weights[support].sum())
            self._designs[ratio] = Design(self.candidates[support], kept)
        return self._designs[ratio]

    def _features(self, tolerance: float) -> np.ndarray:
        power = min(math.floor(math.log10(tolerance)), -2)
        if power not in self._known_features:
            found = nystrom_features(self.kernel, self.candidates, 10.0**power)
            self._known_features[power] = found
        return self._known_features[power]

    def _certificate(self, ratio: float) -> GainCertificate:
        if ratio not in self.certificates:
            design = self.design(ratio)
            extra = -len(design.weights) % STEP  # padding of weight 0 changes nothing
            value, own, largest = _dual(
                self.kernel,
                jnp.asarray(np.pad(design.points, ((0, extra), (0, 0)), mode="edge")),
                jnp.asarray(np.pad(design.weights, (0, extra))),
                jnp.asarray(self.scales),
                jnp.asarray(self.net),
            )
            top = self.constants.supremum(max(float(largest), 0.0), self.spacing)
            self.certificates[ratio] = GainCertificate(
                ratio=ratio, intercept=float(value) - 0.5 * float(own), slope=0.5 * top
            )
        return self.certificates[ratio]

    def lower(self, n: int, noise_variance: float) -> float:
        """The gain of n points, rounded from the design or chosen greedily: it is attained."""
        if n == 0:
            return 0.0
        greedy = 0.0
        if n <= GREEDY and len(self.scales) == 1:
            # Under k_r ⪯ k the same points gain less: still a lower bound for k.
            features = jnp.asarray(self._features(1e-2 * noise_variance))
            greedy = float(_greedy(features, jnp.asarray(noise_variance / self.scales[0]), n))
        design = self.design(n / noise_variance)
        exact = design.weights * noise_variance
        counts = np.floor(exact)
        left = n - int(counts.sum())
        counts[np.argsort(exact - counts)[::-1][:left]] += 1
        used = counts > 0
        matrix = np.asarray(gram(self.kernel, *([jnp.asarray(design.points[used])] * 2)))
        root = np.sqrt(counts[used] / noise_variance)
        inside = root[:, None] * matrix * root[None, :]
        identity = np.eye(len(root))
        gains = [0.5 * np.linalg.slogdet(identity + b * inside)[1] for b in self.scales]
        return max(greedy, float(sum(gains)))


def ladder(kernel: Kernel, domain: Domain, scales: tuple[float, ...] = (1.0,)) -> CertificateLadder:
    """The ladder of a kernel on a domain, shared by all who ask."""
    bound = kernel.bind(domain.names)
    leaves, structure = jax.tree.flatten(bound)
    numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
    key = (structure, numbers, domain, scales)
    if key not in _LADDERS:
        _LADDERS[key] = CertificateLadder(bound, domain, scales)
    return _LADDERS[key]


_LADDERS: dict[Any, CertificateLadder] = {}


def nystrom_features(kernel: Kernel, points: np.ndarray, tolerance: float) -> np.ndarray:
    """Features (n, r) at the points of a kernel k_r ⪯ k of low rank."""
    chosen, _ = pivots(kernel, points, tolerance=tolerance, limit=RANK)
    centres = jnp.asarray(points[chosen])
    matrix = gram(kernel, centres, centres)
    jitter = 1e-13 * jnp.max(jnp.diagonal(matrix))
    factor = cholesky(matrix + jitter * jnp.eye(len(chosen)))
    features = np.asarray(solve_lower(factor, gram(kernel, centres, jnp.asarray(points))).T)
    return np.pad(features, ((0, 0), (0, -len(chosen) % (STEP // 2))))  # features of 0 do nothing


def _improved(
    features: np.ndarray, weights: np.ndarray, scales: tuple[float, ...], rounds: int
) -> np.ndarray:
    extra = -len(weights) % STEP
    padded = jnp.asarray(np.pad(features, ((0, extra), (0, 0))))
    after = _multiplicative(padded, jnp.asarray(np.pad(weights, (0, extra))), scales, rounds)
    return np.asarray(after)[: len(weights)]


@functools.partial(jax.jit, static_argnames="scales")
def _multiplicative(
    features: jax.Array, weights: jax.Array, scales: tuple[float, ...], rounds: int | jax.Array
) -> jax.Array:
    """w_i ← w_i σ²_w(x_i) · Σw / Σ_j w_j σ²_w(x_j): the gain grows at every step."""
    total = jnp.sum(weights)

    def step(_: jax.Array, w: jax.Array) -> jax.Array:
        moved = w * _variance(features, w, scales)
        return moved * (total / jnp.sum(moved))

    return lax.fori_loop(0, rounds, step, weights)


@functools.partial(jax.jit, static_argnames="scales")
def _variance(features: jax.Array, weights: jax.Array, scales: tuple[float, ...]) -> jax.Array:
    """σ²_w at every candidate, summed over scales, from features."""
    information = features.T @ (weights[:, None] * features)
    identity = jnp.eye(features.shape[1])

    def variance(scale: float) -> jax.Array:
        # The inverse factor and one product: this only looks for a design, and is quicker by far
        # than a substitution for every candidate. The proof, in _dual, substitutes.
        inverse = solve_lower(cholesky(identity + scale * information), identity)
        return scale * jnp.sum((features @ inverse.T) ** 2, axis=1)

    return functools.reduce(jnp.add, [variance(scale) for scale in scales])


@functools.partial(jax.jit, static_argnames="n")
def _greedy(features: jax.Array, noise: jax.Array, n: int) -> jax.Array:
    """Gain of n points, each where the variance given those before is largest."""

    def step(_: jax.Array, state: Any) -> Any:
        covariance, variance, gain = state
        pick = jnp.argmax(variance)
        direction = covariance @ features[pick]
        scale = noise + variance[pick]
        seen = features @ direction
        return (
            covariance - jnp.outer(direction, direction) / scale,
            variance - seen**2 / scale,
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
    inside = root[:, None] * gram(kernel, points, points) * root[None, :]
    identity = jnp.eye(points.shape[0])
    factors = lax.map(lambda scale: cholesky(identity + scale * inside), scales)
    value = jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)))

    def variance(x: jax.Array) -> jax.Array:
        cross = root[:, None] * gram(kernel, points, x)
        explained = lax.map(
            lambda pair: pair[0] ** 2 * jnp.sum(solve_lower(pair[1], cross) ** 2, axis=0),
            (scales, factors),
        )
        return jnp.sum(scales) * variances(kernel, x) - jnp.sum(explained, axis=0)

    largest = jnp.max(lax.map(lambda x: jnp.max(variance(x)), chunked(net, CHUNK)))
    return value, weights @ variance(points), largest
