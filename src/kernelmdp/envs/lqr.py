"""Linear-quadratic control: s' = As + Ba + ε, mean reward −(sᵀPs + 2sᵀNa + aᵀQa) (math B15, D8).

States are unbounded unless asked otherwise. Actions are bounded, so that a random policy and a
first bad plan do bounded damage, by what the optimal policy plays on average plus six standard
deviations: it never meets the bound, and what that costs is part of the optimum's error.

Kernels: what is learned of transitions is s' − s, linear, so B_P = √(‖A − I‖² + ‖B‖²) in Frobenius
norms (math A7 has A itself); rewards quadratic
in s plus quadratic in a, so B_R = √(‖P‖² + ‖Q‖²), or with ``cross`` quadratic in z, B_R = ‖C‖.
L = 2ρ max_{h ≥ 2} λ_max(G_h), the slope of U_h on the ball whose radius ρ holds the states of the
optimal policy up to three standard deviations; on all of R^m there is none.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from kernelmdp.domains import Box, Domain, Unbounded
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Index, Linear, Quadratic
from kernelmdp.mdp import MDP, Gaussian, MeanModel
from kernelmdp.mdp.linear_policy import require_convex
from kernelmdp.mdp.linear_quadratic import LinearQuadraticSystem, RiccatiSolution, optimal_solution
from kernelmdp.numerics.checks import float_array, integer, positive_number, require_finite
from kernelmdp.numerics.modules import Module, jit

#: How far the bounds of actions and the ball of states reach, in standard deviations.
ACTION_REACH, STATE_REACH = 6.0, 3.0
#: By the number of state coordinates: nodes an axis of a grid, where the states are bounded.
COUNTS = {1: 101, 2: 41}
RULE = "2 ρ max λ_max(G_h), h ≥ 2, on the ball that holds the optimal policy's states (math B15)"


_solved = jit(optimal_solution)


class QuadraticCostReward(Module):
    """−zᵀCz: points (n, d) -> (n,)."""

    cost: Float[Array, "d d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return -jnp.sum((points @ self.cost) * points, axis=1)


class LinearDynamics(Module):
    """Θz: points (n, d) -> (n, m)."""

    dynamics: Float[Array, "m d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return points @ self.dynamics.T


@dataclasses.dataclass(frozen=True)
class OptimalTrajectory:
    """What the optimal policy does from a start: largest mean plus deviations, and Riccati's."""

    actions: np.ndarray  # (q,)
    states: float  # a radius
    solution: RiccatiSolution


def linear_quadratic(
    name: str,
    A: Any,
    B: Any,
    P: Any,
    Q: Any,
    *,
    start: Any,
    horizon: int,
    noise: float,
    N: Any = None,
    cross: bool = False,
    action_bound: Any = None,
    state_bound: Any = None,
) -> Environment:
    """The environment of these matrices, with Gaussian noise of one size on states and rewards.

    ``cross`` gives the reward's kernel a cross term, which N needs. ``action_bound`` is one number
    or one for each action, None for the rule above, or infinite for no bound, which an unstable A
    must not have. ``state_bound`` confines states to a box around 0: then linear control is no
    longer optimal, and the grid planner can check it.
    """
    A, B, P, Q = (_matrix(k, v) for k, v in (("A", A), ("B", B), ("P", P), ("Q", Q)))
    m, q = B.shape
    N = np.zeros((m, q)) if N is None else _matrix("N", N)
    for argument, given, shape in (("A", A, (m, m)), ("P", P, (m, m)), ("Q", Q, (q, q))):
        if given.shape != shape:
            raise ShapeError(argument, f"shape {shape} as B has {(m, q)}", f"shape {given.shape}")
    if N.shape != (m, q):
        raise ShapeError("N", f"shape {(m, q)} like B", f"shape {N.shape}")
    for argument, given in (("P", P), ("Q", Q)):
        if not np.allclose(given, given.T, atol=1e-12):
            raise ArgumentError(argument, "a symmetric matrix", given.tolist())
    require_convex(P, N, Q)
    if N.any() and not cross:
        raise ArgumentError("cross", "True, as a cross term N needs it", cross)
    horizon, noise = integer("horizon", horizon, least=1), positive_number("noise", noise)
    first = np.asarray(float_array(start, "start"))
    path = _path(A, B, P, N, Q, first, horizon, noise)
    states, actions = _spaces(A, path, q, action_bound, state_bound)
    cost = np.block([[P, N], [N.T, Q]])
    dynamics = np.concatenate([A, B], axis=1)
    top = max([np.linalg.eigvalsh(np.asarray(G))[-1] for G in path.solution.curvatures[1:-1]] + [0])
    mdp = MDP(
        MeanModel(QuadraticCostReward(jnp.asarray(cost)), LinearDynamics(jnp.asarray(dynamics))),
        states=states,
        actions=actions,
        horizon=horizon,
        reward_noise=Gaussian(noise),
        transition_noise=Gaussian(noise),
        lipschitz=2 * path.states * float(top),
    )
    reward_kernel = Quadratic() if cross else Quadratic().on("state") + Quadratic().on("action")
    count = COUNTS.get(m, 9)
    return Environment.of(
        name=name,
        mdp=mdp,
        start=tuple(float(x) for x in first),
        reward_kernel=reward_kernel,
        transition_kernel=Linear() @ Index(m),
        offset="identity",
        scale=(1.0,) * m,
        state_points=(count,) * m,
        action_points=(21 if q == 1 else 9,) * q,
        optimum_points=((count,) * m, (21 if q == 1 else 9,) * q),
        norm_reward=float(np.linalg.norm(cost)),
        norm_transition=float(np.linalg.norm(dynamics - np.eye(m, m + q))),
        lipschitz_rule=RULE,
        planner="riccati",
    )


