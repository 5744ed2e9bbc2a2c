"""The learner's state before any data, where what cannot be learned is refused."""

from typing import Any

import jax

from kernelmdp.agents.size_note import note_size
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.learners import Learner
from kernelmdp.mdp import Problem


def first_state(learner: Learner, problem: Problem, seed: int, draws: bool) -> Any:
    """Make the state before any data, and note what a large problem costs.

    Args:
        learner: The learner.
        problem: The problem.
        seed: The agent's seed.
        draws: Whether the agent draws functions from the posterior.

    Returns:
        The state.

    Raises:
        UnknownPropertyError: If the agent draws functions, and a kernel neither compiles on the
            domain nor has a spectral law.
    """
    note_size(problem)
    state = learner.init(problem, key=jax.random.key(seed))
    kernel = learner.undrawable(state) if draws else None
    if kernel is not None:
        raise UnknownPropertyError(
            f"this agent draws functions, as PSRL and Frugal do, but the kernel {kernel} neither "
            "compiles on the domain nor has a spectral law: use GPUCRL or Greedy, or give the "
            "kernel 'stationary' and 'frequencies' if it depends on x - y only "
            "(docs/extending.md, 'A kernel')"
        )
    return state
