"""Fast exp and cos by polynomials, for programs that spend most of their time in them.

In 64 bits the compiler's own functions take two to ten times as long.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

#: Smaller arguments of ``exp`` are raised to this, so that 2^k stays a normal 64-bit number.
SMALLEST_ARGUMENT = -700.0
#: Coefficients of 2^r for |r| ≤ ½ in powers of r, by Chebyshev interpolation. Degree 10 is
#: accurate to 1e-13.
EXP2_COEFFICIENTS = (
    1.0000000000000002,
    0.6931471805599507,
    0.24022650695908615,
    0.05550410866442288,
    0.009618129108221752,
    0.0013333558232417886,
    0.00015403529723698742,
    1.5252656771735923e-05,
    1.3215772924013447e-06,
    1.0208677849732343e-07,
    7.0198439061641715e-09,
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
#: Added to a float that holds an integer below 2^51 in size, it puts that integer into the lowest
#: bits of the sum. This replaces a slow conversion to integers.
INTEGER_SHIFT = 1.5 * 2**52


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
    # A conversion of k to integers would take as long as all the rest. 1023 is the exponent bias.
    exponent = lax.bitcast_convert_type(k + INTEGER_SHIFT, jnp.int64) + 1023
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
