"""The motion and energy of a cart-pole: a pole on a cart that is pushed along a track.

States are (x, ẋ, θ, θ̇) in this order: position and velocity of the cart to the right, angle of the
pole clockwise with θ = 0 upright, and its angular velocity. Points are z = (x, ẋ, θ, θ̇, u). For a
uniform pole of mass m and length l on a cart of mass M with friction b, under the force F
(Lagrange):

    (M + m) ẍ + (m l/2)(θ̈ cos θ − θ̇² sin θ) = F − b ẋ,    θ̈ = (3/(2l)) (g sin θ − ẍ cos θ).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.numerics.modules import Module


class CartPoleDynamics(Module):
    """One step of Euler's rule: (n, 5) -> (n, 4), neither wrapped nor clipped.

    Attributes:
        cart_mass: M.
        pole_mass: m.
        length: The length of the pole, l.
        friction: b.
        gravity: g.
        force: The force F of the action u = 1.
        seconds: The duration of a step.
    """

    cart_mass: float = eqx.field(static=True)
    pole_mass: float = eqx.field(static=True)
    length: float = eqx.field(static=True)
    friction: float = eqx.field(static=True)
    gravity: float = eqx.field(static=True)
    force: float = eqx.field(static=True)
    seconds: float = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 5"]) -> Float[Array, "n 4"]:
        _, speed, _, turning, _ = points.T
        cart, pole = self.accelerations(points)
        return points[:, :4] + self.seconds * jnp.stack([speed, cart, turning, pole], axis=1)

    def accelerations(
        self, points: Float[Array, "n 5"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Compute ẍ and θ̈, by substituting the second equation into the first.

        Args:
            points: z = (x, ẋ, θ, θ̇, u), (n, 5).

        Returns:
            ẍ and θ̈, (n,) each.
        """
        _, speed, angle, turning, action = points.T
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        external = self.force * action - self.friction * speed
        centrifugal = 0.5 * self.pole_mass * self.length * turning**2 * sine
        weight = 0.75 * self.pole_mass * self.gravity * sine * cosine
        inertia = self.cart_mass + self.pole_mass * (1 - 0.75 * cosine**2)
        cart = (external + centrifugal - weight) / inertia
        return cart, 1.5 / self.length * (self.gravity * sine - cart * cosine)

    def energy(self, states: Float[Array, "n 4"]) -> Float[Array, " n"]:
        """Compute kinetic plus potential energy. It is constant without force and friction.

        Args:
            states: (x, ẋ, θ, θ̇), (n, 4).

        Returns:
            The energy, (n,).
        """
        _, speed, angle, turning = states.T
        mass_length = self.pole_mass * self.length
        kinetic = 0.5 * (self.cart_mass + self.pole_mass) * speed**2 + mass_length * (
            0.5 * speed * turning * jnp.cos(angle) + self.length * turning**2 / 6
        )
        return kinetic + 0.5 * self.pole_mass * self.gravity * self.length * jnp.cos(angle)
