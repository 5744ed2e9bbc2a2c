"""MDPs with finitely many states and actions, given by their tables.

States and actions are numbers 0, 1, …. A mean next state is the vector of probabilities (note D4).
Kernels are one-hot. The transition kernel gives every row the mean and the variances of the
Dirichlet(1/S) prior: N(1/S, v) with v = (1/S)(1 − 1/S)/2. It is worth about one observation. The
noise variance that agents know is the mean of p(1 − p) over the table.
"""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import FiniteSet
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import ApproximationWarning, ArgumentError, ShapeError
from kernelmdp.kernels import Index, Kernel, OutputKernel
from kernelmdp.mdp import MDP, Categorical, Gaussian, MeanModel
from kernelmdp.mdp.model import LookupTable
from kernelmdp.numerics.checks import choice, integer, positive_number, require_finite

#: Most bytes of the tables of an environment. Larger ones would fill the memory of many machines.
MAX_BYTES = 2**31


def tabular(
    transitions: Any,
    rewards: Any,
    *,
    horizon: int,
    start: int = 0,
    noise: float = 0.1,
    embedding: str = "one-hot",
    name: str = "tabular",
) -> Environment:
    """Make an environment from tables.

    Args:
        transitions: Transition probabilities, (S, A, S).
        rewards: Mean rewards, (S, A).
        horizon: The number of periods, H.
        start: The first state.
        noise: The standard deviation of the Gaussian noise on rewards.
        embedding: "one-hot", or the paper's "index". With "index", agents see states as numbers on
            a line, with a mean and additive noise. This is right for few tables (note B12), so it
            warns.
        name: The name of the environment.

    Returns:
        The environment.

    >>> chain = tabular([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [1.0]], horizon=2)
    >>> chain.optimal_value().value
    1.0
    """
    P, R = _tables(transitions, rewards)
    S, A = R.shape
    states, actions = FiniteSet.range(S), FiniteSet.range(A)
    reward_kernel, transition_kernel = table_kernels(S, A)
    mdp = MDP(
        MeanModel(LookupTable(jnp.asarray(R)), LookupTable(jnp.asarray(P))),
        states=states,
        actions=actions,
        horizon=integer("horizon", horizon, least=1),
        reward_noise=Gaussian(positive_number("noise", noise)),
        transition_noise=Categorical(states, variance=float(np.mean(P * (1 - P)))),
        reward_range=(float(R.min()), float(R.max())),
        lipschitz=_lipschitz(P, R, horizon),
    )
    if choice("embedding", embedding, ("one-hot", "index")) == "index":
        return _index_embedding(mdp, P, R, start=start, name=name)
    return Environment.of(
        name=name,
        mdp=mdp,
        start=(float(integer("start", start, least=0)),),
        reward_kernel=reward_kernel,
        transition_kernel=transition_kernel,
        offset="uniform",
        scale=(1.0,) * S,
        state_points=(2,),
        action_points=(2,),
        optimum_points=((2,), (2,)),
        # With one-hot features, the norm is that of the table in units of the prior deviation.
        norm_reward=float(np.sqrt((R**2).sum())),
        norm_transition=float(np.sqrt(((P - 1 / S) ** 2).sum() / prior_variance(S))),
        lipschitz_rule="exact: max over h of min over c of |V_h − c|",
    )


def _index_embedding(
    mdp: MDP, P: np.ndarray, R: np.ndarray, *, start: int, name: str
) -> Environment:
    """Return the paper's embedding with m = 1: the mean number of the next state, plus noise."""
    warnings.warn(
        "states as numbers on a line assume that next states are a location family (a mean plus "
        "noise of one law); most tables are not, and no theorem covers the run",
        ApproximationWarning,
        stacklevel=3,
    )
    S, A = R.shape
    numbers = np.arange(float(S))
    means = P @ numbers
    deviation = float(np.sqrt(np.maximum(P @ numbers**2 - means**2, 0).mean()))
    slopes = [0.0]
    V = np.zeros(S)
    for _ in range(mdp.horizon - 1):
        V = (R + P @ V).max(axis=1)
        slopes.append(float(np.abs(np.diff(V)).max()) if S > 1 else 0.0)
    approximate_mdp = MDP(
        MeanModel(LookupTable(jnp.asarray(R)), LookupTable(jnp.asarray(means[:, :, None]))),
        states=mdp.states,
        actions=mdp.actions,
        horizon=mdp.horizon,
        reward_noise=mdp.reward_noise,
        transition_noise=Gaussian(max(deviation, 0.1), estimated=True),
        reward_range=mdp.reward_range,
        lipschitz=max(slopes),
    )
    cells, _ = table_kernels(S, A)
    return Environment.of(
        name=name,
        mdp=mdp,
        approximate_mdp=approximate_mdp,
        start=(float(integer("start", start, least=0)),),
        reward_kernel=cells,
        transition_kernel=cells @ Index(1),
        offset="identity",
        scale=(1.0,),
        state_points=(2,),
        action_points=(2,),
        optimum_points=((2,), (2,)),
        norm_reward=float(np.sqrt((R**2).sum())),
        norm_transition=float(np.sqrt(((means - numbers[:, None]) ** 2).sum())),
        lipschitz_rule="estimate: the steepest step of the true values between neighbours",
    )


