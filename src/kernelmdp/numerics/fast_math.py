"""exp and cos where a program spends its time in them: the compiler's own take two to ten times as
long in 64 bits."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

#: exp(x) for x below this is the number for this.
LEAST = -700.0
#: 2^r for |r| ≤ ½, by Chebyshev interpolation in degree 10, in powers of r.
POWERS = (
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
#: cos(2π√s) for s in [0, ¼], by Chebyshev interpolation in degree 7, in powers of s.
COSINES = (
    0.999999999884617,
    -19.739208743087502,
    64.9393890524762,
    -85.45665775339239,
    60.24212492771494,
    -26.404630603916303,
    7.800022165291011,
    -1.4529874920845032,
)
#: Added to a whole number of moderate size, it leaves that number in the last bits.
WHOLE = 1.5 * 2**52


@jax.custom_jvp
def exp(x: Array) -> Array:
    """exp(x) for x ≤ 0, to 1e-13: 2^r by a polynomial, times 2^k by its bits.

    >>> round(float(exp(jnp.asarray(-1.0))), 12)
    0.367879441171
    """
    if x.dtype != jnp.float64:
        return jnp.exp(x)
    t = jnp.maximum(x, LEAST) * 1.4426950408889634  # log2(e)
    k = jnp.round(t)
    # A conversion to whole numbers would take as long as all the rest.
    power = lax.bitcast_convert_type(k + WHOLE, jnp.int64) + 1023
    scale = lax.bitcast_convert_type(power << 52, jnp.float64)
    return scale * _polynomial(POWERS, t - k)


@exp.defjvp
def _slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = exp(primals[0])
    return value, value * tangents[0]


def cosine(turns: Array) -> Array:
    """cos(2πt), to 2e-10.

    >>> round(float(cosine(jnp.asarray(1.25))), 6)
    0.0
    """
    t = turns - jnp.round(turns)
    return _polynomial(COSINES, t * t)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    total = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total
