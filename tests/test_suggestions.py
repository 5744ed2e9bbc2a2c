"""What is misspelt is answered with the nearest name that there is, in Python too."""

import inspect

import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError

LINE = km.Box([0.0], [1.0])
PROBLEM = km.Problem.from_spaces(states=LINE, actions=LINE, horizon=3, coordinates=("heat",))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: km.PSRL("riverswim", planer="grid"), "planner"),
        (lambda: km.PSRL("riverswim", sede=0), "seed"),
        (lambda: km.PSRL("riverswim", horizn=5), "horizon"),
        (lambda: km.PSRL("riverswim", planner="grd"), "grid"),
        (lambda: km.PSRL("riverswim", planner={"name": "mpc", "horzion": 3}), "horizon"),
        (lambda: km.GPUCRL("rkhs", confidence="practicl"), "practical"),
        (lambda: km.GPUCRL("rkhs", confidence={"detla": 0.1}), "delta"),
        (lambda: km.GPUCRL("rkhs", learner="fited"), "fitted"),
        (lambda: km.GPUCRL("rkhs", learner={"name": "fitted", "fit_row": 3}), "fit_rows"),
        (lambda: km.PSRL("rkhs", prior="studnt-t"), "student-t"),
        (lambda: km.PSRL("rkhs", update="stp"), "step"),
        (lambda: km.PSRL("rkhs", first_episode="randm"), "random"),
        (lambda: km.PSRL("rkhs", kernel="aut"), "auto"),
        (lambda: km.PSRL("rkhs", reward="knwn"), "known"),
        (lambda: km.PSRL("rhks"), "rkhs"),
        (lambda: km.make("rhks"), "rkhs"),
        (lambda: km.make("rkhs", horizn=3), "horizon"),
        (lambda: km.kernel("sea(0.5)"), "se"),
        (lambda: km.from_gymnasium("Pendulum-v1", angles=["observaton[0]"]), "observation[0]"),
        (lambda: km.PSRL(PROBLEM, known={"haet": [0.0] * 4}), "heat"),
        (lambda: km.PSRL(PROBLEM, constraints="haet <= 0.5"), "heat"),
        (lambda: km.study({"name": "a", "episode": 1}), "episodes"),
        (lambda: km.Greedy("riverswim").export("/tmp/x.c", interpoltion="linear"), "interpolation"),
    ],
)
def test_a_name(call, name):
    with pytest.raises((ArgumentError, TypeError)) as error:
        call()
    assert f"did you mean {name!r}?" in str(error.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: km.Confidence(detla=0.1), "delta"),
        (lambda: km.GridPlanner(stat_points=3), "state_points"),
        (lambda: km.MPCPlanner(horzon=3), "horizon"),
        (lambda: km.Box(lo=[0], high=[1]), "low"),
        (lambda: km.from_gymnasium("Pendulum-v1", horizn=3), "horizon"),
        (lambda: km.Problem.from_spaces(states=LINE, actions=LINE, horizn=3), "horizon"),
        (lambda: km.Greedy("riverswim").learn(episode=3), "episodes"),
        (lambda: km.Greedy("riverswim").evaluate(sed=3), "seed"),
        (lambda: km.Greedy("riverswim").controller(time_limt=3), "time_limit"),
    ],
)
def test_a_keyword(call, name):
    with pytest.raises(TypeError, match=f"did you mean '{name}'"):
        call()


def test_a_column():
    episodes = km.Random("riverswim", seed=0).learn(1, progress=False).episodes
    with pytest.raises(KeyError, match="did you mean 'regret'"):
        episodes["regrt"]


@pytest.mark.parametrize("name", list(km.agents.AGENTS))
def test_signatures_show_every_setting(name):
    """Completion of keywords reads them."""
    kind = km.agents.AGENTS[name]
    parameters = inspect.signature(kind).parameters
    assert {"task", "seed", "horizon"} | set(kind.Config.meanings()) <= set(parameters)
    assert "VAR_KEYWORD" not in {each.kind.name for each in parameters.values()}
