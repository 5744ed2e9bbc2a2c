"""Environments by name."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from kernelmdp.envs.bandits import bandit_branin, bandit_hartmann6, bandit_rkhs
from kernelmdp.envs.cartpole_balance import cartpole_balance
from kernelmdp.envs.cartpole_swingup import cartpole_swingup
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.gp_prior import gp_prior
from kernelmdp.envs.lqr import lqr_1d, lqr_2d, lqr_4d, quadrotor
from kernelmdp.envs.pendulum_classic import pendulum, pendulum_noisy
from kernelmdp.envs.pendulum_coarse import pendulum_coarse
from kernelmdp.envs.pendulum_swingup import pendulum_swingup
from kernelmdp.envs.rkhs import rkhs
from kernelmdp.envs.tabular import deepsea, riverswim, tabular_random
from kernelmdp.errors import ArgumentError
from kernelmdp.registry import Registry


def rkhs_2d(seed: int = 0, **options: Any) -> Environment:
    """``rkhs`` with two state coordinates."""
    return rkhs(seed, dimension=2, **options)


#: What makes environments, by name: functions of options, and of ``seed`` where they have one.
ENVIRONMENTS = Registry[Callable[..., Any]]("environment")
_OURS: dict[str, Callable[..., Environment]] = {
    "rkhs": rkhs,
    "rkhs-2d": rkhs_2d,
    "gp-prior": gp_prior,
    "pendulum-swingup": pendulum_swingup,
    "pendulum-coarse": pendulum_coarse,
    "pendulum": pendulum,
    "pendulum-noisy": pendulum_noisy,
    "cartpole-swingup": cartpole_swingup,
    "cartpole-balance": cartpole_balance,
    "riverswim": riverswim,
    "deepsea": deepsea,
    "tabular-random": tabular_random,
    "bandit-branin": bandit_branin,
    "bandit-hartmann6": bandit_hartmann6,
    "bandit-rkhs": bandit_rkhs,
    "lqr-1d": lqr_1d,
    "lqr-2d": lqr_2d,
    "lqr-4d": lqr_4d,
    "quadrotor": quadrotor,
}
for _name, _maker in _OURS.items():
    ENVIRONMENTS.register(_name, _maker)


def names() -> tuple[str, ...]:
    """The names ``make`` knows.

    >>> "riverswim" in names()
    True
    """
    return tuple(ENVIRONMENTS)


def require_known(name: str, options: Iterable[str] = ()) -> None:
    """Complain of a name or an option that ``make`` does not know.

    Raises:
        ArgumentError: If there is no such environment, or it has no such option.
    """
    maker = ENVIRONMENTS.find(name)
    parameters = inspect.signature(rkhs if maker is rkhs_2d else maker).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    # The options of rkhs-2d are those of rkhs but for the dimension.
    accepted = set(parameters) - {"seed"} - ({"dimension"} if maker is rkhs_2d else set())
    unknown = sorted(set(options) - {"seed"} - accepted)
    if unknown:
        raise ArgumentError(
            "options", f"for {name}: " + ", ".join(sorted(accepted)), ", ".join(unknown)
        )


def make(name: str, *, seed: int = 0, **options: Any) -> Any:
    """The environment of a name, or of ``module:Name``.

    Args:
        name: A registered name, one of an entry point, or ``module:Name`` of a class or function.
        seed: Chooses the instance of the random ones.
        **options: Of the environment.

    Returns:
        An ``Environment``, or a Gymnasium environment where a user's maker makes one.

    >>> make("pendulum-swingup", penalty=0.1).mdp.horizon
    100
    """
    require_known(name, options)
    maker = ENVIRONMENTS.find(name)
    seeded = {"seed": seed} if "seed" in inspect.signature(maker).parameters else {}
    made = maker(**seeded, **options)
    if not isinstance(made, Environment):
        return made
    return dataclasses.replace(made, spec={"name": name, "seed": seed, **options})
