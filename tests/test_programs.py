"""Compiled programs are kept in bounded number, and used again."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.envs.pendulum import PendulumDynamics
from kernelmdp.numerics.modules import PROGRAM_CACHE_SIZE, jit


class Agent:
    """What fixes a program and is made anew, again and again."""


def test_programs_of_what_is_gone_are_not_kept():
    @jit
    def program(agent, x):
        return x + 1

    made = []
    for _ in range(PROGRAM_CACHE_SIZE + 5):
        agent = Agent()
        made.append(weakref.ref(agent))
        program(agent, jnp.zeros(1))
    del agent
    gc.collect()
    assert sum(one() is not None for one in made) == PROGRAM_CACHE_SIZE


def test_programs_are_found_again():
    traced = []

    @jit
    def program(word, x):
        traced.append(word)
        return x + 1

    for word in ("one", "other", "one", "other"):
        assert program(word, np.ones(1)) == 2.0
    assert traced == ["one", "other"]


def test_a_motion_asked_outside_a_program_is_compiled_once():
    compiled = []

    def listen(name, *_, **__):
        compiled.append(name) if "backend_compile" in name else None

    points = jnp.ones((3, 3))
    PendulumDynamics(0.1, 2)(points)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        PendulumDynamics(0.1, 2)(points)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compiled
