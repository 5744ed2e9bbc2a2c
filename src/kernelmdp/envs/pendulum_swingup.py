"""Swing-up with a sparse reward and a penalty on torque: the field's test of optimism.

There are 400 base steps of 1/80 s from hanging, no noise, and seven torques. |u| ≤ 0.1 costs
nothing, so ±0.1 are among them. With ``macro`` = 4, one step holds its torque for four base steps.
Its reward is *defined* as four times the base reward at the start of the step, because a known
reward must be a function of z alone. ``base_return`` computes what the same actions earn in the
400-step problem.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import FiniteSet
from kernelmdp.envs.drawing import PendulumDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.pendulum import HANGING, STATES, PendulumDynamics, SparseReward
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Constant, Index, Kernel, Linear, Periodic, SquaredExponential
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel, StateGrid, TablePositions, Value
from kernelmdp.numerics.checks import as_points, integer
from kernelmdp.numerics.modules import jit

#: The number of base steps of an episode.
STEPS = 400
#: The duration of a base step.
SECONDS = 1 / 80
#: Steps of the integrator in a base step.
SUBSTEPS = 2
#: The action space.
TORQUES = FiniteSet([[-1.0], [-0.5], [-0.1], [0.0], [0.1], [0.5], [1.0]])
#: Standard deviation of the reward of a base step that regressions assume. The reward is flat and
#: then steep. It is no function of its kernel's RKHS: if it is taken as exact, the posterior
#: becomes certain of valleys that do not exist. This value, ``NORMS`` and the kernel were tuned on
#: seeds from 100 on.
REWARD_FLOOR = 0.125
#: Standard deviation of scaled increments that regressions assume.
RESIDUAL_FLOOR = 3e-3
#: Norms of reward and motion that GP-UCRL assumes. The reward has no RKHS norm. Interpolants of the
#: motion at 4,000 points have norms of 13.7, and 16.5 with ``short``. So "practical" sets, which
#: are a tenth as wide, do not contain the motion.
NORMS = (15.0, 4.0)
#: The norm of the motion for the additive kernel, by ``short``. Functions within 6e-5 of the scaled
#: motion have norms of 1.03, and 0.74 with ``short``. The remaining error moves the sets by a
#: fiftieth of a standard deviation, which these values cover. Closer functions have slowly growing
#: norms: like all such motion, this one is in no RKHS of an SE kernel.
ADDITIVE_NORMS = {False: 1.1, True: 0.8}
#: Standard deviation of scaled increments that regressions assume with the additive kernel. The
#: error of compiled kernels widens the sets in proportion to its inverse.
ADDITIVE_FLOOR = 0.05
#: Errors of compiled kernels as a share of the noise variance, by (additive, short). Short
#: lengthscales need a rank near 1,000 even for an error as large as the noise.
ACCURACIES = {
    (False, False): 0.1,
    (False, True): 1.2,
    (True, False): 1e-4,
    (True, True): 1e-3,
}
#: Optimal values from hanging by (macro, penalty), from ``solve`` on grids from 120 × 81 to 960 ×
#: 641. The value is the best return of a policy that was found, so the optimum is not below it (up
#: to rounding). The error is its distance from the values of the finest grids and from their limit.
OPTIMA = {
    (1, 0.0): Value(299.14, 0.10, "estimate"),
    (1, 0.1): Value(288.35, 0.15, "estimate"),
    (1, 0.2): Value(278.49, 0.20, "estimate"),
    (4, 0.0): Value(297.63, 0.20, "estimate"),
    (4, 0.1): Value(285.85, 0.15, "estimate"),
    (4, 0.2): Value(276.40, 0.35, "estimate"),
}


def pendulum_swingup(
    seed: int = 0,
    *,
    penalty: float = 0.2,
    macro: int = 4,
    short: bool = False,
    additive: bool = False,
) -> Environment:
    """Make the swing-up task.

    Args:
        seed: Not used: there is one such environment.
        penalty: The penalty c on torque, at least 0 and below 1.
        macro: The number of base steps for which a torque is held, a divisor of 400.
        short: Whether the suggested kernel has lengthscales half as long.
        additive: Whether the suggested kernel is additive. It assumes what all pendulums share:
            motion that is nearly linear in speed and torque. The norm of the truth is then ten
            times smaller, and confidence sets that contain it are narrow enough to be useful.

    Returns:
        The environment.

    Raises:
        ArgumentError: If ``macro`` or ``penalty`` is invalid.
    """
    integer("seed", seed, least=0)
    macro = integer("macro", macro, least=1)
    if STEPS % macro:
        raise ArgumentError("macro", f"a divisor of {STEPS}", macro)
    if not 0 <= penalty < 1:
        raise ArgumentError("penalty", "at least 0 and below 1", penalty)
    seconds = macro * SECONDS
    mdp = MDP(
        MeanModel(
            SparseReward(jnp.asarray(penalty, float), macro),
            PendulumDynamics(seconds, SUBSTEPS * macro),
        ),
        states=STATES,
        actions=TORQUES,
        horizon=STEPS // macro,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
        reward_range=(-macro * float(penalty), float(macro)),
        # How much a state changes in a step at 5 rad/s and 20 rad/s². Scaled increments then have
        # a size of about 1.
        metric=(5 * seconds, 20 * seconds),
    )
    # The bump of the reward is as narrow as its margins. Its size grows with ``macro``.
    bump = 0.25 * (Periodic(0.5).on(0) * SquaredExponential(1.0).on(1))
    torque_cost = 0.1 * SquaredExponential(0.3).on(2)
    return Environment.of(
        name="pendulum-swingup",
        mdp=mdp,
        start=HANGING,
        reward_kernel=float(macro**2) * (bump + torque_cost),
        transition_kernel=_motion_kernel(0.5 if short else 1.0, additive) @ Index(2),
        offset="identity",
        scale=mdp.metric,
        state_points=(120, 81),
        action_points=(TORQUES.count,),
        optimum_points=((480, 321), (TORQUES.count,)),
        lipschitz_rule="infinite: no noise, and motion near upright is unstable",
        noise_floors=(macro * REWARD_FLOOR, ADDITIVE_FLOOR if additive else RESIDUAL_FLOOR),
        assumed_norms=(NORMS[0], ADDITIVE_NORMS[short]) if additive else NORMS,
        accuracy=ACCURACIES[additive, short],
        optimum=OPTIMA.get((macro, float(penalty))),
        drawing=PendulumDrawing(),
    )


def _motion_kernel(factor: float, additive: bool) -> Kernel:
    """Return SE on (cos θ, sin θ, ω, u) with lengthscales (1, 1, 10, 2) times a factor.

    If additive, it is a small part beside a large part p(θ) + q(θ) ω + a ω + b u with smooth p, q.
    """
    lengthscales = [10.0 * factor, 2.0 * factor]
    general = Periodic(factor).on(0) * SquaredExponential(lengthscales).on([1, 2])
    if not additive:
        return general
    speed = (1 / 144) * Linear().on(1)  # The speed is at most 12 rad/s.
    structured = Periodic(2.0).on(0) * (Constant(1.0) + speed) + speed + Linear().on(2)
    return 0.1 * general + 100.0 * structured


def base_return(environment: Environment, start: Any, actions: Any) -> float:
    """Sum the 400 base rewards of playing actions from a state, each held for ``macro`` steps.

    Args:
        environment: The environment "pendulum-swingup".
        start: The first state, (2,).
        actions: The torques, (H, 1).

    Returns:
        The return in the 400-step problem.

    Raises:
        ArgumentError: If it is another environment.
        ShapeError: If there are not H actions.

    >>> import kernelmdp as km
    >>> env = km.make("pendulum-swingup")
    >>> base_return(env, env.start, jnp.zeros((100, 1)))  # hanging still costs and earns nothing
    0.0
    """
    reward = environment.known_reward
    if not isinstance(reward, SparseReward):
        raise ArgumentError("environment", "pendulum-swingup", environment.name)
    plan = as_points("actions", actions, dimension=1)
    if plan.shape[0] != environment.mdp.horizon:
        raise ShapeError("actions", f"shape ({environment.mdp.horizon}, 1)", plan.shape)
    state = environment.reset(key=jax.random.key(0), state=start)
    torques = jnp.repeat(jnp.asarray(plan[:, 0], float), reward.macro)
    return float(_sum_rewards(SparseReward(reward.penalty, 1), state, torques))


@jit
def _sum_rewards(
    reward: SparseReward, start: Float[Array, " 2"], torques: Float[Array, " H"]
) -> Array:
    dynamics = PendulumDynamics(SECONDS, SUBSTEPS)

    def step(state: Array, torque: Array) -> tuple[Array, Array]:
        point = jnp.concatenate([state, torque[None]])[None, :]
        return STATES.nearest(dynamics(point))[0], reward(point)[0]

    return jnp.sum(jax.lax.scan(step, start, torques)[1])


def solve(environment: Environment, counts: tuple[int, int]) -> tuple[float, np.ndarray]:
    """Solve the task by dynamic programming on a grid. ``OPTIMA`` was computed with it.

    Args:
        environment: The environment.
        counts: The numbers of nodes along both axes of the state.

    Returns:
        The optimal value at the start, and the actions (H, 1) that are greedy for the values of the
        grid along the true motion.
    """
    grid = StateGrid(STATES, counts, NO_NOISE)
    start = jnp.asarray(environment.draw_start(jax.random.key(0)))
    first, later = _tables(environment.mdp, grid)
    value = float(grid.value_at(first, start[None, :])[0])
    return value, np.asarray(_greedy(environment.mdp, grid, later, start))


@jit
def _tables(mdp: MDP, grid: StateGrid) -> tuple[Float[Array, " N"], Float[Array, "H N"]]:
    """Return V_1, and V_{h+1} for h = 1..H. These are in 32 bits, as fine grids are large."""
    nodes, torques = jnp.asarray(grid.nodes), jnp.asarray(np.array(TORQUES.points))

    def torque_row(torque: Array) -> tuple[Array, TablePositions]:
        column = jnp.broadcast_to(torque[None, :], (nodes.shape[0], 1))
        prediction = mdp.model(jnp.concatenate([nodes, column], axis=1))
        return prediction.reward, grid.stencil(prediction.state)

    rows = jax.lax.map(torque_row, torques)

    def backup(next_values: Array, _: None) -> tuple[Array, Array]:
        def improve(best: Array, row: tuple[Array, TablePositions]) -> tuple[Array, None]:
            return jnp.maximum(best, row[0] + row[1].read(next_values)), None

        values, _ = jax.lax.scan(improve, jnp.full(nodes.shape[0], -jnp.inf), rows)
        return values, next_values.astype(jnp.float32)

    first, later = jax.lax.scan(backup, jnp.zeros(nodes.shape[0]), None, length=mdp.horizon)
    return first, later[::-1]


@jit
def _greedy(
    mdp: MDP, grid: StateGrid, later: Float[Array, "H N"], start: Float[Array, " 2"]
) -> Float[Array, "H 1"]:
    torques = jnp.asarray(np.array(TORQUES.points))

    def step(state: Array, next_values: Array) -> tuple[Array, Array]:
        states = jnp.broadcast_to(state[None, :], (TORQUES.count, 2))
        prediction = mdp.model(jnp.concatenate([states, torques], axis=1))
        best = jnp.argmax(
            prediction.reward + grid.stencil(prediction.state).read(next_values.astype(float))
        )
        return STATES.nearest(prediction.state)[best], torques[best]

    return jax.lax.scan(step, start, later)[1]
