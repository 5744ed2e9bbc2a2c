"""The registry of environments, and ``make``."""

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
from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.registry import Registry, is_reference


def rkhs_2d(seed: int = 0, **options: Any) -> Environment:
    """Make ``rkhs`` with two state coordinates.

    Args:
        seed: Decides the random functions.
        **options: Options of ``rkhs``, except ``dimension``.

    Returns:
        The environment.
    """
    return rkhs(seed, dimension=2, **options)


#: Functions that make environments, by name. They take options, and ``seed`` if they need one.
ENVIRONMENTS = Registry[Callable[..., Any]]("environment")
#: Options of ``from_gymnasium`` that serve every Gymnasium environment, beside the horizon. The
#: environment itself need not have them.
BORDER_OPTIONS = ("angles", "action_repeat", "clock", "cost")
#: The environments of this library.
_BUILT_IN: dict[str, Callable[..., Environment]] = {
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
for _name, _maker in _BUILT_IN.items():
    ENVIRONMENTS.register(_name, _maker)


def names() -> tuple[str, ...]:
    """List the names that ``make`` knows.

    Returns:
        The names.

    >>> "riverswim" in names()
    True
    """
    return tuple(ENVIRONMENTS)


def require_known(name: str, options: Iterable[str] = ()) -> None:
    """Check that ``make`` knows a name and its options.

    Args:
        name: A registered name, or ``module:Name``.
        options: Names of options.

    Raises:
        ArgumentError: If there is no such environment, or it has no such option.
    """
    maker = ENVIRONMENTS.find(name)
    parameters = inspect.signature(rkhs if maker is rkhs_2d else maker).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return
    # The options of rkhs-2d are those of rkhs, without the dimension.
    accepted = set(parameters) - {"seed"} - ({"dimension"} if maker is rkhs_2d else set())
    unknown = sorted(set(options) - {"seed"} - accepted)
    if unknown:
        expected = f"for {name}: {', '.join(sorted(accepted)) or 'none of its own'}"
        if is_reference(name):
            border = ("horizon", *BORDER_OPTIONS)
            expected += f"; {', '.join(border)} serve every Gymnasium environment"
            accepted |= set(border)
        raise ArgumentError("options", expected, with_suggestion(unknown[0], sorted(accepted)))


def takes_option(name: str, option: str) -> bool:
    """Return whether the maker of an environment takes an option.

    Args:
        name: A registered name, or ``module:Name``.
        option: The name of the option.

    Returns:
        True if it does.

    >>> takes_option("pendulum-swingup", "penalty"), takes_option("pendulum-swingup", "depth")
    (True, False)
    """
    parameters = inspect.signature(ENVIRONMENTS.find(name)).parameters.values()
    anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    return anything or option in [each.name for each in parameters]


def make(name: str, *, seed: int = 0, **options: Any) -> Any:
    """Make an environment by name.

    Args:
        name: A registered name, one of an entry point, or ``module:Name`` of a class or function.
        seed: Decides the instance of a random environment.
        **options: Options of the environment.

    Returns:
        An ``Environment``, or a Gymnasium environment if a user's function makes one.

    >>> make("pendulum-swingup", penalty=0.1).mdp.horizon
    100
    """
    require_known(name, options)
    maker = ENVIRONMENTS.find(name)
    seed_option = {"seed": seed} if "seed" in inspect.signature(maker).parameters else {}
    environment = maker(**seed_option, **options)
    if not isinstance(environment, Environment):
        return environment
    return dataclasses.replace(environment, spec={"name": name, "seed": seed, **options})
