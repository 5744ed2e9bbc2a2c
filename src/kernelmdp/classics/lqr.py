"""Classic algorithms of linear-quadratic control, from least squares.

They get the same data as the other agents. They are written in NumPy, independently of kernels and
posteriors.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import AGENTS, Agent, numpy_generator
from kernelmdp.learners.least_squares import LeastSquares, LinearQuadraticState
from kernelmdp.mdp.linear_policy import LinearPolicy
from kernelmdp.planners import Plan, RiccatiPlan
from kernelmdp.types import Key

#: Number of draws of C that are tried until one has Q ≻ 0. Before any data, few draws have it.
ATTEMPTS = 1000
#: Least eigenvalue of Q. It keeps the Riccati recursion regular.
FLOOR = 1e-6
#: Number of boundary points of a confidence set that OFU-LQ compares. More points come closer to
#: the minimum over the set and cost proportionally more.
CANDIDATES = 128


class LQRAgent(Agent):
    """Plans for an estimate of Θ = [A B] and C, which a subclass chooses.

    Attributes:
        default_learner: "linear-quadratic".
        explores_first: Whether the first episode has random actions.
        state: The regressions of Θ and C.
    """

    default_learner: ClassVar[str] = "linear-quadratic"
    explores_first: ClassVar[bool] = True
    state: LinearQuadraticState

    def plan_greedy(self, *, key: Key) -> Plan:
        state = self.controller_state
        cost = state.costs(state.cost.mean[None])[0]
        return self._riccati_plan(state.transition.mean.T, cost, key)

    def _riccati_plan(self, dynamics: np.ndarray, cost: np.ndarray, key: Key) -> Plan:
        """The optimal plan for these matrices; before any data, random actions."""
        G, c, gains = solve(dynamics[None], cost[None], self.problem.horizon, self._covariance)
        H, q = gains.shape[1:3]
        offsets = np.zeros((H, q))
        if self.explores_first and self.episode == 0 and not self.state.has_data:
            low, high = self.problem.actions.extent
            offsets = numpy_generator(key).uniform(low, high, size=(H, q))
        policy = LinearPolicy(jnp.asarray(gains[0]), jnp.asarray(offsets), self.problem.actions)
        return RiccatiPlan(
            policy=policy,
            curvature=jnp.asarray(G[0]),
            constant=jnp.asarray(c[0]),
            multiplier=jnp.zeros(()),
            certified=jnp.asarray(False),
        )

    @property
    def _covariance(self) -> np.ndarray:
        deviations = self.problem.transition_noise.standard_deviations(self.problem.mean_dimension)
        return np.diag(deviations**2)


class CertaintyEquivalence(LQRAgent):
    """Plays the optimal policy for the least-squares estimate, after a random first episode.

    Attributes:
        name: "certainty-equivalence".

    >>> import kernelmdp as km
    >>> km.classics.CertaintyEquivalence("lqr-1d", seed=0).name
    'certainty-equivalence'
    """

    name: ClassVar[str] = "certainty-equivalence"

    def plan(self, *, key: Key) -> Plan:
        return self.plan_greedy(key=key)


class LQRThompson(LQRAgent):
    """Draws Θ and C from their posteriors, C until Q ≻ 0, and plays the optimal policy.

    Attributes:
        name: "lqr-ts".
        explores_first: False: a draw from the prior explores.

    >>> import kernelmdp as km
    >>> km.classics.LQRThompson("lqr-1d", seed=0).name
    'lqr-ts'
    """

    name: ClassVar[str] = "lqr-ts"
    explores_first: ClassVar[bool] = False

    def plan(self, *, key: Key) -> Plan:
        rng, m, state = numpy_generator(key), self.problem.mean_dimension, self.state
        dynamics = state.transition.draws(1, rng)[0].T
        for _ in range(ATTEMPTS):
            cost = state.costs(state.cost.draws(1, rng))[0]
            if np.linalg.eigvalsh(cost[m:, m:])[0] > FLOOR:
                break
        return self._riccati_plan(dynamics, cost, key)


class OFULQ(LQRAgent):
    """Optimism over the ellipsoid of Θ and C (after Abbasi-Yadkori & Szepesvári 2011).

    The minimum over the set is a non-convex problem. This agent minimises over the centre and some
    points of the boundary in random directions, a heuristic without a certificate. Widths are
    multiplied by the ``scale`` of the confidence.

    Attributes:
        name: "ofu-lq".

    >>> import kernelmdp as km
    >>> km.classics.OFULQ("lqr-1d", seed=0).name
    'ofu-lq'
    """

    name: ClassVar[str] = "ofu-lq"

    def plan(self, *, key: Key) -> Plan:
        rng, state = numpy_generator(key), self.state
        reward_norm, transition_norm = self.confidence.norms
        thetas = self._members(state.transition, transition_norm, rng)
        costs = state.costs(self._members(state.cost, reward_norm, rng))
        dynamics = np.swapaxes(thetas, 1, 2)
        G, c, _ = solve(dynamics, costs, self.problem.horizon, self._covariance)
        start = np.ones(self.problem.mean_dimension) if self._start is None else self._start
        totals = np.einsum("i,nij,j->n", start, G, start) + c
        best = int(np.argmin(np.where(np.isfinite(totals), totals, np.inf)))
        return self._riccati_plan(dynamics[best], costs[best], key)

    def _members(self, fit: LeastSquares, norm: float, rng: np.random.Generator) -> np.ndarray:
        """The centre and points of the boundary of tr (X − mean)ᵀV(X − mean) ≤ λβ²."""
        exponent = math.log(3 / self.confidence.delta) + fit.gain
        beta = norm + math.sqrt(2 * exponent)
        radius = self.confidence.scale * math.sqrt(fit.noise) * beta
        return np.concatenate([fit.mean[None], fit.boundary(CANDIDATES, radius, rng)])


def solve(
    dynamics: np.ndarray, costs: np.ndarray, horizon: int, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve the Riccati recursion of n systems at once.

    Costs are first raised to Q ⪰ FLOOR and P − NQ⁻¹Nᵀ ⪰ 0.

    Args:
        dynamics: Θ = [A B], (n, m, m + q).
        costs: C, (n, m + q, m + q).
        horizon: H.
        covariance: Covariance of the transition noise, (m, m).

    Returns:
        G_1 (n, m, m), c_1 (n,) and gains (n, H, q, m).
    """
    m = dynamics.shape[1]
    A, B = dynamics[:, :, :m], dynamics[:, :, m:]
    P, N, Q = costs[:, :m, :m], costs[:, :m, m:], _raise_eigenvalues(costs[:, m:, m:], FLOOR)
    cross_cost = N @ np.linalg.solve(Q, _transposed(N))
    P = _raise_eigenvalues(P - cross_cost, 0.0) + cross_cost
    G, c, gains = np.zeros_like(P), np.zeros(len(P)), []
    for _ in range(horizon):
        c = c + np.einsum("nij,ij->n", G, covariance)
        coupling = _transposed(B) @ G @ A + _transposed(N)
        K = np.linalg.solve(Q + _transposed(B) @ G @ B, coupling)
        G = P + _transposed(A) @ G @ A - _transposed(coupling) @ K
        G = (G + _transposed(G)) / 2
        gains.append(K)
    return G, c, np.stack(gains[::-1], axis=1)


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, 1, 2)


def _raise_eigenvalues(matrices: np.ndarray, least: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, least)[:, None, :]) @ _transposed(vectors)


for kind in (CertaintyEquivalence, OFULQ, LQRThompson):
    AGENTS.register(kind.name, kind)