def _matrix(argument: str, given: Any) -> np.ndarray:
    array = np.asarray(float_array(given, argument))
    if array.ndim != 2 or array.size == 0:
        raise ShapeError(argument, "a matrix", f"shape {array.shape}")
    require_finite(argument, array)
    return array


def _path(
    A: np.ndarray,
    B: np.ndarray,
    P: np.ndarray,
    N: np.ndarray,
    Q: np.ndarray,
    start: np.ndarray,
    horizon: int,
    noise: float,
) -> OptimalTrajectory:
    """Means and covariances of the optimal policy's states and actions, period by period."""
    m = len(A)
    if start.shape != (m,):
        raise ShapeError("start", f"a state of {m} numbers", f"shape {start.shape}")
    covariance = noise**2 * np.eye(m)
    dynamics, cost = np.concatenate([A, B], axis=1), np.block([[P, N], [N.T, Q]])
    system = LinearQuadraticSystem(*(jnp.asarray(x) for x in (dynamics, cost, covariance)))
    solution = _solved(system, horizon)
    mean, spread = start, np.zeros((m, m))
    actions, radius = np.zeros(B.shape[1]), 0.0
    for K in np.asarray(solution.gains):
        deviations = np.sqrt(np.maximum(np.diag(K @ spread @ K.T), 0.0))
        actions = np.maximum(actions, np.abs(K @ mean) + ACTION_REACH * deviations)
        longest = np.sqrt(max(np.linalg.eigvalsh(spread)[-1], 0.0))
        radius = max(radius, float(np.linalg.norm(mean) + STATE_REACH * longest))
        closed = A - B @ K
        mean, spread = closed @ mean, closed @ spread @ closed.T + covariance
    return OptimalTrajectory(np.maximum(actions, noise), max(radius, noise), solution)


def _spaces(
    A: np.ndarray, path: OptimalTrajectory, q: int, action_bound: Any, state_bound: Any
) -> tuple[Domain, Domain]:
    m = len(A)
    states: Domain = Unbounded(m, path.states)
    if state_bound is not None:
        side = positive_number("state_bound", state_bound)
        states = Box([-side] * m, [side] * m)
    if action_bound is None:
        return states, Box(-path.actions, path.actions)
    bound = np.broadcast_to(np.asarray(float_array(action_bound, "action_bound")), (q,))
    if np.isinf(bound).all() and (bound > 0).all():
        radius = float(np.abs(np.linalg.eigvals(A)).max())
        if radius > 1 + 1e-9:
            raise ArgumentError(
                "action_bound",
                "a finite bound, as A is unstable: else a bad first plan costs without limit",
                f"no bound and a spectral radius of {radius:.4g}",
            )
        return states, Unbounded(q, float(path.actions.max()))
    if not (np.isfinite(bound) & (bound > 0)).all():
        raise ArgumentError("action_bound", "greater than 0", bound.tolist())
    return states, Box(-bound, bound)


