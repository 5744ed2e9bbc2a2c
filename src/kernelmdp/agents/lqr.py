"""The classics of linear-quadratic control, from least squares: no kernel, no posterior of ours.

They see what our agents see and are written independently of them, in NumPy. Transitions and costs
are both learned (costs only when the reward is not known), with N(0, 1) priors on all coefficients
and the noise variance as the regulariser, over the same episodes.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.base import Agent, Told, generator
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.linear import LinearPolicy
from kernelmdp.planners import Plan, RiccatiPlan
from kernelmdp.types import Key

#: Draws of PSRL's kind that are tried until one has Q ≻ 0; and the least eigenvalue of Q.
ATTEMPTS, FLOOR = 1000, 1e-6
#: Members of the confidence set that OFU-LQ compares.
CANDIDATES = 128


@dataclasses.dataclass
class LeastSquares:
    """Ridge regression of k columns on r features: precision V = λI + ΣφφT, moment Σφy."""

    precision: np.ndarray  # (r, r)
    moment: np.ndarray  # (r, k)
    noise: float  # λ, the noise variance

    @staticmethod
    def prior(features: int, columns: int, noise: float) -> "LeastSquares":
        """No data yet."""
        return LeastSquares(noise * np.eye(features), np.zeros((features, columns)), noise)

    def after(self, rows: np.ndarray, targets: np.ndarray) -> "LeastSquares":
        """With more rows (n, r) and targets (n, k)."""
        return LeastSquares(
            self.precision + rows.T @ rows, self.moment + rows.T @ targets, self.noise
        )

    @property
    def mean(self) -> np.ndarray:
        """The estimate, (r, k)."""
        return np.linalg.solve(self.precision, self.moment)

    @property
    def spread(self) -> np.ndarray:
        """A root of V⁻¹, (r, r)."""
        values, vectors = np.linalg.eigh(self.precision)
        return vectors / np.sqrt(values)

    @property
    def gain(self) -> float:
        """½ ln det(V/λ) for each column."""
        r, k = self.moment.shape
        return k / 2 * float(np.linalg.slogdet(self.precision)[1] - r * math.log(self.noise))

    def draws(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """From the posterior N(mean, λV⁻¹), (count, r, k)."""
        noise = rng.normal(size=(count, *self.moment.shape))
        return self.mean + math.sqrt(self.noise) * (self.spread @ noise)

    def boundary(self, count: int, radius: float, rng: np.random.Generator) -> np.ndarray:
        """Points with tr (X − mean)ᵀV(X − mean) = radius², in random directions, (count, r, k)."""
        steps = rng.normal(size=(count, *self.moment.shape))
        steps /= np.sqrt((steps**2).sum(axis=(1, 2), keepdims=True))
        return self.mean + radius * (self.spread @ steps)


class LQRAgent(Agent):
    """Least squares for Θ = [A B] and for the cost matrix C; a subclass chooses what to believe."""

    def begin(self) -> None:
        problem = self.problem
        m, d = problem.states.dimension, problem.points.dimension
        self.shape = (m, d)
        reward_noise, transition_noise = problem.noise_variances
        rows, columns = np.triu_indices(d)
        if str(problem.reward_kernel) != "quadratic":  # no cross term
            together = (rows < m) == (columns < m)
            rows, columns = rows[together], columns[together]
        self.pairs = (rows, columns)
        self.transition = LeastSquares.prior(d, m, transition_noise)
        self.cost = LeastSquares.prior(len(rows), 1, reward_noise)
        self.known_cost = None if problem.reward is None else self._read(problem.reward)

    def _read(self, reward: Any) -> np.ndarray:
        """C of a known reward, from its values at e_i + e_j."""
        d = self.shape[1]
        unit = np.eye(d)
        sums = (unit[:, None, :] + unit[None, :, :]).reshape(-1, d)
        values = -np.asarray(reward(jnp.asarray(sums))).reshape(d, d)
        own = np.diag(values) / 4
        found = (values - own[:, None] - own[None, :]) / 2
        check = np.linspace(-1.0, 2.0, d)
        got = -float(np.asarray(reward(jnp.asarray(check[None, :])))[0])
        if not math.isclose(got, check @ found @ check, rel_tol=1e-6, abs_tol=1e-9):
            raise ArgumentError("reward", f"a quadratic form, for {self.name}", "another function")
        return found

    def learn_from(self, told: Told) -> None:
        points = np.concatenate([told.states[:-1], told.actions], axis=1)
        features = self._features(points)
        self.transition = self.transition.after(points, told.outcomes)
        self.cost = self.cost.after(features, -told.rewards[:, None])

    def _features(self, points: np.ndarray) -> np.ndarray:
        """Products of coordinates, √2 times for mixed ones, so that weights are entries of C."""
        rows, columns = self.pairs
        weight = np.where(rows == columns, 1.0, math.sqrt(2.0))
        return weight * points[:, rows] * points[:, columns]

    def _costs(self, weights: np.ndarray) -> np.ndarray:
        """Cost matrices (n, d, d) of weights (n, r, 1); the known one where it is known."""
        d, (rows, columns) = self.shape[1], self.pairs
        if self.known_cost is not None:
            return np.broadcast_to(self.known_cost, (len(weights), d, d))
        entries = weights[:, :, 0] / np.where(rows == columns, 1.0, math.sqrt(2.0))
        found = np.zeros((len(weights), d, d))
        found[:, rows, columns] = entries
        found[:, columns, rows] = entries
        return found

    def exploit(self, *, key: Key) -> Plan:
        return self._follow(self.transition.mean.T, self._costs(self.cost.mean[None])[0], key)

    def _follow(self, dynamics: np.ndarray, cost: np.ndarray, key: Key) -> Plan:
        """The plan for these matrices; before any data one of random actions."""
        G, c, gains = solve(dynamics[None], cost[None], self.problem.horizon, self._covariance)
        H, q = gains.shape[1:3]
        offsets = np.zeros((H, q))
        if self.episode == 0 and not self.transition.moment.any():
            low, high = self.problem.actions.extent
            if self.explores_first:
                offsets = generator(key).uniform(low, high, size=(H, q))
        policy = LinearPolicy(jnp.asarray(gains[0]), jnp.asarray(offsets), self.problem.actions)
        return RiccatiPlan(
            policy=policy,
            curvature=jnp.asarray(G[0]),
            constant=jnp.asarray(c[0]),
            multiplier=jnp.zeros(()),
            certified=jnp.asarray(False),
        )

    #: Whether the first episode is random, for those whose first estimate says nothing.
    explores_first: ClassVar[bool] = True

    @property
    def _covariance(self) -> np.ndarray:
        return np.diag(self.problem.transition_noise.standard_deviations(self.shape[0]) ** 2)

    @property
    def gains(self) -> tuple[float, float]:
        return (0.0 if self.known_cost is not None else self.cost.gain), self.transition.gain


class CertaintyEquivalence(LQRAgent):
    """Plays what is optimal for the least-squares estimate, after one episode of random actions."""

    name: ClassVar[str] = "certainty-equivalence"

    def plan(self, *, key: Key) -> Plan:
        return self.exploit(key=key)


class LQRThompson(LQRAgent):
    """Draws Θ and C from their posteriors, C again until Q ≻ 0, and plays what is optimal."""

    name: ClassVar[str] = "lqr-ts"
    explores_first: ClassVar[bool] = False

    def plan(self, *, key: Key) -> Plan:
        rng, m = generator(key), self.shape[0]
        dynamics = self.transition.draws(1, rng)[0].T
        for _ in range(ATTEMPTS):
            cost = self._costs(self.cost.draws(1, rng))[0]
            if np.linalg.eigvalsh(cost[m:, m:])[0] > FLOOR:
                break
        return self._follow(dynamics, cost, key)


class OFULQ(LQRAgent):
    """Optimism over the ellipsoid of Θ and C (after Abbasi-Yadkori & Szepesvári 2011).

    The exact minimum over the set is non-convex. Here it is that over the centre and some points
    of the boundary in random directions: a heuristic, with no certificate. Widths are multiplied
    by the ``scale`` of the confidence.
    """

    name: ClassVar[str] = "ofu-lq"

    def plan(self, *, key: Key) -> Plan:
        rng = generator(key)
        reward_norm, transition_norm = self.confidence.norms
        thetas = self._members(self.transition, transition_norm, rng)
        costs = self._costs(self._members(self.cost, reward_norm, rng))
        dynamics = np.swapaxes(thetas, 1, 2)
        G, c, _ = solve(dynamics, costs, self.problem.horizon, self._covariance)
        start = self._first if self._first is not None else np.ones(self.shape[0])
        totals = np.einsum("i,nij,j->n", start, G, start) + c
        best = int(np.argmin(np.where(np.isfinite(totals), totals, np.inf)))
        return self._follow(dynamics[best], costs[best], key)

    def _members(self, fit: LeastSquares, norm: float, rng: np.random.Generator) -> np.ndarray:
        """The centre and points of the boundary of tr (X − mean)ᵀV(X − mean) ≤ λβ²."""
        log = math.log(3 / self.confidence.delta) + fit.gain
        beta = norm + math.sqrt(2 * log)
        radius = self.confidence.scale * math.sqrt(fit.noise) * beta
        return np.concatenate([fit.mean[None], fit.boundary(CANDIDATES, radius, rng)])


def solve(
    dynamics: np.ndarray, costs: np.ndarray, horizon: int, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Riccati for n systems at once: G_1 (n, m, m), c_1 (n,) and gains (n, H, q, m).

    Costs are first raised to Q ⪰ FLOOR and P − NQ⁻¹Nᵀ ⪰ 0.
    """
    m = dynamics.shape[1]
    A, B = dynamics[:, :, :m], dynamics[:, :, m:]
    P, N, Q = costs[:, :m, :m], costs[:, :m, m:], _raised(costs[:, m:, m:], FLOOR)
    half = N @ np.linalg.solve(Q, _turned(N))
    P = _raised(P - half, 0.0) + half
    G, c, gains = np.zeros_like(P), np.zeros(len(P)), []
    for _ in range(horizon):
        c = c + np.einsum("nij,ij->n", G, covariance)
        across = _turned(B) @ G @ A + _turned(N)
        K = np.linalg.solve(Q + _turned(B) @ G @ B, across)
        G = P + _turned(A) @ G @ A - _turned(across) @ K
        G = (G + _turned(G)) / 2
        gains.append(K)
    return G, c, np.stack(gains[::-1], axis=1)


def _turned(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, 1, 2)


def _raised(matrices: np.ndarray, least: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, least)[:, None, :]) @ _turned(vectors)
