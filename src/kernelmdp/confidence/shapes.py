"""The shape of a confidence set at a point: from the covariance of outputs.

On the event ‖f − μ‖ ≤ β in the norm of the posterior, |uᵀ(f(z) − μ(z))| ≤ β √(uᵀΣ(z)u) for every u
(math D0). So f(z) lies in the ellipsoid of Σ(z), hence in the ball of radius β √λ_max(Σ(z)), hence
in the paper's ball of radius β ‖σ(z)‖₂ = β √tr Σ(z). With u the unit vectors, it lies in the box of
half sides β σ_j(z) too, which is the smallest around the ellipsoid.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp import Posterior
from kernelmdp.gp.output_layouts import ColumnLayout, RotatedLayout, SharedLayout

SHAPES = ("trace", "lmax", "ellipsoid", "box")


def deviations(
    posterior: Posterior, points: Float[Array, "n d"], std: Float[Array, "n m"]
) -> tuple[Float[Array, "n r"], Float[Array, "m r"] | Float[Array, "n m r"]]:
    """Standard deviations along the principal axes of Σ(z), and those axes as columns.

    Read off the layout where it knows them: only the dense one needs Σ(z) itself.
    """
    layout = posterior.layout
    if isinstance(layout, SharedLayout | ColumnLayout):
        return std, jnp.eye(layout.outputs, dtype=points.dtype)
    if isinstance(layout, RotatedLayout):
        rows = layout.rows(points.astype(posterior.dtype))
        variances = [engine.moments(rows)[1] for engine in posterior.engines]
        own = jnp.sqrt(jnp.maximum(jnp.stack(variances, axis=1), 0))
        return own.astype(points.dtype), layout.rotation.astype(points.dtype)
    covariance = posterior.output_covariance(points).astype(points.dtype)
    values, vectors = jnp.linalg.eigh(covariance)
    return jnp.sqrt(jnp.maximum(values, 0)), vectors


def radius(
    posterior: Posterior, points: Float[Array, "n d"], std: Float[Array, "n m"], shape: str
) -> Float[Array, " n"]:
    """‖σ(z)‖₂ for "trace", √λ_max(Σ(z)) otherwise."""
    if shape == "trace":
        return jnp.linalg.norm(std, axis=1)
    return jnp.max(deviations(posterior, points, std)[0], axis=1)


def root(
    posterior: Posterior,
    points: Float[Array, "n d"],
    std: Float[Array, "n m"],
    beta: Float[Array, ""],
    slack: Float[Array, ""],
) -> Float[Array, "n m m"]:
    """Symmetric M(z) whose ellipsoid M·(unit ball) holds β Σ^{1/2}·(unit ball) + ball of ``slack``.

    Without slack M = β Σ^{1/2}. A sum of ellipsoids A·ball + s·ball is no ellipsoid; the least one
    around it, by trace, has M² = (1 + 1/t) A² + (1 + t) s² I with t = √(tr A²/(m s²)).
    """
    along, axes = deviations(posterior, points, std)
    outputs = std.shape[1]
    squares = (beta * along) ** 2
    total = jnp.sqrt(jnp.sum(squares, axis=1))[:, None]
    reach = slack * jnp.sqrt(float(outputs))
    safe = jnp.where(total > 0, total, 1.0)
    # In directions outside the range of Σ only the second part is left.
    outside = jnp.sqrt(slack**2 + slack * total[:, 0] / jnp.sqrt(float(outputs)))
    inside = jnp.sqrt(squares * (1 + reach / safe) + (outside**2)[:, None])
    columns = axes if axes.ndim == 3 else jnp.broadcast_to(axes[None], (len(along), *axes.shape))
    back = jnp.swapaxes(columns, 1, 2)
    identity = jnp.broadcast_to(
        jnp.eye(outputs, dtype=points.dtype)[None], (len(along), outputs, outputs)
    )
    spanned = columns * (inside - outside[:, None])[:, None, :]
    return spanned @ back + outside[:, None, None] * identity
