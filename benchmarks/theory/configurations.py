"""Random configurations of small problems and agents, of which many break an assumption.

A configuration is a dictionary of choices. ``make_environment`` draws a truth for it, so that one
configuration serves many runs with the same compiled programs.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.envs.noise_lipschitz import with_lipschitz
from kernelmdp.envs.rkhs import KernelExpansion
from kernelmdp.kernels.base import gram
from kernelmdp.mdp import MDP, Gaussian, MeanModel, StudentT, Uniform
from kernelmdp.numerics.modules import Module

#: What each choice is drawn from. The first value is the harmless one; it is drawn with a
#: probability of ``HARMLESS``, so that a good share of configurations is covered.
CHOICES: dict[str, tuple[Any, ...]] = {
    "agent": ("gp-ucrl", "psrl", "oracle"),
    "m": (1, 2),
    "horizon": (3, 2, 1),
    "kernel": ("linear", "affine", "se"),
    "actions": ("finite", "box"),
    "scale": (1.0, 0.3, 3.0),
    "metric": (1.0, 0.5, 2.0),
    "offset": ("zero", "identity"),
    "law": ("gaussian", "uniform", "student-t"),
    "noise": (0.1, 0.3, 0.0),
    "unequal": (False, True),
    "told_noise": ("right", "half", "double"),
    "told_norm": ("right", "half", "double", "unknown"),
    "drawn": (True, False),
    "reward": ("learned", "known", "wrong"),
    "reward_bounds": ("none", "narrow"),
    "outcomes": ("told", "clipped"),
    "termination": (False, True),
    "update": ("episode", "step"),
    "first_episode": ("prior", "random"),
    "setting": ("rkhs", "gp"),
    "shape": ("lmax", "trace", "ellipsoid", "box"),
    "gain": ("realised", "maximum"),
    "regulariser": ("noise", "paper", 10.0),
    "delta": (0.1, 0.3),
    "beta_scale": (1.0, 0.1, 2.0),
    "margin": (0.0, 1.0),
    "split": (True, False),
    "divide": (True, False),
    "planner": ("auto", "ball", "bonus", "paper", "no envelope", "certified"),
}
#: Probability of the first value of each choice. Choices that break no assumption vary more.
HARMLESS = dict.fromkeys(CHOICES, 0.92) | {
    "agent": 0.8,
    "m": 0.6,
    "horizon": 0.5,
    "kernel": 0.5,
    "actions": 0.6,
    "scale": 0.4,
    "metric": 0.4,
    "offset": 0.5,
    "noise": 0.6,
    "reward": 0.7,
    "setting": 0.7,
    "shape": 0.4,
    "gain": 0.8,
    "regulariser": 0.7,
    "delta": 0.5,
    "planner": 0.7,
}
#: How norm and noise combine in β, for every shape.
BETAS = ("mixture", "paper")
#: A bound of all mean rewards, the same for all truths: another number would be another program.
REWARDS = 6.0
#: The first state along each axis, and the border behind which episodes end.
START, BORDER = 0.0, 0.6


def draw(seed: int) -> dict[str, Any]:
    """Draw a configuration. Combinations that the library refuses to build are drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        chosen = {}
        for name, values in CHOICES.items():
            if rng.uniform() < HARMLESS[name]:
                chosen[name] = values[0]
            else:
                chosen[name] = values[1 + int(rng.integers(len(values) - 1))]
        if chosen["setting"] == "gp" and chosen["regulariser"] == "paper":
            continue
        if chosen["planner"] == "bonus" and chosen["shape"] in ("ellipsoid", "box"):
            continue
        # A stream of its own keeps the other choices of a seed as they were before this one.
        betas = ("mixture", "dual", "paper") if chosen["shape"] != "ellipsoid" else BETAS
        chosen["beta"] = str(np.random.default_rng([seed, 1]).choice(betas))
        return chosen


class Affine(Module):
    """f(z) = W φ(z) with φ(z) = √c (z, and 1 if there is a constant): points (n, d) -> (n, k)."""

    weights: Any
    constant: bool

    def __call__(self, points: Any) -> Any:
        ones = jnp.ones((points.shape[0], 1))
        features = jnp.concatenate([points, ones], axis=1) if self.constant else points
        return jnp.sqrt(0.3) * features @ self.weights.T


class Column(Module):
    """One output of a function with several."""

    function: Any

    def __call__(self, points: Any) -> Any:
        return self.function(points)[:, 0]


class Stacked(Module):
    """Scalar functions side by side."""

    functions: tuple[Any, ...]

    def __call__(self, points: Any) -> Any:
        return jnp.stack([function(points) for function in self.functions], axis=1)


class Shifted(Module):
    """offset(z) + scale·residual(z): the mean next state of a scaled residual."""

    residual: Any
    scale: float
    identity: bool
    m: int

    def __call__(self, points: Any) -> Any:
        offset = points[:, : self.m] if self.identity else 0.0
        return offset + self.scale * self.residual(points)


def _kernel(name: str) -> Any:
    return km.kernel(
        {"linear": "0.3*linear", "affine": "0.3*linear + 0.3*constant"}.get(name, "se(1.5)")
    )


