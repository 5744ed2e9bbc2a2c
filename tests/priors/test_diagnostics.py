"""Our R̂ and effective sample size against those of BlackJAX."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.priors.blackjax_sampling import default_promotion
from kernelmdp.priors.diagnostics import EXACT, diagnose, mixing, worst_diagnostics


def chains(memory, apart=0.0):
    """Four autoregressive chains of 61 steps of two quantities."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 61, 2))
    for i in range(1, 61):
        x[:, i] = memory * x[:, i - 1] + math.sqrt(1 - memory**2) * x[:, i]
    return x + apart * np.arange(4)[:, None, None]


@pytest.fixture(scope="module")
def theirs():
    from blackjax.diagnostics import ess_bulk, rhat

    return jax.jit(lambda x: (jnp.max(rhat(x)), jnp.min(ess_bulk(x))))


@pytest.mark.parametrize(("memory", "apart"), [(0.0, 0.0), (0.6, 0.0), (-0.4, 0.0), (0.3, 1.0)])
def test_as_blackjax_computes_them(theirs, memory, apart):
    x = chains(memory, apart)
    with default_promotion():
        expected = theirs(jnp.asarray(x))
    r_hat, effective = mixing(x)
    assert r_hat == pytest.approx(float(expected[0]), rel=1e-6)
    # When no lag is without correlation, BlackJAX takes half the last pair away (an index beyond
    # the end); either number then says that nothing mixed.
    assert effective == pytest.approx(float(expected[1]), rel=1e-6 if not apart else 0.05)


def test_what_is_judged():
    assert diagnose(mixing(chains(0.0)), acceptance=1.0, moves=1).mixed
    assert not diagnose(mixing(chains(0.3, apart=1.0)), acceptance=1.0, moves=1).mixed
    assert not diagnose((1.0, 1000.0), acceptance=1.0, divergences=6, moves=100).mixed
    still = mixing(np.ones((4, 20, 1)))
    assert math.isnan(still[0])
    assert still[1] == 0.0
    broken = diagnose(mixing(np.full((4, 20, 1), np.nan)), acceptance=1.0, moves=1)
    assert not broken.mixed
    assert not worst_diagnostics([EXACT, broken]).mixed
