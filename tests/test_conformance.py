"""The checks for kernels, planners and environments of one's own find what is wrong with them."""

import dataclasses

import jax.numpy as jnp
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, ConformanceError
from kernelmdp.kernels import Function, Linear, SquaredExponential, check_kernel
from kernelmdp.mdp import Value
from kernelmdp.mdp.policy import OpenLoopPolicy, UniformPolicy
from kernelmdp.planners import Planner, UnplannedPolicy

LINE = km.Box([-1.0], [1.0])


class Doubled(Linear):
    def features(self, x):
        return 2 * x


class TooSlow(SquaredExponential):
    def frequencies(self, count, dimension, *, key):
        return 0.5 * super().frequencies(count, dimension, key=key)


def product(x, y):
    return x[0] * y[0]


@pytest.mark.parametrize(
    ("kernel", "promise"),
    [
        (Function(lambda x, y: x[0] * y[0] ** 2), "k(y, x)"),
        (Function(lambda x, y: -x[0] * y[0]), "no negative eigenvalue"),
        (Function(product, variance_bound=0.1), "at most its bound"),
        (Function(product, lipschitz=0.5), "modulus and Λ"),
        (Doubled(), "features multiply to k"),
        (TooSlow(0.3), "spectral law"),
    ],
)
def test_a_wrong_kernel_is_found_out(kernel, promise):
    with pytest.raises(ConformanceError) as found:
        check_kernel(kernel, LINE)
    assert promise in found.value.promise


def test_what_a_kernel_does_not_say_is_skipped():
    report = check_kernel(Function(product, name="mine"), LINE)
    assert [reason.partition(":")[0] for reason in report.skipped] == [
        "distances of features are at most what the modulus and Λ allow",
        "features multiply to k",
        "draws from the spectral law average to k",
        "the text form reads back as the kernel",
    ]


class Still(Planner):
    """Does nothing: worse than chance in the problem of the check."""

    def plan(self, mdp, *, start, key):
        return UnplannedPolicy(
            policy=OpenLoopPolicy(jnp.ones((mdp.horizon, mdp.actions.dimension)))
        )


def test_a_planner_that_plans_badly_is_found_out():
    with pytest.raises(ConformanceError, match="earns more than random actions"):
        km.planners.check_planner(Still())


@dataclasses.dataclass(frozen=True)
class Chance(Planner):
    """A planner of a user's: any action."""

    def plan(self, mdp, *, start, key):
        return UnplannedPolicy(policy=UniformPolicy(mdp.actions, key))


def test_an_agent_with_a_planner_of_ones_own_is_saved(tmp_path):
    agent = km.PSRL("riverswim", planner=Chance(), seed=0)
    action = agent.ask()([0], period=3)
    agent.save(tmp_path / "agent")
    with pytest.raises(ArgumentError, match=r"the planner that .* was saved with, Chance\(\)"):
        km.load(tmp_path / "agent")
    assert km.load(tmp_path / "agent", planner=Chance()).ask()([0], period=3) == action


def test_an_environment_of_ours_keeps_what_is_promised():
    report = km.envs.check_environment(km.make("riverswim"))
    assert not report.skipped
    assert len(report.checked) == 7


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"optimum": Value(-1.0, 0.0, "exact")}, "random actions do not beat it"),
        ({"reward_kernel": Function(lambda x, y: x[0])}, "k(x, y) = k(y, x)"),
    ],
)
def test_a_wrong_environment_is_found_out(change, promise):
    env = km.make("riverswim")
    if "reward_kernel" in change:
        change = {"problem": dataclasses.replace(env.problem, **change)}
    env = dataclasses.replace(env, **change)
    with pytest.raises(ConformanceError) as found:
        km.envs.check_environment(env)
    assert promise in found.value.promise
