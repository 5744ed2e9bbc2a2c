"""Learning until a certificate says that the controller is good enough."""

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents.optimality import Certificate
from kernelmdp.errors import ArgumentError


def test_it_stops_with_a_true_sentence():
    agent = km.GPUCRL("rkhs", confidence="valid", seed=0)
    result = agent.learn(100, until=0.7, progress=False)
    certificate = result.certificate
    assert len(result.episodes) < 100
    assert certificate.share <= 0.7
    assert certificate.probability == pytest.approx(0.9)
    environment = agent.task
    start = agent.starts[0]
    optimum = environment.optimal_value(start).value
    assert certificate.value <= optimum <= certificate.optimum
    assert "probability 0.9" in str(certificate)
    assert "certificate" in repr(result)


def test_bounds_hold_in_every_episode_and_fall():
    agent, bounds = km.GPUCRL("rkhs", confidence="valid", seed=1), []
    agent.learn(25, progress=False, callback=lambda agent, _: bounds.append(agent.certificate()))
    optimum = agent.task.optimal_value(agent.starts[0]).value
    assert all(bound.value <= optimum <= bound.optimum for bound in bounds)
    assert bounds[-1].gap < bounds[0].gap


def test_other_agents_get_an_estimate():
    agent = km.PSRL("rkhs", seed=0)
    result = agent.learn(8, until=0.2, progress=False)
    assert result.certificate.probability is None
    assert "an estimate" in str(result.certificate)


def test_fitted_kernels_give_an_estimate_even_with_valid_sets():
    agent = km.GPUCRL("rkhs", kernel="auto", confidence="valid", seed=0)
    agent.learn(3, progress=False)
    certificate = agent.certificate()
    assert certificate.probability is None
    assert "an estimate" in str(certificate)


def test_a_smaller_bound_of_the_optimum_is_kept():
    newest = Certificate(1.0, 3.0, 10.0, 0.9, km.GPUCRL("riverswim", seed=0).coverage)
    assert newest.with_optimum(2.0).share == pytest.approx(0.1)
    assert newest.with_optimum(4.0) == newest


@pytest.mark.parametrize("until", [0.0, 1.0, -0.1, np.nan])
def test_bad_shares(until):
    with pytest.raises(ArgumentError, match="until"):
        km.PSRL("riverswim", seed=0).learn(2, until=until, progress=False)
