"""What an agent may know of the system it is to control: everything but the system itself."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import Beliefs
from kernelmdp.domains import Box, Domain, FiniteSet, Product, join
from kernelmdp.envs import Environment, GymnasiumTask, from_gymnasium, make, names
from kernelmdp.envs.tabular import table_kernels
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.gp import posterior
from kernelmdp.gp.means import Constant, as_mean
from kernelmdp.kernels import Index, Kernel, OutputKernel, Periodic, SquaredExponential, kernel
from kernelmdp.mdp import MDP, Categorical, Gaussian, Model, Noise
from kernelmdp.mdp.noise import as_noise
from kernelmdp.numerics.checks import float_array, integer

#: Lengthscales when nothing is said, as a share of an axis times √d; noise, as a share of it.
LENGTHSCALE, NOISE = 0.2, 0.01
#: How far a state moves in a step when nothing is said, as a share of the axis.
STEP = 0.1
#: Standard deviation of rewards of a table when nothing is said.
TABLE_NOISE = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Spaces, horizon, kernels, noise laws and constants; no truth.

    ``reward`` is a known reward function of points (n, d), or None when it is to be learned.
    ``Problem.unknown`` makes one from spaces and a horizon alone.

    >>> heater = Problem.unknown(states=Box([10], [40]), actions=Box([0], [1]), horizon=30)
    >>> heater.planner, heater.fitted
    ('grid', True)
    """

    name: str
    states: Domain
    actions: Domain
    horizon: int
    reward_kernel: Kernel
    transition_kernel: OutputKernel
    reward: Callable[..., Any] | None
    reward_noise: Noise
    transition_noise: Noise
    offset: str = "zero"
    scale: tuple[float, ...] = ()
    noise_floors: tuple[float, float] = (1e-3, 1e-3)
    accuracy: float = 1e-3
    norm_reward: float | None = None
    norm_transition: float | None = None
    assumed_norms: tuple[float, float] = (1.0, 1.0)
    lipschitz: float = math.inf
    lipschitz_rule: str = "none"
    state_points: tuple[int, ...] | None = None
    action_points: tuple[int, ...] | None = None
    planner: str = "grid"
    #: Whether kernels are fitted to the data; those above are then not used.
    fitted: bool = False
    #: Axes of the state whose bounds are provisional.
    unbounded: tuple[int, ...] = ()
    termination: Callable[..., Any] | None = None
    #: What holds every mean reward, where a user knows it.
    reward_bounds: tuple[float, float] | None = None

    @classmethod
    def unknown(
        cls, *, states: Box, actions: Domain, horizon: int, name: str = "problem"
    ) -> "Problem":
        """A system of which no more is known than where it lives: kernels and noise are fitted to
        the data, a grid plans up to two coordinates of the state and MPC more.

        Reward functions, kernels and noise that are known are words of the agent.
        """
        points = join(state=states, action=actions)
        usual = usual_kernel(points)
        low, high = states.bounds
        return cls(
            name=name,
            states=states,
            actions=actions,
            horizon=integer("horizon", horizon, least=1),
            reward_kernel=usual,
            transition_kernel=usual @ Index(states.dimension),
            reward=None,
            reward_noise=Gaussian(NOISE, estimated=True),
            transition_noise=Gaussian(NOISE * STEP * (high - low), estimated=True),
            offset="identity",
            scale=tuple(STEP * (high - low)),
            planner="grid" if states.dimension <= 2 else "mpc",
            fitted=True,
        )

    def __post_init__(self) -> None:
        if not self.scale:
            object.__setattr__(self, "scale", (1.0,) * self.mean_dimension)
        if self.transition_kernel.outputs != self.mean_dimension:
            what = "state" if isinstance(self.transition_noise, Categorical) else "coordinate"
            raise ArgumentError(
                "transition_kernel",
                f"{self.mean_dimension} outputs, one for each {what}",
                self.transition_kernel.outputs,
            )

    @property
    def mean_dimension(self) -> int:
        """Coordinates of a mean next state: m, or the number of states of a table."""
        return self.transition_noise.mean_dimension(self.states)

    @functools.cached_property
    def points(self) -> Product:
        """Where z = (s, a) lives."""
        return join(state=self.states, action=self.actions)

    @functools.cached_property
    def residual_noise(self) -> np.ndarray:
        """Standard deviation of the scaled residuals along each axis, at least the floor."""
        sizes = self.transition_noise.standard_deviations(self.mean_dimension)
        return np.maximum(sizes / np.array(self.scale), self.noise_floors[1])

    @functools.cached_property
    def noise_variances(self) -> tuple[float, float]:
        """Variances to regress with: of rewards, and of scaled residuals (the largest axis)."""
        reward = float(self.reward_noise.standard_deviations(1)[0])
        return max(reward, self.noise_floors[0]) ** 2, float(self.residual_noise.max()) ** 2

    @functools.cached_property
    def reward_range(self) -> tuple[float, float]:
        """What holds every mean reward: as given, or ±B_R √κ (math B2) where B_R is known."""
        if self.reward is None and self.reward_bounds is not None:
            return self.reward_bounds
        # With one period a bound only makes ties of the best actions.
        if self.reward is not None or self.norm_reward is None or self.horizon == 1:
            return -math.inf, math.inf
        bound = self.norm_reward * math.sqrt(self.reward_kernel.variance_bound(self.points))
        return -bound, bound

    def summary(self) -> dict[str, Any]:
        """What a saved agent must agree with to be loaded for this problem."""
        return {
            "name": self.name,
            "states": repr(self.states),
            "actions": repr(self.actions),
            "horizon": self.horizon,
            "reward": "learned" if self.reward is None else "known",
            "reward_kernel": "auto" if self.fitted else str(self.reward_kernel),
            "transition_kernel": "auto" if self.fitted else str(self.transition_kernel),
            "reward_noise": repr(self.reward_noise),
            "transition_noise": repr(self.transition_noise),
            "offset": self.offset,
            "scale": list(self.scale),
        }

    def mdp(self, model: Model) -> MDP:
        """The MDP in which this model is the truth: what a planner gets."""
        return MDP(
            model,
            states=self.states,
            actions=self.actions,
            horizon=self.horizon,
            reward_noise=self.reward_noise,
            transition_noise=self.transition_noise,
            reward_range=self.reward_range,
            metric=self.scale,
            lipschitz=self.lipschitz,
            termination=self.termination,
        )

    def beliefs(
        self, reward_variance: float, transition_variance: Any, *, accuracy: float = 1e-3
    ) -> Beliefs:
        """Priors, with these variances (or regularisers) for the noise.

        Kernels of infinite rank are compiled to ``accuracy`` times those variances.
        """
        reward: Any = self.reward
        if reward is None:
            reward = posterior(
                self.reward_kernel,
                noise_variance=reward_variance,
                domain=self.points,
                tolerance=accuracy * reward_variance,
            )
        m, d = self.mean_dimension, self.points.dimension
        return Beliefs(
            reward=reward,
            transition=posterior(
                self.transition_kernel,
                noise_variance=transition_variance,
                domain=self.points,
                tolerance=accuracy * float(np.min(transition_variance)),
            ),
            offset=Constant(1 / m, m) if self.offset == "uniform" else as_mean(self.offset, m, d),
            scale=jnp.asarray(self.scale),
        )