def prior_variance(states: int) -> float:
    """Return the variance of a probability under the Dirichlet(1/S) prior.

    Args:
        states: The number of states, S.

    Returns:
        (1/S)(1 − 1/S)/2; 1 for one state.
    """
    return (1 - 1 / states) / (2 * states) if states > 1 else 1.0


def table_kernels(states: int, actions: int) -> tuple[Kernel, OutputKernel]:
    """Make the one-hot kernels of a table, on points (s, a).

    Args:
        states: The number of states, S.
        actions: The number of actions, A.

    Returns:
        The kernels of the reward and of the transition.
    """
    cells = Index(states).on("state") * Index(actions).on("action")
    return cells, (prior_variance(states) * cells) @ Index(states)


def riverswim(
    seed: int = 0,
    *,
    states: int = 6,
    horizon: int = 20,
    noise: float = 0.1,
    embedding: str = "one-hot",
) -> Environment:
    """Make RiverSwim: a large reward at the far end against the current, a small one at the start.

    Left always succeeds. Right moves one state on with probability 0.35 (0.6 at the left end), one
    state back with 0.05 (0.4 at the right end), and stays otherwise. The reward is 0.005 for left
    at the left end and 1 for right at the right end. (Strehl and Littman 2008, in the form of
    Osband et al. 2013.)

    Args:
        seed: Not used: there is one such environment.
        states: The number of states, S ≥ 3.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on rewards.
        embedding: As for ``tabular``.

    Returns:
        The environment.
    """
    S = integer("states", states, least=3)
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, s] = 0.6
        P[s, 1, min(s + 1, S - 1)] += 0.35
        P[s, 1, max(s - 1, 0)] += 0.05
    P[0, 1], P[-1, 1] = 0.0, 0.0
    P[0, 1, :2] = 0.4, 0.6
    P[-1, 1, -2:] = 0.4, 0.6
    R[0, 0], R[-1, 1] = 0.005, 1.0
    return tabular(P, R, horizon=horizon, noise=noise, embedding=embedding, name="riverswim")


def deepsea(seed: int = 0, *, size: int = 10, noise: float = 0.1) -> Environment:
    """Make DeepSea: a grid with a treasure at its last cell, reached only by going right each time.

    Every period moves one row down. For each cell, the action that means right is drawn at random.
    Going right costs 0.01/size, and pays 1 at the last cell on the right. (Osband et al. 2019.)

    Args:
        seed: Decides which action means right.
        size: The number of rows, columns and periods.
        noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    N = integer("size", size, least=2)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    right = rng.integers(0, 2, (N, N))
    P, R = np.zeros((N * N, 2, N * N)), np.zeros((N * N, 2))
    for row in range(N):
        for column in range(N):
            cell = row * N + column
            for action in (0, 1):
                goes_right = action == right[row, column]
                next_column = min(column + 1, N - 1) if goes_right else max(column - 1, 0)
                P[cell, action, min(row + 1, N - 1) * N + next_column] = 1.0
                R[cell, action] = -0.01 / N if goes_right else 0.0
                if goes_right and row == N - 1 and column == N - 1:
                    R[cell, action] += 1.0
    return tabular(P, R, horizon=N, noise=noise, name="deepsea")


def tabular_random(
    seed: int = 0, *, states: int = 10, actions: int = 3, horizon: int = 10, noise: float = 0.1
) -> Environment:
    """Make a random table: probabilities from Dirichlet(1), mean rewards uniform on [0, 1].

    Args:
        seed: Decides the table.
        states: The number of states, S.
        actions: The number of actions, A.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    S, A = integer("states", states, least=1), integer("actions", actions, least=1)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    P, R = rng.dirichlet(np.ones(S), (S, A)), rng.uniform(size=(S, A))
    return tabular(P, R, horizon=horizon, noise=noise, name="tabular-random")


def _tables(transitions: Any, rewards: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        P, R = (np.asarray(a, dtype=float) for a in (transitions, rewards))
    except (TypeError, ValueError):
        raise ArgumentError("rewards", "tables of numbers", "something else") from None
    if P.ndim != 3 or P.shape[0] != P.shape[2]:
        raise ShapeError("transitions", "shape (S, A, S)", f"shape {P.shape}")
    if R.shape != P.shape[:2]:
        raise ShapeError("rewards", f"shape {P.shape[:2]}", f"shape {R.shape}")
    require_finite("rewards", R)
    require_finite("transitions", P)
    if P.nbytes > MAX_BYTES:
        raise ArgumentError("transitions", f"at most {MAX_BYTES >> 30} GiB", f"{P.nbytes:,} bytes")
    invalid = np.argwhere((P < 0).any(axis=2) | (np.abs(P.sum(axis=2) - 1) > 1e-9))
    if len(invalid):
        s, a = (int(i) for i in invalid[0])
        raise ArgumentError(
            "transitions", "probabilities that sum to 1", f"{P[s, a]} in state {s}, action {a}"
        )
    return P, R


def _lipschitz(P: np.ndarray, R: np.ndarray, horizon: int) -> float:
    """Return L. U_h(p) = ⟨p, V⟩ is linear, with slope |V − mean(V)| on the simplex (note D4)."""
    V, largest = np.zeros(len(R)), 0.0
    for _ in range(horizon - 1):
        V = (R + P @ V).max(axis=1)
        largest = max(largest, float(np.linalg.norm(V - V.mean())))
    return largest
