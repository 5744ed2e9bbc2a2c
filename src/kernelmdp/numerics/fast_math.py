"""Fast exp and cos by polynomials, for programs that spend most of their time in them.

In 64 bits the compiler's own functions take two to ten times as long.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

#: Smaller arguments of ``exp`` are raised to this, so that 2^k stays a normal 64-bit number.
SMALLEST_ARGUMENT = -700.0
#: Coefficients of 2^r for |r| ≤ ½ in powers of r, by Chebyshev interpolation. Degree 9 is accurate
#: to 2e-14.
EXP2_COEFFICIENTS = (
    1.000000000000014,
    0.6931471805599526,
    0.24022650695631514,
    0.05550410866428854,
    0.009618129195951041,
    0.001333355825801874,
    0.00015403432339553542,
    1.5252640059770786e-05,
    1.3259945262689143e-06,
    1.0212097549811005e-07,
)
#: Coefficients of cos(2π√s) for s in [0, ¼] in powers of s, by Chebyshev interpolation. Degree 7 is
#: accurate to 2e-10.
COSINE_COEFFICIENTS = (
    0.999999999884617,
    -19.739208743087502,
    64.9393890524762,
    -85.45665775339239,
    60.24212492771494,
    -26.404630603916303,
    7.800022165291011,
    -1.4529874920845032,
)
#: Added to a float that holds an integer k below 2^51 in size, it puts k + 1023, the exponent of
#: 2^k, into the lowest bits of the sum. This replaces a slow conversion to integers.
EXPONENT_SHIFT = 1.5 * 2**52 + 1023


@jax.custom_jvp
def exp(x: Array) -> Array:
    """Compute e^x for x ≤ 0, to a relative error of 1e-13.

    With x = (k + r) ln 2, |r| ≤ ½, a polynomial gives 2^r. The factor 2^k is made from its bits.
    Dtypes other than float64 use ``jnp.exp``.

    Args:
        x: The arguments, ≤ 0, of any shape.

    Returns:
        exp(x), of the same shape. Below x = −700 it is exp(−700).

    >>> round(float(exp(jnp.asarray(-1.0))), 12)
    0.367879441171
    """
    if x.dtype != jnp.float64:
        return jnp.exp(x)
    t = jnp.maximum(x, SMALLEST_ARGUMENT) * 1.4426950408889634  # log2(e)
    k = jnp.round(t)
    exponent = lax.bitcast_convert_type(k + EXPONENT_SHIFT, jnp.int64)
    scale = lax.bitcast_convert_type(exponent << 52, jnp.float64)
    return scale * _polynomial(EXP2_COEFFICIENTS, t - k)


@exp.defjvp
def _exp_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Value and directional derivative of ``exp``."""
    value = exp(primals[0])
    return value, value * tangents[0]


def cosine(turns: Array) -> Array:
    """Return cos(2πt), to an absolute error of 2e-10.

    Args:
        turns: The angles t in turns, of any shape.

    Returns:
        The cosines, of the same shape.

    >>> round(float(cosine(jnp.asarray(1.25))), 6)
    0.0
    """
    t = turns - jnp.round(turns)
    return _polynomial(COSINE_COEFFICIENTS, t * t)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Σ_i coefficients[i] x^i, by Horner's scheme."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
