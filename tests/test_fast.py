"""exp and cos by polynomials, against NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.numerics import fast_math


def test_cosine():
    turns = jnp.linspace(-3, 3, 2001)
    np.testing.assert_allclose(
        fast_math.cosine(turns), np.cos(2 * np.pi * np.asarray(turns)), atol=1e-9
    )


def test_exp_and_its_slopes():
    x = jnp.concatenate([-jnp.logspace(-12, 2.8, 4001), jnp.zeros(1)])
    wanted = np.exp(np.asarray(x))
    # Compiled too: a compiler may simplify what was meant as it was written.
    for own in (fast_math.exp, jax.jit(fast_math.exp)):
        np.testing.assert_allclose(own(x), wanted, rtol=1e-13)
    for slope in (jax.grad(fast_math.exp), jax.grad(jax.grad(fast_math.exp))):
        np.testing.assert_allclose(jax.jit(jax.vmap(slope))(x), wanted, rtol=1e-13)
    assert 0 <= float(fast_math.exp(jnp.asarray(-jnp.inf))) < 1e-300
    assert np.isnan(float(fast_math.exp(jnp.asarray(jnp.nan))))


def test_exp_in_32_bits():
    x = jnp.linspace(-20, 0, 101, dtype=jnp.float32)
    np.testing.assert_allclose(fast_math.exp(x), np.exp(np.asarray(x)), rtol=1e-6)