def find_task(task: Any, *, horizon: int | None = None) -> Any:
    """An environment from its name or as it is, a Gymnasium task, or a Problem."""
    if isinstance(task, Problem | Environment | GymnasiumTask):
        found = task
    elif isinstance(task, str) and task in names():
        found = make(task)
    elif isinstance(task, str) and "/" not in task and "-v" not in task:
        make(task)  # raises, and suggests the nearest name
    else:
        return gymnasium_task(task, horizon=horizon)
    own = found.mdp.horizon if isinstance(found, Environment) else found.horizon
    if horizon is not None and horizon != own:
        raise ArgumentError("horizon", f"{own}, as the task has", horizon)
    return found


def gymnasium_task(task: Any, **options: Any) -> GymnasiumTask:
    """A Gymnasium environment or id as a task; one that Gymnasium cannot make is our error."""
    with _gymnasium_errors():
        return from_gymnasium(task, **options)


def require_gymnasium(name: str) -> None:
    """Complain of an id that Gymnasium does not know; nothing is made."""
    with _gymnasium_errors():
        gymnasium.spec(name)


@contextlib.contextmanager
def _gymnasium_errors() -> Iterator[None]:
    try:
        yield
    except gymnasium.error.Error as error:
        reason = " ".join(str(error).split())
        raise ArgumentError("task", "an environment that Gymnasium can make", reason) from None


def problem_of(
    task: Any,
    *,
    reward: Any,
    reward_kernel: Any,
    transition_kernel: Any,
    noise: Any,
    kernel: str | None = None,
    reward_bounds: Any = None,
) -> Problem:
    """What an agent is told of a task, with the words of its user put first."""
    if isinstance(task, Problem):
        found = task
    elif isinstance(task, Environment):
        found = _problem_of_environment(task)
    else:
        found = _problem_of_gymnasium(task)
    if kernel is not None and kernel != "auto":
        raise ArgumentError("kernel", "'auto', or reward_kernel and transition_kernel", kernel)
    given = reward_kernel is not None or transition_kernel is not None
    if kernel == "auto":
        if given:
            raise ArgumentError("kernel", "None when kernels are given", repr(kernel))
        found = _fitting_itself(found)
    elif given:
        if found.unbounded:  # kernels that are given live on a domain
            task.require_bounds()
        found = dataclasses.replace(found, fitted=False)
    words: dict[str, Any] = {}
    truth = task.known_reward if not isinstance(task, Problem) else task.reward
    if reward != "learned" or not isinstance(task, Problem):
        words["reward"] = as_reward(reward, truth)
    if reward_kernel is not None:
        # A norm is that of one kernel and no other.
        words["reward_kernel"] = as_kernel("reward_kernel", reward_kernel)
        words["norm_reward"] = None
        words["assumed_norms"] = (1.0, 1.0)
    if transition_kernel is not None:
        words["transition_kernel"] = as_outputs(transition_kernel, found.mean_dimension)
        words["norm_transition"] = None
        words["assumed_norms"] = (1.0, 1.0)
    if reward_bounds is not None:
        words["reward_bounds"] = _ends(reward_bounds)
    if noise is not None:
        words["reward_noise"] = words["transition_noise"] = _noise(noise)
    return dataclasses.replace(found, **words)


