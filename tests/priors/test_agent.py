"""PSRL with every prior: runs, says how its chains did, and resumes where it stopped."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp import kernels
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.mdp import Gaussian
from kernelmdp.priors import PRIORS as PRIORS_BY_NAME
from kernelmdp.priors import (
    HeavyTails,
    Hyperparameters,
    NormBall,
    UnknownNoise,
    as_prior,
    diagnostics,
    norm_ball,
)
from tests.agents import tiny

# One with chains, one without: how agents are saved does not depend on the prior.
PRIORS = {"student-t": HeavyTails(), "unknown-noise": UnknownNoise(shape=3.0)}
# Of small rank, which is what compiling and running chains costs.
SMOOTH = {"reward_kernel": "se(3.0)", "transition_kernel": "se(3.0)"}


SMALL = km.GridPlanner((7, 7), (3,))


def told(agent):
    """An episode of two outputs."""
    rng = np.random.default_rng(0)
    agent.tell(rng.uniform(-0.5, 0.5, size=(3, 2)), rng.uniform(-1, 1, size=(2, 1)), np.zeros(2))


def play(agent, episodes, start=0):
    for number in range(start, start + episodes):
        agent.ask()
        agent.tell(*tiny.episode(number))


@pytest.mark.filterwarnings("ignore::kernelmdp.errors.ApproximationWarning")
@pytest.mark.parametrize("name", PRIORS)
def test_saved_and_loaded_it_goes_on_the_same(name, tmp_path):
    agent = tiny.make(km.PSRL, prior=PRIORS[name], **SMOOTH)
    play(agent, 2)
    agent.save(tmp_path / "agent")
    loaded = km.load(tmp_path / "agent")
    assert as_prior(loaded.config.prior) == as_prior(PRIORS[name])
    assert tiny.same(agent, loaded)
    play(agent, 1, start=2)
    play(loaded, 1, start=2)
    assert tiny.same(agent, loaded)
    found = agent.learner.info(agent.state)
    assert set(found) == {
        "gain_reward",
        "gain_transition",
        "r_hat",
        "effective_sample_size",
        "acceptance",
        "divergences",
        "mixed",
    }
    assert found == loaded.learner.info(loaded.state)
    assert np.isfinite(agent.predict([0.1])).all()


@pytest.mark.filterwarnings("ignore::kernelmdp.errors.ApproximationWarning")
def test_it_learns_in_an_environment():
    agent = tiny.make(km.PSRL, prior="student-t", **SMOOTH)
    result = agent.learn(3, progress=False)
    assert np.isfinite(result.episodes["regret"]).all()
    assert "no theorem" in str(result.coverage)


def test_known_reward_and_two_outputs():
    problem = tiny.problem(reward=lambda z: z[:, 0], transition_noise=Gaussian([0.1, 0.3]))
    agent = km.PSRL(problem, prior="unknown-noise", planner=SMALL)
    told(agent)
    assert agent.ask()([0.0, 0.0], 0).shape == (1,)


def test_the_gaussian_prior_is_the_default():
    for words in ({}, {"prior": "gaussian"}):
        agent = tiny.make(km.PSRL, **words, **SMOOTH)
        assert agent.learner.name == "fixed"  # the way without priors, see tests/agents


def test_chains_that_do_not_mix_are_said_once_and_in_every_row(monkeypatch):
    monkeypatch.setattr(diagnostics, "LEAST_EFFECTIVE", np.inf)
    agent = tiny.make(km.PSRL, prior="student-t", **SMOOTH)
    agent.ask()
    agent.tell(*tiny.episode(0))
    assert agent.learner.info(agent.state)["mixed"] == 0.0
    with pytest.warns(ApproximationWarning, match="did not mix"):
        agent.ask()
    agent.tell(*tiny.episode(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.ask()
    assert agent.learner.info(agent.state)["mixed"] == 0.0
    assert agent.episode == 2


def test_priors_by_word():
    assert as_prior("gaussian") is None
    for name, kind in PRIORS_BY_NAME.items():
        assert isinstance(as_prior(name), kind)
        assert as_prior(as_prior(name).description()) == as_prior(name)
    with pytest.raises(ArgumentError, match="'student-t'"):
        as_prior("cauchy")
    with pytest.raises(ArgumentError, match="settings of student-t"):
        as_prior({"name": "student-t", "tails": 3})


# Bad input.


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_a_log_density_that_is_nowhere_finite(value):
    prior = Hyperparameters(lengthscale=0.05, log_prior=lambda theta: jnp.full((), value))
    with pytest.raises(ArgumentError, match="log_prior: expected a log-density that is finite"):
        tiny.make(km.PSRL, prior=prior, **SMOOTH)


def test_a_chain_that_diverges_is_recorded_and_nothing_is_lost():
    def cliff(theta):
        return -0.5 * jnp.sum((theta / 0.3) ** 2) - jnp.where(jnp.abs(theta[0]) > 0.01, 1e9, 0.0)

    prior = Hyperparameters(lengthscale=0.0, signal=0.3, log_prior=cliff)
    agent = km.PSRL(tiny.problem(reward=lambda z: z[:, 0]), prior=prior, planner=SMALL)
    # With a density of the user's own, chains run before there are data: it is said at once.
    with pytest.warns(ApproximationWarning, match="did not mix"):
        agent.ask()
    told(agent)
    found = agent.learner.info(agent.state)
    assert found["divergences"] > 0
    assert found["mixed"] == 0.0
    assert np.isfinite(agent.ask()([0.0, 0.0], 0)).all()
    assert agent.episode == 1


def test_a_hopeless_rejection_says_its_rate(monkeypatch):
    monkeypatch.setattr(norm_ball, "BATCHES", 8)
    with pytest.raises(ArgumentError, match="acceptance 0 of 16,384"):
        tiny.make(km.PSRL, prior="norm-ball")


def test_rejection_with_a_kernel_of_small_rank():
    agent = km.PSRL(
        tiny.problem(norm_reward=2.0, norm_transition=3.0),
        prior="norm-ball",
        planner=SMALL,
    )
    told(agent)
    found = agent.learner.info(agent.state)
    assert 0 < found["acceptance"] < 1
    assert found["mixed"] == 1.0
    assert agent.ask()([0.0, 0.0], 0).shape == (1,)


def test_a_norm_that_nobody_knows():
    with pytest.raises(ArgumentError, match="norm_reward: expected a bound"):
        km.PSRL(tiny.problem(), prior="norm-ball")


@pytest.mark.parametrize(
    "words",
    [
        {"degrees": 2.0},
        {"chains": 1},
        {"moves": 0},
        {"moves": 1, "slices": 1},
    ],
)
def test_settings_that_make_no_sense(words):
    with pytest.raises(ArgumentError):
        HeavyTails(**words)


def test_other_settings_that_make_no_sense():
    for make in (
        lambda: Hyperparameters(lengthscale=-1.0),
        lambda: Hyperparameters(lengthscale=0.0, signal=0.0),
        lambda: UnknownNoise(shape=0.0),
        lambda: NormBall(norm_reward=-1.0),
        lambda: NormBall(method="guess"),
    ):
        with pytest.raises(ArgumentError):
            make()


def test_dependent_outputs_are_refused():
    mixed = kernels.Linear() @ kernels.Coregional([[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ArgumentError, match="depend on one another"):
        km.PSRL(tiny.problem(transition_kernel=mixed), prior="student-t")


def test_a_residual_of_enormous_size_breaks_nothing():
    agent = tiny.make(km.PSRL, prior="student-t", **SMOOTH)
    states, actions, rewards, outcomes = tiny.episode(0)
    agent.tell(states, actions, rewards * 1e8, outcomes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        assert np.isfinite(tiny.actions(agent)).all()