def lqr_1d(
    seed: int = 0,
    *,
    horizon: int = 10,
    noise: float = 0.1,
    cross: bool = False,
    action_bound: Any = None,
    state_bound: Any = None,
) -> Environment:
    """A summed input: A = 1, B = 0.5, P = 1, Q = 0.5, from s = 1; no use of the seed.

    For ``cross``, ``action_bound`` and ``state_bound`` see ``linear_quadratic``.
    """
    return linear_quadratic(
        "lqr-1d",
        [[1.0]],
        [[0.5]],
        [[1.0]],
        [[0.5]],
        start=[1.0],
        horizon=horizon,
        noise=noise,
        cross=cross,
        action_bound=action_bound,
        state_bound=state_bound,
    )


def lqr_2d(
    seed: int = 0,
    *,
    horizon: int = 10,
    noise: float = 0.1,
    cross: bool = False,
    action_bound: Any = None,
    state_bound: Any = None,
) -> Environment:
    """A double integrator, steps of 0.2: place and speed, pushed; from (1, 0); as ``lqr_1d``."""
    return linear_quadratic(
        "lqr-2d",
        [[1.0, 0.2], [0.0, 1.0]],
        [[0.02], [0.2]],
        [[1.0, 0.0], [0.0, 0.1]],
        [[0.1]],
        start=[1.0, 0.0],
        horizon=horizon,
        noise=noise,
        cross=cross,
        action_bound=action_bound,
        state_bound=state_bound,
    )


def lqr_4d(
    seed: int = 0,
    *,
    horizon: int = 20,
    noise: float = 0.1,
    cross: bool = False,
    action_bound: Any = None,
    state_bound: Any = None,
) -> Environment:
    """Two carts on springs, to the wall and to each other: (x₁, v₁, x₂, v₂), two forces, Euler
    steps of 0.2; spring 1 between them, 0.5 to the wall, friction 0.5; as ``lqr_1d``."""
    step, spring, wall, friction = 0.2, 1.0, 0.5, 0.5
    A = np.eye(4) + step * np.array(
        [
            [0.0, 1.0, 0.0, 0.0],
            [-spring - wall, -friction, spring, 0.0],
            [0.0, 0.0, 0.0, 1.0],
            [spring, 0.0, -spring - wall, -friction],
        ]
    )
    B = step * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    return linear_quadratic(
        "lqr-4d",
        A,
        B,
        np.diag([1.0, 0.2, 1.0, 0.2]),
        0.1 * np.eye(2),
        start=[1.0, 0.0, -0.5, 0.0],
        horizon=horizon,
        noise=noise,
        cross=cross,
        action_bound=action_bound,
        state_bound=state_bound,
    )


def quadrotor(
    seed: int = 0,
    *,
    horizon: int = 40,
    noise: float = 0.01,
    step: float = 0.05,
    cross: bool = False,
    action_bound: Any = None,
    state_bound: Any = None,
) -> Environment:
    """A planar quadrotor linearised at hover, sampled every ``step`` seconds with actions held.

    State (x [m], z [m], θ [rad], ẋ [m/s], ż [m/s], θ̇ [rad/s]), actions (thrust beyond the weight
    over mass [m/s²], torque over inertia [rad/s²]); g = 9.81 m/s²:
    ẍ = −g θ,  z̈ = a₁,  θ̈ = a₂.  Costs x² + z² + θ² + 0.1(ẋ² + ż² + θ̇²) + 0.05 a₁² + 0.01 a₂².
    From half a metre to the side and below; the seed changes nothing.
    """
    rates = np.zeros((8, 8))
    rates[:3, 3:6] = np.eye(3)
    rates[3, 2] = -9.81
    rates[4, 6] = rates[5, 7] = 1.0
    held = scipy.linalg.expm(positive_number("step", step) * rates)
    return linear_quadratic(
        "quadrotor",
        held[:6, :6],
        held[:6, 6:],
        np.diag([1.0, 1.0, 1.0, 0.1, 0.1, 0.1]),
        np.diag([0.05, 0.01]),
        start=[0.5, -0.5, 0.0, 0.0, 0.0, 0.0],
        horizon=horizon,
        noise=noise,
        cross=cross,
        action_bound=action_bound,
        state_bound=state_bound,
    )
