"""The shape of a confidence set at a point, from the covariance of outputs.

On the event ‖f − μ‖ ≤ β in the norm of the posterior, |uᵀ(f(z) − μ(z))| ≤ β √(uᵀΣ(z)u) for every u
(note D0). So f(z) lies in the ellipsoid of Σ(z). This ellipsoid lies in the ball of radius
β √λ_max(Σ(z)), and that ball in the paper's ball of radius β ‖σ(z)‖₂ = β √tr Σ(z). With u the unit
vectors, f(z) also lies in the box of half sides β σ_j(z), the smallest box around the ellipsoid.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp import Posterior
from kernelmdp.gp.output_layouts import ColumnLayout, RotatedLayout, SharedLayout

#: The shapes: two balls, the ellipsoid and the box of the module's text, and the sets of
#: ``likelihood_sets`` for tables.
SHAPES = ("trace", "lmax", "ellipsoid", "box", "likelihood")


def principal_deviations(
    posterior: Posterior, points: Float[Array, "n d"], std: Float[Array, "n m"]
) -> tuple[Float[Array, "n r"], Float[Array, "m r"] | Float[Array, "n m r"]]:
    """Compute standard deviations along the principal axes of Σ(z).

    Most layouts know the axes. Only the dense layout needs Σ(z) itself.

    Args:
        posterior: The transition's posterior.
        points: z, (n, d).
        std: Standard deviations of the outputs, (n, m).

    Returns:
        The deviations, and the axes as columns: the same for all points, or one set for each.
    """
    layout = posterior.layout
    if isinstance(layout, SharedLayout | ColumnLayout):
        return std, jnp.eye(layout.outputs, dtype=points.dtype)
    if isinstance(layout, RotatedLayout):
        rows = layout.rows(points.astype(posterior.dtype))
        variances = [engine.moments(rows)[1] for engine in posterior.engines]
        along_axes = jnp.sqrt(jnp.maximum(jnp.stack(variances, axis=1), 0))
        return along_axes.astype(points.dtype), layout.rotation.astype(points.dtype)
    covariance = posterior.output_covariance(points).astype(points.dtype)
    values, vectors = jnp.linalg.eigh(covariance)
    return jnp.sqrt(jnp.maximum(values, 0)), vectors


def radius(
    posterior: Posterior, points: Float[Array, "n d"], std: Float[Array, "n m"], shape: str
) -> Float[Array, " n"]:
    """Compute the radius of a ball in units of β.

    Args:
        posterior: The transition's posterior.
        points: z, (n, d).
        std: Standard deviations of the outputs, (n, m).
        shape: "trace" or "lmax".

    Returns:
        ‖σ(z)‖₂ for "trace", √λ_max(Σ(z)) otherwise.
    """
    if shape == "trace":
        return jnp.linalg.norm(std, axis=1)
    return jnp.max(principal_deviations(posterior, points, std)[0], axis=1)


def root(
    posterior: Posterior,
    points: Float[Array, "n d"],
    std: Float[Array, "n m"],
    beta: Float[Array, ""],
    slack: Float[Array, ""],
) -> Float[Array, "n m m"]:
    """Compute the symmetric M(z) of an ellipsoid M·(unit ball) that contains the confidence set.

    The confidence set is β Σ^{1/2}·(unit ball) plus a ball of radius ``slack``. Without slack
    M = β Σ^{1/2}. A sum of ellipsoids A·ball + s·ball is not an ellipsoid. The smallest ellipsoid
    around it, by trace, has M² = (1 + 1/t) A² + (1 + t) s² I with t = √(tr A²/(m s²)).

    Args:
        posterior: The transition's posterior.
        points: z, (n, d).
        std: Standard deviations of the outputs, (n, m).
        beta: β.
        slack: The radius of the added ball.

    Returns:
        M(z) for every point.
    """
    along_axes, axes = principal_deviations(posterior, points, std)
    outputs = std.shape[1]
    squares = (beta * along_axes) ** 2
    total = jnp.sqrt(jnp.sum(squares, axis=1))[:, None]
    slack_length = slack * jnp.sqrt(float(outputs))
    divisor = jnp.where(total > 0, total, 1.0)
    # In directions outside the range of Σ only the second term remains.
    outside = jnp.sqrt(slack**2 + slack * total[:, 0] / jnp.sqrt(float(outputs)))
    inside = jnp.sqrt(squares * (1 + slack_length / divisor) + (outside**2)[:, None])
    count = len(along_axes)
    columns = axes if axes.ndim == 3 else jnp.broadcast_to(axes[None], (count, *axes.shape))
    transposed = jnp.swapaxes(columns, 1, 2)
    identity = jnp.broadcast_to(
        jnp.eye(outputs, dtype=points.dtype)[None], (count, outputs, outputs)
    )
    scaled_axes = columns * (inside - outside[:, None])[:, None, :]
    return scaled_axes @ transposed + outside[:, None, None] * identity
