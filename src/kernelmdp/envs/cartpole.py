"""A pole on a cart that is pushed along a track: motion, energy and where the tip is.

States are (x, ẋ, θ, θ̇) in this order: the cart's place and speed to the right, the pole's angle
clockwise with θ = 0 upright, and its speed. Points are z = (x, ẋ, θ, θ̇, u). For a uniform pole of
mass m and length l on a cart of mass M with friction b, under the force F (Lagrange):

    (M + m) ẍ + (m l/2)(θ̈ cos θ − θ̇² sin θ) = F − b ẋ,    θ̈ = (3/(2l)) (g sin θ − ẍ cos θ).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.numerics.modules import Module


class CartPoleDynamics(Module):
    """One step of Euler's rule: (n, 5) -> (n, 4), neither wrapped nor clipped."""

    cart: float = eqx.field(static=True)
    pole: float = eqx.field(static=True)
    length: float = eqx.field(static=True)
    friction: float = eqx.field(static=True)
    gravity: float = eqx.field(static=True)
    #: The force of u = 1.
    force: float = eqx.field(static=True)
    seconds: float = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 5"]) -> Float[Array, "n 4"]:
        _, speed, _, turning, _ = points.T
        push, turn = self.accelerations(points)
        return points[:, :4] + self.seconds * jnp.stack([speed, push, turning, turn], axis=1)

    def accelerations(
        self, points: Float[Array, "n 5"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """ẍ and θ̈: θ̈ of the second equation put into the first."""
        _, speed, angle, turning, action = points.T
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        pushes = self.force * action - self.friction * speed
        swings = 0.5 * self.pole * self.length * turning**2 * sine
        leans = 0.75 * self.pole * self.gravity * sine * cosine
        push = (pushes + swings - leans) / (self.cart + self.pole * (1 - 0.75 * cosine**2))
        return push, 1.5 / self.length * (self.gravity * sine - push * cosine)

    def energy(self, states: Float[Array, "n 4"]) -> Float[Array, " n"]:
        """Kinetic and potential energy: constant in time without force and friction."""
        _, speed, angle, turning = states.T
        moving = 0.5 * (self.cart + self.pole) * speed**2 + self.pole * self.length * (
            0.5 * speed * turning * jnp.cos(angle) + self.length * turning**2 / 6
        )
        return moving + 0.5 * self.pole * self.gravity * self.length * jnp.cos(angle)