def _ends(given: Any) -> tuple[float, float]:
    ends = np.asarray(float_array(given, "reward_bounds"))
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ArgumentError("reward_bounds", "two numbers, the lower one first", given)
    return float(ends[0]), float(ends[1])


def _noise(given: Any) -> Noise:
    try:
        return as_noise(given)
    except KernelMDPError:
        raise
    except (TypeError, ValueError):
        raise ArgumentError("noise", "a noise law or a standard deviation", repr(given)) from None


def _problem_of_environment(environment: Environment) -> Problem:
    mdp = environment.seen
    return Problem(
        name=environment.name,
        states=mdp.states,
        actions=mdp.actions,
        horizon=mdp.horizon,
        reward_kernel=environment.reward_kernel,
        transition_kernel=environment.transition_kernel,
        reward=None,
        reward_noise=mdp.reward_noise,
        transition_noise=mdp.transition_noise,
        offset=environment.offset,
        scale=environment.scale,
        noise_floors=environment.noise_floors,
        accuracy=environment.accuracy,
        norm_reward=environment.norm_reward,
        norm_transition=environment.norm_transition,
        assumed_norms=environment.assumed_norms,
        lipschitz=environment.lipschitz,
        lipschitz_rule=environment.lipschitz_rule,
        state_points=environment.state_points,
        action_points=environment.action_points,
        planner=environment.planner,
        termination=mdp.termination,
    )


def _fitting_itself(problem: Problem) -> Problem:
    """The problem with kernels to be fitted: increments in units of the axes' widths."""
    if not isinstance(problem.states, Box):
        raise ArgumentError("kernel", "kernels for a table", "'auto'")
    low, high = problem.states.bounds
    return dataclasses.replace(
        problem,
        fitted=True,
        offset="identity",
        scale=tuple(STEP * (high - low)),
        norm_reward=None,
        norm_transition=None,
        assumed_norms=(1.0, 1.0),
    )


def _problem_of_gymnasium(task: GymnasiumTask) -> Problem:
    if isinstance(task.states, FiniteSet):
        return _problem_of_table(task)
    found = Problem.unknown(
        states=task.states, actions=task.actions, horizon=task.horizon, name=task.name
    )
    return dataclasses.replace(found, unbounded=task.unbounded)


def _problem_of_table(task: GymnasiumTask) -> Problem:
    assert isinstance(task.states, FiniteSet)
    options = len(task.actions.spread(1)) if task.actions.finite else 0
    if not options:
        raise ArgumentError("env", "Discrete actions with Discrete observations", task.actions)
    reward_kernel, transition_kernel = table_kernels(task.states.count, options)
    return Problem(
        name=task.name,
        states=task.states,
        actions=task.actions,
        horizon=task.horizon,
        reward_kernel=reward_kernel,
        transition_kernel=transition_kernel,
        reward=None,
        reward_noise=Gaussian(TABLE_NOISE, estimated=True),
        transition_noise=Categorical(task.states),
        offset="uniform",
    )


def as_reward(given: Any, truth: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """ "learned" (None), "known" (the environment's own), or the user's function."""
    if callable(given):
        return given
    if given == "learned":
        return None
    if given == "known" and truth is not None:
        return truth
    raise ArgumentError(
        "reward", "'learned', a function of points (n, d), or 'known' where it is", repr(given)
    )


def as_kernel(argument: str, given: Any) -> Kernel:
    """A kernel, or its text."""
    found = kernel(given) if isinstance(given, str) else given
    if not isinstance(found, Kernel):
        raise ArgumentError(argument, "a kernel or its text", repr(given))
    return found


def as_outputs(given: Any, outputs: int) -> OutputKernel:
    """A transition kernel; a scalar kernel is taken for every coordinate independently."""
    found = kernel(given) if isinstance(given, str) else given
    if isinstance(found, Kernel):
        return found @ Index(outputs)
    if not isinstance(found, OutputKernel):
        raise ArgumentError("transition_kernel", "a kernel or its text", repr(given))
    return found


def usual_kernel(points: Product) -> Kernel:
    """A squared exponential on every coordinate, periodic on angles, scaled by the domain."""
    low, high = points.bounds
    angles = [
        axis
        for name, domain in points.factors
        if isinstance(domain, Box)
        for axis in (points.names[name][i] for i in domain.periodic)
    ]
    lengths = LENGTHSCALE * math.sqrt(points.dimension) * np.maximum(high - low, 1e-9)
    straight = [i for i in range(points.dimension) if i not in angles]
    factors: list[Kernel] = [
        Periodic(lengthscale=1.0, period=float(high[i] - low[i])).on([i]) for i in angles
    ]
    if straight:
        factors.append(SquaredExponential(lengthscale=lengths[straight]).on(straight))
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product
