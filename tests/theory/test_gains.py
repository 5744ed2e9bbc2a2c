"""Gains that bounds compute themselves: by designs, for any λ, for outputs that differ."""

import math

import pytest

from kernelmdp import Box, FiniteSet, join, kernels, theory
from kernelmdp.theory import theorem1, theorem3

LINE = join(state=Box([-1.0], [1.0]), action=FiniteSet([[0.0]]))
POINTS = join(state=FiniteSet([[-1.0], [0.0], [1.0]]), action=FiniteSet([[0.0], [1.0]]))
PLANE = join(state=Box([-1.0, -1.0], [1.0, 1.0]), action=FiniteSet([[0.0]]))
SMOOTH = kernels.SquaredExponential(1.0)


def bound(kernel, domain, **words):
    given = {
        "horizon": 3,
        "episodes": 50,
        "norm_reward": 1.0,
        "norm_transition": 1.0,
        "reward_noise": 0.2,
        "transition_noise": 0.2,
        "lipschitz": 2.0,
        "reward_kernel": kernel,
        "transition_kernel": kernel,
        "domain": domain,
    }
    return theorem1(**(given | words))


def test_designs_are_tighter():
    """Optimal designs are below the closed form of finite rank, and still bounds."""
    linear = kernels.Linear()
    loose, tight = (bound(linear, POINTS, tight=tight) for tight in (False, True))
    assert 0.5 * loose.value < tight.value < 0.999 * loose.value
    # Half at each of two far points, ±1 with action 1, is the best design: rank 2, variance 2.
    best = 0.5 * 2 * math.log1p(75 * 2 / 3.0)
    gain = theory.gain_bound(linear, domain=POINTS, n=150, noise_variance=3.0, tight=True)
    assert best * (1 - 1e-9) <= gain <= best * 1.001


def test_finite_sets_always_have_designs():
    """Closed forms do not know a kernel of infinite rank on a few points."""
    assert bound(SMOOTH, POINTS).value == pytest.approx(bound(SMOOTH, POINTS, tight=True).value)
    # Six points: the gain is at most that of six independent ones.
    gain = theory.gain_bound(SMOOTH, domain=POINTS, n=600, noise_variance=1.0)
    apart = theory.gain_bound(
        kernels.Index(6), domain=FiniteSet.range(6), n=600, noise_variance=1.0
    )
    assert gain < apart


def test_the_best_regulariser():
    linear = kernels.Linear()
    usual, best = (bound(linear, LINE, optimise=optimise) for optimise in (False, True))
    assert best.value < 0.995 * usual.value
    # It looks at λ of both functions apart, on a ladder: no single λ does much better.
    singles = [
        bound(linear, LINE, regulariser_reward=lam, regulariser_transition=lam).value
        for lam in (0.003, 0.03, 0.3, 3.0, 30.0)
    ]
    assert best.value <= min(singles) * 1.03


@pytest.mark.parametrize(
    "transition",
    [
        kernels.Independent([kernels.Linear(), kernels.Linear()]),
        kernels.Linear() @ kernels.Coregional([[1.0, 0.5], [0.5, 1.0]]),
    ],
    ids=["independent", "correlated"],
)
def test_outputs_without_a_common_deviation(transition):
    """Sets by the trace: never below the one deviation that k ⊗ 1 has, with the same gains."""
    alike = kernels.Linear() @ kernels.Index(2)
    gain = 4.0
    found = {
        name: bound(
            kernels.Linear(), PLANE, transition_kernel=own, gain_reward=gain, gain_transition=gain
        )
        for name, own in (("apart", transition), ("alike", alike))
    }
    assert found["apart"].parts["transition"] > 1.2 * found["alike"].parts["transition"]
    assert found["apart"].parts["reward"] == found["alike"].parts["reward"]
    # With gains of their own too.
    own, usual = (bound(kernels.Linear(), PLANE, transition_kernel=k) for k in (transition, alike))
    assert own.value >= usual.value


def test_draws_of_kernels_that_differ():
    words = {
        "horizon": 3,
        "episodes": 20,
        "reward_noise": 0.2,
        "transition_noise": 0.2,
        "lipschitz": 2.0,
        "reward_kernel": kernels.Linear(),
        "domain": PLANE,
    }
    apart = kernels.Independent([kernels.Linear(), kernels.Linear()])
    alike = kernels.Linear() @ kernels.Index(2)
    first, second = (theorem3(transition_kernel=own, **words).value for own in (apart, alike))
    assert first > second