def _functions(config: dict[str, Any], points: Any, count: int, norm: float, rng: Any) -> Any:
    """``count`` functions of joint norm ``norm``, or draws of the prior for the setting "gp"."""
    gaussian = config["setting"] == "gp" and config["drawn"]
    if config["kernel"] == "se":
        kernel = _kernel("se")
        centres = jnp.asarray(points.spread_points(25))
        matrix = np.asarray(gram(kernel, centres, centres))
        weights = rng.normal(size=(count, len(matrix)))
        size = np.sqrt(np.einsum("ki,ij,kj->", weights, matrix, weights))
        weights *= norm / size
        return Stacked(tuple(KernelExpansion(kernel, centres, jnp.asarray(w)) for w in weights))
    constant = config["kernel"] == "affine"
    weights = rng.normal(size=(count, points.dimension + constant))
    if not gaussian:
        weights *= norm / np.linalg.norm(weights)
    return Affine(jnp.asarray(weights), constant)


def _noise(config: dict[str, Any], size: int, factor: float = 1.0) -> Any:
    deviation = factor * config["noise"]
    sizes = (
        deviation * np.array([1.0, 1.5])[:size] if config["unequal"] and size == 2 else deviation
    )
    if config["law"] == "student-t" and config["noise"] > 0:
        return StudentT(sizes, degrees=4.0)
    return Uniform(sizes) if config["law"] == "uniform" else Gaussian(sizes)


def make_environment(config: dict[str, Any], truth: int) -> km.Environment:
    """Draw the truth of a configuration."""
    rng, m = np.random.default_rng(truth), config["m"]
    states = km.Box([-1.0] * m, [1.0] * m)
    actions = (
        km.FiniteSet([[-1.0], [0.0], [1.0]])
        if config["actions"] == "finite"
        else km.Box([-1.0], [1.0])
    )
    points = km.join(state=states, action=actions)
    reward = _functions(config, points, 1, 1.0, rng)
    residual = _functions(config, points, m, 0.8, rng)
    transition = Shifted(residual, config["scale"], config["offset"] == "identity", m)
    termination = (lambda z, after: after[:, 0] > BORDER) if config["termination"] else None
    mdp = MDP(
        MeanModel(Column(reward), transition),
        states=states,
        actions=actions,
        horizon=config["horizon"],
        reward_noise=_noise(config, 1),
        transition_noise=_noise(config, m),
        metric=(config["metric"],) * m,
        termination=termination,
        reward_range=(-REWARDS, REWARDS),
    )
    nodes = {1: (31,), 2: (13, 13)}[m]
    fine = {1: (121,), 2: (49, 49)}[m]
    rule = "none"
    if config["law"] == "gaussian" and config["noise"] > 0 and config["horizon"] > 1:
        mdp, rule = with_lipschitz(mdp, state_points=fine, action_points=(9,))
    drawn = config["setting"] == "gp" and config["drawn"] and config["kernel"] != "se"
    known = config["told_norm"] != "unknown" and not drawn
    return km.Environment.of(
        mdp,
        (START,) * m,
        name="adversary",
        reward_kernel=_kernel(config["kernel"]),
        transition_kernel=_kernel(config["kernel"]) @ km.kernels.Index(m),
        offset=config["offset"],
        scale=(config["scale"],) * m,
        state_points=nodes,
        action_points=(5,),
        optimum_points=(fine, (17,)),
        norm_reward=1.0 + 1e-9 if known else None,
        norm_transition=0.8 + 1e-9 if known else None,
        lipschitz_rule=rule,
        drawn_from_prior=drawn,
    )


def make_agent(config: dict[str, Any], env: km.Environment, seed: int) -> Any:
    """Make the agent of a configuration."""
    norms = {}
    if config["told_norm"] in ("half", "double"):
        factor = 0.5 if config["told_norm"] == "half" else 2.0
        norms = {"norm_reward": factor, "norm_transition": 0.8 * factor}
    confidence = km.Confidence(
        setting=config["setting"],
        shape=config["shape"],
        gain=config["gain"],
        beta=config["beta"],
        regulariser=config["regulariser"],
        delta=config["delta"],
        scale=config["beta_scale"],
        margin=config["margin"],
        split=config["split"],
        divide=config["divide"],
        **norms,
    )
    settings: dict[str, Any] = {
        "confidence": confidence,
        "update": config["update"],
        "first_episode": config["first_episode"],
        "planner": {
            "ball": {"name": "grid", "optimism": "ball"},
            "no envelope": {"name": "grid", "envelope": False},
        }.get(config["planner"], config["planner"]),
    }
    if config["told_noise"] != "right":
        settings["noise"] = _noise(config, 1, 0.5 if config["told_noise"] == "half" else 2.0)
    if config["reward"] == "known":
        settings["reward"] = "known"
    elif config["reward"] == "wrong":
        settings["reward"] = lambda z: 0.5 * z[:, 0] - 0.2
    if config["reward_bounds"] == "narrow":
        settings["reward_bounds"] = (-0.01, 0.01)
    kinds = {"gp-ucrl": km.GPUCRL, "psrl": km.PSRL, "oracle": km.Oracle}
    return kinds[config["agent"]](env, seed=seed, **settings)


def episode_key(truth: int, episode: int) -> Any:
    """The key of the noise of an episode."""
    return jax.random.fold_in(jax.random.key(truth), episode)
