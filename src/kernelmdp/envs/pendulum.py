"""A pendulum driven by a torque: its motion, and rewards for keeping it upright.

With θ = 0 upright and ω = θ̇:  ω̇ = (g/l) sin θ + u/(m l²) − f/(m l²) ω,  where m = 0.3, l = 0.5,
f = 0.005, g = 9.81 and |u| ≤ 1 (H-UCRL, Curi et al. 2020). The torque is too weak to lift the
pendulum in one move. Points are z = (θ, ω, u).
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.numerics.modules import Module, jit

#: m, as in H-UCRL.
MASS = 0.3
#: l, as in H-UCRL.
LENGTH = 0.5
#: f, as in H-UCRL.
FRICTION = 0.005
#: g, as in H-UCRL.
GRAVITY = 9.81
#: g/l: the largest acceleration by gravity.
GRAVITY_RATE = GRAVITY / LENGTH
#: 1/(m l²): the acceleration by the torque u = 1.
TORQUE_RATE = 1 / (MASS * LENGTH**2)
#: f/(m l²): the damping of the speed.
DAMPING_RATE = FRICTION * TORQUE_RATE

#: The state space: a periodic angle, and speeds that motion from rest with |u| ≤ 1 hardly exceeds.
STATES = Box([-math.pi, -12.0], [math.pi, 12.0], periodic=[0])
#: Hanging at rest. The box contains −π and not π.
HANGING = (-math.pi, 0.0)
#: The value of ``tolerance`` at one margin outside its interval. It defines what a margin is.
VALUE_AT_MARGIN = 0.1


def acceleration(angle: Array, speed: Array, torque: Array) -> Array:
    """Compute ω̇, elementwise.

    Args:
        angle: θ, of any shape.
        speed: ω, of the same shape.
        torque: u, of the same shape.

    Returns:
        ω̇, of the same shape.
    """
    return GRAVITY_RATE * jnp.sin(angle) + TORQUE_RATE * torque - DAMPING_RATE * speed


def energy(angle: Array, speed: Array) -> Array:
    """Compute ω²/2 + (g/l) cos θ, elementwise. It is constant without torque and friction.

    Args:
        angle: θ, of any shape.
        speed: ω, of the same shape.

    Returns:
        The energy, of the same shape. It is g/l upright at rest.
    """
    return 0.5 * speed**2 + GRAVITY_RATE * jnp.cos(angle)


class PendulumDynamics(Module):
    """The state after some seconds of constant torque: (n, 3) -> (n, 2).

    The integrator is Runge-Kutta of order 4. The result is neither wrapped nor clipped: that is
    left to the projection. Here it would make the motion less smooth (design 3).

    Attributes:
        seconds: The duration of a step.
        substeps: The number of equal steps of the integrator.
    """

    seconds: float = eqx.field(static=True)
    substeps: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, "n 2"]:
        return _integrate(self, points)


# Compiled on its own: outside a compiled program, every call would compile the loop again and keep
# the result.
@jit
def _integrate(dynamics: PendulumDynamics, points: Array) -> Array:
    torque, h = points[:, 2], dynamics.seconds / dynamics.substeps

    def slope(angle: Array, speed: Array) -> tuple[Array, Array]:
        return speed, acceleration(angle, speed, torque)

    def substep(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        angle, speed = state
        a1, s1 = slope(angle, speed)
        a2, s2 = slope(angle + h / 2 * a1, speed + h / 2 * s1)
        a3, s3 = slope(angle + h / 2 * a2, speed + h / 2 * s2)
        a4, s4 = slope(angle + h * a3, speed + h * s3)
        return (
            angle + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
            speed + h / 6 * (s1 + 2 * s2 + 2 * s3 + s4),
        )

    state = jax.lax.fori_loop(0, dynamics.substeps, substep, (points[:, 0], points[:, 1]))
    return jnp.stack(state, axis=1)


def tolerance(values: Array, low: float, high: float, margin: float) -> Array:
    """Compute a smooth indicator: 1 on [low, high], and outside a Gaussian of the distance.

    Args:
        values: The values, of any shape.
        low: The lower end of the interval.
        high: The upper end.
        margin: The distance at which the result is 0.1.

    Returns:
        Numbers from 0 to 1, of the same shape.
    """
    distance = jnp.maximum(jnp.maximum(low - values, values - high), 0.0)
    return jnp.exp(math.log(VALUE_AT_MARGIN) * (distance / margin) ** 2)


class SparseReward(Module):
    """The reward k · (tol(cos θ) · tol(ω) + c (tol(u) − 1)): (n, 3) -> (n,).

    With tol(cos θ; [0.95, 1], 0.1), tol(ω; [−0.5, 0.5], 0.5) and tol(u; [−0.1, 0.1], 0.1).

    Attributes:
        penalty: The penalty c on torque.
        macro: The number k of base steps for which a torque is held.
    """

    penalty: Float[Array, ""]
    macro: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        upright = tolerance(jnp.cos(points[:, 0]), 0.95, 1.0, 0.1)
        still = tolerance(points[:, 1], -0.5, 0.5, 0.5)
        idle = tolerance(points[:, 2], -0.1, 0.1, 0.1)
        return self.macro * (upright * still + self.penalty * (idle - 1))


class SmoothReward(Module):
    """The reward exp(−|e^{iθ} − 1|²/(2 w²) − ω²/(2 s²)) − c u²: (n, 3) -> (n,).

    The bump is the kernel function of periodic(w)[0] * se(s)[1] at (0, 0), so its norm for this
    kernel is 1. c u² has norm c for the quadratic kernel of u.

    Attributes:
        width: The width w of the bump in the angle.
        speed: The width s of the bump in the speed.
        penalty: The penalty c on torque.
    """

    width: float = eqx.field(static=True)
    speed: float = eqx.field(static=True)
    penalty: float = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        angle_part = 2 * (1 - jnp.cos(points[:, 0])) / self.width**2
        speed_part = (points[:, 1] / self.speed) ** 2
        return jnp.exp(-0.5 * (angle_part + speed_part)) - self.penalty * points[:, 2] ** 2
