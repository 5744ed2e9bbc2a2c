"""Linear-quadratic control: s' = As + Ba + ε, mean reward −(sᵀPs + 2sᵀNa + aᵀQa) (note B15, D8).

By default, states are unbounded and actions are bounded. The bound limits the damage of a random
policy and of a bad first plan. It is the mean action of the optimal policy plus six standard
deviations, so the optimal policy hardly ever meets it. The cost of the bound is part of the
optimum's error.

Kernels and norms:

- Transitions are learned as s' − s, which is linear. So B_P = √(‖A − I‖² + ‖B‖²) in Frobenius norms
  (note A7 has A itself).
- Rewards are quadratic in s plus quadratic in a, so B_R = √(‖P‖² + ‖Q‖²). With ``cross`` they are
  quadratic in z, so B_R = ‖C‖.

L = 2ρ max_{h ≥ 2} λ_max(G_h) is the slope of U_h on a ball. Its radius ρ covers the states of the
optimal policy up to three standard deviations. On all of R^m there is no finite L.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy
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

#: Standard deviations up to which the bounds of actions cover those of the optimal policy. It
#: hardly ever meets such bounds.
ACTION_DEVIATIONS = 6.0
#: Standard deviations up to which the ball of states covers those of the optimal policy. A larger
#: ball has a larger L.
STATE_DEVIATIONS = 3.0
#: Nodes of a grid along each axis of bounded states, by the number of coordinates. More nodes are
#: more exact and slower.
GRID_POINTS = {1: 101, 2: 41}
#: How L was found, for tables and files.
LIPSCHITZ_RULE = (
    "2 ρ max λ_max(G_h), h ≥ 2, on the ball that holds the optimal policy's states (note B15)"
)
#: The same for bounded states, where no bound of L is known.
BOUNDED_LIPSCHITZ_RULE = "estimate: that of the system without bounds on states"


_solve = jit(optimal_solution)


class QuadraticCostReward(Module):
    """The mean reward −zᵀCz: points (n, d) -> (n,).

    Attributes:
        cost: C, (d, d).
    """

    cost: Float[Array, "d d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return -jnp.sum((points @ self.cost) * points, axis=1)


class LinearDynamics(Module):
    """The mean next state Θz: points (n, d) -> (n, m).

    Attributes:
        dynamics: Θ = (A, B), (m, d).
    """

    dynamics: Float[Array, "m d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return points @ self.dynamics.T


@dataclasses.dataclass(frozen=True)
class OptimalExtent:
    """How far the optimal policy goes from a start: means plus some standard deviations.

    Attributes:
        actions: The largest absolute actions, (q,).
        radius: The radius of a ball around 0 that contains the states.
        solution: The solution of the Riccati equation.
    """

    actions: np.ndarray
    radius: float
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
    """Make an environment of linear-quadratic control.

    Args:
        name: The name of the environment.
        A: The dynamics of states, (m, m).
        B: The effect of actions, (m, q).
        P: The cost of states, (m, m), symmetric.
        Q: The cost of actions, (q, q), symmetric.
        start: The first state, (m,).
        horizon: The number of periods, H.
        noise: The standard deviation of the Gaussian noise on states and on rewards.
        N: The cost of products of states and actions, (m, q). None means 0.
        cross: Whether the reward's kernel has a cross term, which N needs.
        action_bound: The largest absolute action: one number, or one for each action. None means
            the rule of this module. Infinity means no bound, which is allowed if A is stable.
        state_bound: Confines states to a box around 0 with this half-width. Linear control is
            then not optimal. With one or two coordinates a grid planner solves the system and
            gives its optimum; with more the optimum is unknown. None means no bound.

    Returns:
        The environment.

    Raises:
        ArgumentError: If a matrix is not symmetric, or ``cross`` is missing.
        ShapeError: If the shapes of the matrices do not fit.
    """
    A, B, P, Q = (_matrix(k, v) for k, v in (("A", A), ("B", B), ("P", P), ("Q", Q)))
    m, q = B.shape
    N = np.zeros((m, q)) if N is None else _matrix("N", N)
    for argument, matrix, shape in (("A", A, (m, m)), ("P", P, (m, m)), ("Q", Q, (q, q))):
        if matrix.shape != shape:
            raise ShapeError(argument, f"shape {shape} as B has {(m, q)}", f"shape {matrix.shape}")
    if N.shape != (m, q):
        raise ShapeError("N", f"shape {(m, q)} like B", f"shape {N.shape}")
    for argument, matrix in (("P", P), ("Q", Q)):
        if not np.allclose(matrix, matrix.T, atol=1e-12):
            raise ArgumentError(argument, "a symmetric matrix", matrix.tolist())
    require_convex(P, N, Q)
    if N.any() and not cross:
        raise ArgumentError("cross", "True, as a cross term N needs it", cross)
    horizon, noise = integer("horizon", horizon, least=1), positive_number("noise", noise)
    first_state = np.asarray(float_array(start, "start"))
    optimal = _optimal_extent(A, B, P, N, Q, first_state, horizon, noise)
    states, actions = _spaces(A, optimal, q, action_bound, state_bound)
    cost = np.block([[P, N], [N.T, Q]])
    dynamics = np.concatenate([A, B], axis=1)
    curvatures = optimal.solution.curvatures[1:-1]
    steepest = max([np.linalg.eigvalsh(np.asarray(G))[-1] for G in curvatures] + [0])
    mdp = MDP(
        MeanModel(QuadraticCostReward(jnp.asarray(cost)), LinearDynamics(jnp.asarray(dynamics))),
        states=states,
        actions=actions,
        horizon=horizon,
        reward_noise=Gaussian(noise),
        transition_noise=Gaussian(noise),
        lipschitz=2 * optimal.radius * float(steepest),
    )
    reward_kernel = Quadratic() if cross else Quadratic().on("state") + Quadratic().on("action")
    count = GRID_POINTS.get(m, 9)
    # Projection to a box lowers costs, so neither Riccati nor its L solves a bounded system.
    on_grid = state_bound is not None and m in GRID_POINTS
    return Environment.of(
        name=name,
        mdp=mdp,
        start=tuple(float(x) for x in first_state),
        reward_kernel=reward_kernel,
        transition_kernel=Linear() @ Index(m),
        offset="identity",
        scale=(1.0,) * m,
        state_points=(count,) * m,
        action_points=(21 if q == 1 else 9,) * q,
        optimum_points=((count,) * m, (21 if q == 1 else 9,) * q),
        norm_reward=float(np.linalg.norm(cost)),
        norm_transition=float(np.linalg.norm(dynamics - np.eye(m, m + q))),
        lipschitz_rule=LIPSCHITZ_RULE if state_bound is None else BOUNDED_LIPSCHITZ_RULE,
        planner="grid" if on_grid else "riccati",
    )


def _matrix(argument: str, value: Any) -> np.ndarray:
    array = np.asarray(float_array(value, argument))
    if array.ndim != 2 or array.size == 0:
        raise ShapeError(argument, "a matrix", f"shape {array.shape}")
    require_finite(argument, array)
    return array


def _optimal_extent(
    A: np.ndarray,
    B: np.ndarray,
    P: np.ndarray,
    N: np.ndarray,
    Q: np.ndarray,
    start: np.ndarray,
    horizon: int,
    noise: float,
) -> OptimalExtent:
    """Follow means and covariances of the optimal policy's states through the periods."""
    m = len(A)
    if start.shape != (m,):
        raise ShapeError("start", f"a state of {m} numbers", f"shape {start.shape}")
    noise_covariance = noise**2 * np.eye(m)
    dynamics, cost = np.concatenate([A, B], axis=1), np.block([[P, N], [N.T, Q]])
    system = LinearQuadraticSystem(*(jnp.asarray(x) for x in (dynamics, cost, noise_covariance)))
    solution = _solve(system, horizon)
    mean, covariance = start, np.zeros((m, m))
    actions, radius = np.zeros(B.shape[1]), 0.0
    for K in np.asarray(solution.gains):
        deviations = np.sqrt(np.maximum(np.diag(K @ covariance @ K.T), 0.0))
        actions = np.maximum(actions, np.abs(K @ mean) + ACTION_DEVIATIONS * deviations)
        longest = np.sqrt(max(np.linalg.eigvalsh(covariance)[-1], 0.0))
        radius = max(radius, float(np.linalg.norm(mean) + STATE_DEVIATIONS * longest))
        closed_loop = A - B @ K
        mean = closed_loop @ mean
        covariance = closed_loop @ covariance @ closed_loop.T + noise_covariance
    return OptimalExtent(np.maximum(actions, noise), max(radius, noise), solution)


