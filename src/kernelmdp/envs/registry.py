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
from kernelmdp.numerics.checks import suggested


def rkhs_2d(seed: int = 0, **options: Any) -> Environment:
    """``rkhs`` with two state coordinates."""
    return rkhs(seed, dimension=2, **options)


MAKERS: dict[str, Callable[..., Environment]] = {
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


def names() -> tuple[str, ...]:
    """The names ``make`` knows.

    >>> "riverswim" in names()
    True
    """
    return tuple(MAKERS)


def require_known(name: str, options: Iterable[str] = ()) -> None:
    """Complain of a name or an option that ``make`` does not know."""
    if name not in MAKERS:
        expected = "one of " + ", ".join(map(repr, MAKERS))
        raise ArgumentError("name", expected, suggested(name, MAKERS))
    # The options of rkhs-2d are those of rkhs but for the dimension.
    accepted = set(inspect.signature(rkhs if name == "rkhs-2d" else MAKERS[name]).parameters)
    accepted -= {"seed"} | ({"dimension"} if name == "rkhs-2d" else set())
    unknown = sorted(set(options) - {"seed"} - accepted)
    if unknown:
        raise ArgumentError(
            "options", f"for {name}: " + ", ".join(sorted(accepted)), ", ".join(unknown)
        )


def make(name: str, *, seed: int = 0, **options: Any) -> Environment:
    """The environment of a name; ``seed`` chooses the instance of the random ones.

    >>> make("pendulum-swingup", penalty=0.1).mdp.horizon
    100
    """
    require_known(name, options)
    spec = {"name": name, "seed": seed, **options}
    return dataclasses.replace(MAKERS[name](seed, **options), spec=spec)
