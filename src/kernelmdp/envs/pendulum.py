"""A pendulum driven by a torque: its motion, and rewards for holding it upright.

θ = 0 is upright, ω = θ̇:  ω̇ = (g/l) sin θ + u/(m l²) − f/(m l²) ω  with m = 0.3, l = 0.5, f = 0.005,
g = 9.81 and |u| ≤ 1 (H-UCRL, Curi et al. 2020). The torque is too weak to lift it in one go.
Points are z = (θ, ω, u).
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.numerics.modules import Module, jit

MASS, LENGTH, FRICTION, GRAVITY = 0.3, 0.5, 0.005, 9.81
PULL, TORQUE = GRAVITY / LENGTH, 1 / (MASS * LENGTH**2)
DAMPING = FRICTION * TORQUE

#: An angle that comes round, and speeds that motion from rest under |u| ≤ 1 hardly exceeds.
STATES = Box([-math.pi, -12.0], [math.pi, 12.0], periodic=[0])
#: Hanging still; the box has −π for π.
HANGING = (-math.pi, 0.0)
#: At one margin outside its interval ``tolerance`` has fallen to this.
AT_MARGIN = 0.1


def acceleration(angle: Array, speed: Array, torque: Array) -> Array:
    """ω̇ at θ, ω and u, elementwise."""
    return PULL * jnp.sin(angle) + TORQUE * torque - DAMPING * speed


def energy(angle: Array, speed: Array) -> Array:
    """ω²/2 + (g/l) cos θ: constant without torque and friction; g/l at rest upright."""
    return 0.5 * speed**2 + PULL * jnp.cos(angle)


class PendulumDynamics(Module):
    """The state after ``seconds`` of a constant torque: (n, 3) -> (n, 2), the angle unwrapped.

    Runge-Kutta of order 4 in ``substeps`` equal parts. Nothing is clipped or wrapped here: that
    is the projection's work, and would cost smoothness (design 3).
    """

    seconds: float = eqx.field(static=True)
    substeps: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, "n 2"]:
        return _moved(self, points)


# Compiled by itself: a loop that runs outside a program is compiled anew at every call, and kept.
@jit
def _moved(motion: PendulumDynamics, points: Array) -> Array:
    torque, h = points[:, 2], motion.seconds / motion.substeps

    def slope(angle: Array, speed: Array) -> tuple[Array, Array]:
        return speed, acceleration(angle, speed, torque)

    def part(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        angle, speed = state
        a1, s1 = slope(angle, speed)
        a2, s2 = slope(angle + h / 2 * a1, speed + h / 2 * s1)
        a3, s3 = slope(angle + h / 2 * a2, speed + h / 2 * s2)
        a4, s4 = slope(angle + h * a3, speed + h * s3)
        return (
            angle + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
            speed + h / 6 * (s1 + 2 * s2 + 2 * s3 + s4),
        )

    ends = jax.lax.fori_loop(0, motion.substeps, part, (points[:, 0], points[:, 1]))
    return jnp.stack(ends, axis=1)


def tolerance(values: Array, low: float, high: float, margin: float) -> Array:
    """1 on [low, high], outside a Gaussian of the distance that is 0.1 at one margin."""
    outside = jnp.maximum(jnp.maximum(low - values, values - high), 0.0)
    return jnp.exp(math.log(AT_MARGIN) * (outside / margin) ** 2)


class SparseReward(Module):
    """``hold`` · (tol(cos θ) · tol(ω) + c (tol(u) − 1)), c the penalty: (n, 3) -> (n,).

    tol(cos θ; [0.95, 1], 0.1), tol(ω; [−0.5, 0.5], 0.5), tol(u; [−0.1, 0.1], 0.1).
    """

    penalty: Float[Array, ""]
    hold: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        upright = tolerance(jnp.cos(points[:, 0]), 0.95, 1.0, 0.1)
        still = tolerance(points[:, 1], -0.5, 0.5, 0.5)
        idle = tolerance(points[:, 2], -0.1, 0.1, 0.1)
        return self.hold * (upright * still + self.penalty * (idle - 1))


class SmoothReward(Module):
    """exp(−|e^{iθ} − 1|²/(2 w²) − ω²/(2 s²)) − c u²: (n, 3) -> (n,).

    The bump is the kernel function of periodic(w)[0] * se(s)[1] at (0, 0), so its norm there is 1;
    c u² has norm c for the quadratic kernel of u.
    """

    width: float = eqx.field(static=True)
    speed: float = eqx.field(static=True)
    penalty: float = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        apart = 2 * (1 - jnp.cos(points[:, 0])) / self.width**2
        fast = (points[:, 1] / self.speed) ** 2
        return jnp.exp(-0.5 * (apart + fast)) - self.penalty * points[:, 2] ** 2
