"""Names that help and completion show. To import the library for them would take a second."""

from collections.abc import Callable, Sequence

#: The registered agents: the recommended one first, classics of special cases last.
AGENTS = (
    "psrl",
    "frugal",
    "gp-ucrl",
    "sombrl",
    "greedy",
    "random",
    "oracle",
    "dirichlet-psrl",
    "ucbvi",
    "ucrl2",
    "certainty-equivalence",
    "ofu-lq",
    "lqr-ts",
)
#: The registered environments.
ENVIRONMENTS = (
    "rkhs",
    "rkhs-2d",
    "gp-prior",
    "pendulum-swingup",
    "pendulum-coarse",
    "pendulum",
    "pendulum-noisy",
    "cartpole-swingup",
    "cartpole-balance",
    "riverswim",
    "deepsea",
    "tabular-random",
    "bandit-branin",
    "bandit-hartmann6",
    "bandit-rkhs",
    "lqr-1d",
    "lqr-2d",
    "lqr-4d",
    "quadrotor",
)
#: The regret bounds of ``kmdp bound``.
BOUNDS = (
    "theorem1",
    "theorem2",
    "theorem3",
    "theorem4",
    "theorem16",
    "theorem17",
    "theorem18",
    "theorem19",
    "corollary1",
    "corollary2",
    "tabular",
)
#: The versions of a regret bound.
VERSIONS = ("paper", "repaired", "improved")


def completion(names: Sequence[str]) -> Callable[[str], list[str]]:
    """Make a function that completes an incomplete name.

    Args:
        names: All names.

    Returns:
        A function from the beginning of a name to the names that begin so.

    >>> completion(AGENTS)("gp")
    ['gp-ucrl']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete
