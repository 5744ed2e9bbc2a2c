"""What a controller prints."""

import jax.numpy as jnp

import kernelmdp as km
from kernelmdp.controllers import Controller
from kernelmdp.mdp.policy import OpenLoopPolicy

PROBLEM = km.Problem.from_spaces(
    states=km.Box([-1.0], [1.0]), actions=km.Box([-1.0], [1.0]), horizon=4, name="slider"
)
POLICY = OpenLoopPolicy(jnp.zeros((4, 1)))


def test_a_controller_says_what_it_runs():
    controller = Controller(POLICY, PROBLEM)
    expected = "Controller('slider', OpenLoopPolicy, no time limit, no watchdog, no fallback, "
    assert str(controller) == expected + "period 0)"
    controller([0.5])
    assert str(controller).endswith("period 1)")


def test_it_names_limits_and_the_fallback():
    limits = {"time_limit": 0.5, "watchdog": 60.0}
    with Controller(POLICY, PROBLEM, fallback=[0.25], **limits) as controller:
        assert "time limit 0.5 s, watchdog 60 s, fallback [0.25]" in str(controller)
    with Controller(POLICY, PROBLEM, fallback=lambda state, period: -state) as controller:
        assert "no watchdog, fallback controller, period 0" in str(controller)


def test_an_agents_controller_names_the_policy_of_its_planner():
    controller = km.Greedy("riverswim", seed=0).controller()
    assert str(controller).startswith("Controller('riverswim', ")
    assert "Policy" in str(controller)
