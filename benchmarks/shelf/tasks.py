"""The tasks of the shelf, each with a level and the number of steps in which to reach it.

A step is a step of the environment: an action that is held for four steps counts four. The settings
are those that a task itself needs. Nothing is tuned for a task.
"""

import dataclasses
from collections.abc import Callable, Mapping

import double_pendulum
import numpy as np

#: Steps for which an action is held in tasks with 1,000 steps an episode.
REPEAT = 4


def _return(env, total: float) -> float:
    del env
    return total


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and its criterion.

    Attributes:
        name: Its name, which is also that of its files.
        venv: The virtual environment that it runs in: shelf, dmc or pcgym.
        make: Makes the Gymnasium environment.
        level: What the mean score of the last episodes must reach, or None for a report only.
        bar: The number of steps in which we mean to reach the level, or None.
        published: What others needed, and who.
        window: The number of last episodes over which the score is averaged. It is 5 where goals
            or terrain are drawn anew in each episode.
        settings: Settings of ``from_gymnasium``: horizon, action_repeat, angles, clock.
        reward: The known reward at points (n, d), or None if it is learned.
        budget: The number of steps after which a run ends. The default is twice the bar.
        episodes: The number of episodes that the agent is told to expect.
        score: The score of an episode, from the environment and the return. The return by default.
        evaluations: The number of episodes in which the controller is tested after each learning
            episode, where the source does so. Their mean return is the score, and their steps do
            not count. 0: the score is that of learning episodes.
        unit: The unit of the score, if it is not the return.
    """

    name: str
    venv: str
    make: Callable[[], object]
    level: float | None
    bar: int | None
    published: str
    window: int = 1
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)
    reward: Callable | None = None
    budget: int = 0
    episodes: int = 0
    score: Callable[[object, float], float] = _return
    evaluations: int = 0
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.budget:
            object.__setattr__(self, "budget", 2 * self.bar)

    def reached(self, scores: list[float]) -> int | None:
        """Return the number of episodes after which the level was first reached, or None."""
        for count in range(self.window, len(scores) + 1) if self.level is not None else ():
            if np.mean(scores[count - self.window : count]) >= self.level:
                return count
        return None


def _gymnasium(name: str, level: float | None, bar: int | None, published: str, **more) -> Task:
    """A task of Gymnasium. ``made_from`` is its id and options, if the id is not its name."""
    identifier, options = more.pop("made_from", (name, {}))

    def make():
        import gymnasium

        return gymnasium.make(identifier, **options)

    return Task(name, "shelf", make, level, bar, published, **more)


def _control_suite(name: str, level: float, bar: int, published: str, **more) -> Task:
    """A task of the DeepMind control suite: 1,000 steps an episode, 250 decisions."""

    def make():
        import gymnasium
        import shimmy  # noqa: F401  (registers the tasks)

        return gymnasium.make(f"dm_control/{name}-v0")

    settings = {"horizon": 1000 // REPEAT, "action_repeat": REPEAT}
    return Task(f"dmc-{name}", "dmc", make, level, bar, published, settings=settings, **more)


def _tip_reacher():
    import tip_reacher

    return tip_reacher.make()


def _tip_reward(z):
    import tip_reacher

    return tip_reacher.reward(z)


def _swimmer_reward(z):
    """Forward velocity less the price of torque, at points (n, 10), in one decision."""
    import jax.numpy as jnp

    return REPEAT * (z[:, 3] - 1e-4 * jnp.sum(z[:, 8:] ** 2, axis=1))


def _reactor():
    import process

    return process.make_reactor()


def _four_tanks():
    import process

    return process.make_four_tanks()


_HELD = {"action_repeat": REPEAT}
_DOUBLE_PENDULUM = Task(
    "cart-double-pendulum",
    "shelf",
    double_pendulum.make,
    1.0,
    12 * double_pendulum.HORIZON,
    "Black-DROPS not under 20 to 25 episodes",
    settings={"horizon": double_pendulum.HORIZON, "angles": double_pendulum.ANGLES},
    reward=double_pendulum.reward,
    score=double_pendulum.seconds_held,
    unit=" s held",
)
_TIP_REACHER = Task(
    "tip-reacher",
    "shelf",
    _tip_reacher,
    -5.0,
    250,
    "TIP 251, PETS 700, MPC with the mean of a GP 751",
    evaluations=5,
    settings={"horizon": 50, "angles": (0, 1)},
    reward=_tip_reward,
)
_PCGYM = {"settings": {"horizon": 59, "clock": True}}
_POPLIN = "POPLIN 345 at 50,000"
_VARIANTS = "variants of PILCO at most 1,950, with a reward of their own"
_CURVES = "MBPO and POPLIN, by their curves"

_ALL = (
    _gymnasium("InvertedPendulum-v5", 950.0, 1_100, "MBPO 3,000", episodes=30),
    _gymnasium("InvertedDoublePendulum-v5", 9_000.0, 2_000, _VARIANTS, episodes=40),
    _gymnasium("Reacher-v5", -6.0, 1_500, "SAC tens of thousands", window=5),
    _TIP_REACHER,
    _gymnasium("Swimmer-v5", 300.0, 15_000, _POPLIN + ", with a known reward", settings=_HELD),
    _gymnasium(
        "Swimmer-v5-known",
        300.0,
        5_000,
        _POPLIN,
        made_from=("Swimmer-v5", {}),
        settings=_HELD,
        reward=_swimmer_reward,
    ),
    _gymnasium("MountainCar-v0", -110.0, 600, "DQN 120,000"),
    _gymnasium("Acrobot-v1", -100.0, 3_000, "DQN -77 at 100,000", episodes=20),
    _gymnasium(
        "LunarLanderContinuous-v3",
        200.0,
        15_000,
        "TRPO 262 at 200,000",
        made_from=("LunarLander-v3", {"continuous": True}),
        window=5,
        episodes=100,
    ),
    _control_suite("pendulum-swingup", 700.0, 5_000, "TD-MPC2 100,000"),
    _control_suite("cartpole-swingup", 800.0, 5_000, "TD-MPC 60,000"),
    _control_suite("cartpole-swingup_sparse", 600.0, 10_000, "TD-MPC 60,000 to 80,000"),
    _control_suite("ball_in_cup-catch", 900.0, 8_000, "TD-MPC 40,000"),
    _control_suite("reacher-easy", 900.0, 8_000, "TD-MPC 60,000", window=5),
    _control_suite("finger-spin", 800.0, 15_000, "TD-MPC 40,000"),
    _control_suite("acrobot-swingup", 200.0, 30_000, "TD-MPC2 179 at 100,000"),
    _DOUBLE_PENDULUM,
    Task("pcgym-cstr", "pcgym", _reactor, -79.0, 300, "SAC 2,000; PPO not in 49,000", **_PCGYM),
    Task("pcgym-four-tank", "pcgym", _four_tanks, -2.0, 600, "DDPG 20,000", **_PCGYM),
    _gymnasium("HalfCheetah-v5", None, None, _CURVES, budget=20_000),
    _gymnasium("Hopper-v5", None, None, _CURVES, budget=20_000, episodes=100),
)
TASKS: dict[str, Task] = {task.name: task for task in _ALL}