def _spaces(
    A: np.ndarray, optimal: OptimalExtent, q: int, action_bound: Any, state_bound: Any
) -> tuple[Domain, Domain]:
    """Return the spaces of states and of actions."""
    m = len(A)
    states: Domain = Unbounded(m, optimal.radius)
    if state_bound is not None:
        half_width = positive_number("state_bound", state_bound)
        states = Box([-half_width] * m, [half_width] * m)
    if action_bound is None:
        return states, Box(-optimal.actions, optimal.actions)
    bound = np.broadcast_to(np.asarray(float_array(action_bound, "action_bound")), (q,))
    if np.isinf(bound).all() and (bound > 0).all():
        spectral_radius = float(np.abs(np.linalg.eigvals(A)).max())
        if spectral_radius > 1 + 1e-9:
            raise ArgumentError(
                "action_bound",
                "a finite bound, as A is unstable: else a bad first plan costs without limit",
                f"no bound and a spectral radius of {spectral_radius:.4g}",
            )
        return states, Unbounded(q, float(optimal.actions.max()))
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
    """Make an integrator: A = 1, B = 0.5, P = 1, Q = 0.5, from s = 1.

    Args:
        seed: Not used: there is one such environment.
        horizon: As for ``linear_quadratic``.
        noise: As for ``linear_quadratic``.
        cross: As for ``linear_quadratic``.
        action_bound: As for ``linear_quadratic``.
        state_bound: As for ``linear_quadratic``.

    Returns:
        The environment.
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
    """Make a double integrator with steps of 0.2: position and velocity, from (1, 0).

    Args:
        seed: Not used: there is one such environment.
        horizon: As for ``linear_quadratic``.
        noise: As for ``linear_quadratic``.
        cross: As for ``linear_quadratic``.
        action_bound: As for ``linear_quadratic``.
        state_bound: As for ``linear_quadratic``.

    Returns:
        The environment.
    """
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
    """Make two carts that springs connect to each other and to walls.

    The state is (x₁, v₁, x₂, v₂), and the actions are two forces. The spring between the carts has
    the constant 1, those to the walls 0.5; the friction is 0.5. Euler steps of 0.2.

    Args:
        seed: Not used: there is one such environment.
        horizon: As for ``linear_quadratic``.
        noise: As for ``linear_quadratic``.
        cross: As for ``linear_quadratic``.
        action_bound: As for ``linear_quadratic``.
        state_bound: As for ``linear_quadratic``.

    Returns:
        The environment.
    """
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
    """Make a planar quadrotor, linearised at hover and discretised with actions held constant.

    The state is (x [m], z [m], θ [rad], ẋ [m/s], ż [m/s], θ̇ [rad/s]). The actions are (thrust
    beyond the weight over mass [m/s²], torque over inertia [rad/s²]). With g = 9.81 m/s²:

        ẍ = −g θ,  z̈ = a₁,  θ̈ = a₂.

    The cost is x² + z² + θ² + 0.1(ẋ² + ż² + θ̇²) + 0.05 a₁² + 0.01 a₂². Episodes start half a metre
    to the side and half a metre below the target.

    Args:
        seed: Not used: there is one such environment.
        horizon: As for ``linear_quadratic``.
        noise: As for ``linear_quadratic``.
        step: Seconds between two actions.
        cross: As for ``linear_quadratic``.
        action_bound: As for ``linear_quadratic``.
        state_bound: As for ``linear_quadratic``.

    Returns:
        The environment.
    """
    rates = np.zeros((8, 8))
    rates[:3, 3:6] = np.eye(3)
    rates[3, 2] = -9.81
    rates[4, 6] = rates[5, 7] = 1.0
    discrete = scipy.linalg.expm(positive_number("step", step) * rates)
    return linear_quadratic(
        "quadrotor",
        discrete[:6, :6],
        discrete[:6, 6:],
        np.diag([1.0, 1.0, 1.0, 0.1, 0.1, 0.1]),
        np.diag([0.05, 0.01]),
        start=[0.5, -0.5, 0.0, 0.0, 0.0, 0.0],
        horizon=horizon,
        noise=noise,
        cross=cross,
        action_bound=action_bound,
        state_bound=state_bound,
    )
