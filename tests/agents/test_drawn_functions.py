"""Agents that draw functions refuse, when they are made, kernels that cannot be drawn from."""

import jax
import jax.numpy as jnp
import pytest

import kernelmdp as km
from kernelmdp.gp.basis import prior_basis
from kernelmdp.gp.undrawable_kernels import undrawable_part
from kernelmdp.kernels import Function, Kernel
from tests.agents import tiny

# Rough at the diagonal: the domain needs more centres than the limit of the rank.
ROUGH = Function(lambda x, y: 1 / (1 + 50 * jnp.abs(x - y).sum()), name="rational")


class Decay(Kernel):
    """exp(−|x − y|/ℓ), with a parameter that is fitted, and without its law or constants."""

    scale: float = 1.0

    def pair(self, x, y):
        return jnp.exp(-jnp.sum(jnp.abs(x - y)) / self.scale)

    def constants_on(self, low, high):
        return ROUGH.constants_on(low, high)

    def to_text(self):
        return f"decay({self.scale})", 2


@pytest.mark.parametrize("agent", [km.PSRL, km.Frugal])
@pytest.mark.parametrize("settings", [{}, {"kernel": "auto"}])
def test_the_agent_says_so_when_it_is_made(agent, settings):
    with pytest.raises(km.errors.UnknownPropertyError) as raised:
        agent(tiny.environment(), seed=0, reward_kernel=0.5 * ROUGH, **settings)
    text = str(raised.value)
    assert "draws functions" in text
    assert "but the kernel rational neither compiles" in text
    assert "GPUCRL or Greedy" in text
    assert "'frequencies'" in text
    assert "extending.md" in text


@pytest.mark.parametrize("agent", [km.GPUCRL, km.Greedy])
def test_agents_that_draw_nothing_take_the_kernel(agent):
    agent(tiny.environment(), seed=0, reward_kernel=ROUGH)


def test_a_kernel_that_compiles_or_is_not_needed_is_taken():
    smooth = Function(lambda x, y: (1 + x @ y) ** 2, name="square")  # compiles: its rank is 6
    km.PSRL(tiny.environment(), seed=0, reward_kernel=smooth)
    known = tiny.problem(reward=lambda z: z[:, 0])
    km.PSRL(known, seed=0, kernel="auto", reward_kernel=ROUGH)


@pytest.mark.parametrize("text", ["se(0.5)", "se(0.5) * linear[0] + 2.0 * matern(2.5, 1.0)[1]"])
def test_what_is_drawable_is_what_has_a_basis(text):
    kernel = km.kernel(text)
    assert undrawable_part(kernel, 2) is None
    prior_basis(kernel, 2, 8, key=jax.random.key(0))
    for broken in (kernel + ROUGH, ROUGH * kernel, 2.0 * (kernel + 3.0 * ROUGH)):
        assert undrawable_part(broken, 2) is ROUGH
        with pytest.raises(km.errors.UnknownPropertyError, match="rational has no spectral law"):
            prior_basis(broken, 2, 8, key=jax.random.key(0))


def test_errors_show_no_tracers():
    def draw(scale):
        return prior_basis(Decay(scale), 2, 8, key=jax.random.key(0))

    with pytest.raises(km.errors.UnknownPropertyError, match=r"^Decay has no spectral law"):
        jax.jit(draw)(1.0)
