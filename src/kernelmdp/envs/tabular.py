"""MDPs with finitely many states and actions, given by their tables.

States and actions are numbers 0, 1, …; a mean next state is the vector of probabilities (math D4).
Kernels are one-hot. The transition kernel gives every row the mean and the variances of the
Dirichlet(1/S) prior, worth about one observation: N(1/S, v) with v = (1/S)(1 − 1/S)/2. The noise
variance that agents are told is the mean of p(1 − p) over the table, as that of a noise law is.
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

#: Bytes that the tables of an environment may take.
MEMORY = 2**31


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
    """The environment of transition probabilities (S, A, S) and mean rewards (S, A).

    Rewards are observed with Gaussian noise of this standard deviation. With the paper's own
    ``embedding``, "index", agents see states as numbers on a line with a mean and additive noise,
    which is right for few tables (math B12): a warning says so.

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
        return _on_a_line(mdp, P, R, start=start, name=name)
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
        # One-hot features: a norm is that of the table, in units of the kernel's deviation.
        norm_reward=float(np.sqrt((R**2).sum())),
        norm_transition=float(np.sqrt(((P - 1 / S) ** 2).sum() / prior_variance(S))),
        lipschitz_rule="exact: max over h of min over c of |V_h − c|",
    )


def _on_a_line(mdp: MDP, P: np.ndarray, R: np.ndarray, *, start: int, name: str) -> Environment:
    """The paper's embedding, m = 1: the mean of the next state's number, and noise around it."""
    warnings.warn(
        "states as numbers on a line assume that next states are a location family (a mean plus "
        "noise of one law); most tables are not, and no theorem covers the run",
        ApproximationWarning,
        stacklevel=3,
    )
    S, A = R.shape
    numbers = np.arange(float(S))
    means = P @ numbers
    spread = float(np.sqrt(np.maximum(P @ numbers**2 - means**2, 0).mean()))
    steps = [0.0]
    V = np.zeros(S)
    for _ in range(mdp.horizon - 1):
        V = (R + P @ V).max(axis=1)
        steps.append(float(np.abs(np.diff(V)).max()) if S > 1 else 0.0)
    believed = MDP(
        MeanModel(LookupTable(jnp.asarray(R)), LookupTable(jnp.asarray(means[:, :, None]))),
        states=mdp.states,
        actions=mdp.actions,
        horizon=mdp.horizon,
        reward_noise=mdp.reward_noise,
        transition_noise=Gaussian(max(spread, 0.1), estimated=True),
        reward_range=mdp.reward_range,
        lipschitz=max(steps),
    )
    cells, _ = table_kernels(S, A)
    return Environment.of(
        name=name,
        mdp=mdp,
        believed=believed,
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
    """Variance of a probability under the Dirichlet(1/S) prior over that many states."""
    return (1 - 1 / states) / (2 * states) if states > 1 else 1.0


def table_kernels(states: int, actions: int) -> tuple[Kernel, OutputKernel]:
    """One-hot kernels for rewards and for next states, on points (s, a)."""
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
    """Swim against the current for a large reward far away, or float for a small one here.

    Left always succeeds. Right moves on with probability 0.35 (0.6 at the left end), is carried
    back with 0.05 (0.4 at the right end), else stays. Rewards: 0.005 for left at the left end, 1
    for right at the right end. (Strehl and Littman 2008, in the form of Osband et al. 2013.)
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
    """A grid whose treasure is found only by going right ``size`` times, at a small cost each.

    One row down in each of the ``size`` periods; which action means right is drawn for every cell.
    Going right costs 0.01/size; the last cell on the right pays 1. (Osband et al. 2019.)
    """
    N = integer("size", size, least=2)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    right = rng.integers(0, 2, (N, N))
    P, R = np.zeros((N * N, 2, N * N)), np.zeros((N * N, 2))
    for row in range(N):
        for column in range(N):
            cell = row * N + column
            for action in (0, 1):
                goes = action == right[row, column]
                after = min(column + 1, N - 1) if goes else max(column - 1, 0)
                P[cell, action, min(row + 1, N - 1) * N + after] = 1.0
                R[cell, action] = -0.01 / N if goes else 0.0
                if goes and row == N - 1 and column == N - 1:
                    R[cell, action] += 1.0
    return tabular(P, R, horizon=N, noise=noise, name="deepsea")


def tabular_random(
    seed: int = 0, *, states: int = 10, actions: int = 3, horizon: int = 10, noise: float = 0.1
) -> Environment:
    """Rows of probabilities from Dirichlet(1), mean rewards uniform on [0, 1]."""
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
    if P.nbytes > MEMORY:
        raise ArgumentError("transitions", f"at most {MEMORY >> 30} GiB", f"{P.nbytes:,} bytes")
    wrong = np.argwhere((P < 0).any(axis=2) | (np.abs(P.sum(axis=2) - 1) > 1e-9))
    if len(wrong):
        s, a = (int(i) for i in wrong[0])
        raise ArgumentError(
            "transitions", "probabilities that sum to 1", f"{P[s, a]} in state {s}, action {a}"
        )
    return P, R


def _lipschitz(P: np.ndarray, R: np.ndarray, horizon: int) -> float:
    """U_h(p) = ⟨p, V⟩ is linear: on the simplex its slope is |V − mean(V)|, exactly (math D4)."""
    V, largest = np.zeros(len(R)), 0.0
    for _ in range(horizon - 1):
        V = (R + P @ V).max(axis=1)
        largest = max(largest, float(np.linalg.norm(V - V.mean())))
    return largest
