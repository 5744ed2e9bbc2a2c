"""The confidence sets of a family of kernels: the union over the members that data allow."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.dual_sets import MULTIPLIERS, Intersection, intersection
from kernelmdp.confidence.family_betas import family_betas
from kernelmdp.confidence.sets import EVERYTHING, Plausible, PlausibleModel
from kernelmdp.gp import Posterior
from kernelmdp.gp.regularisation import with_regularisers
from kernelmdp.mdp import Prediction
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.numerics.tracing import as_float
from kernelmdp.types import AnyArray

#: Columns for the numbers of members that data allow.
COLUMNS = ("members_reward", "members_transition")
#: The name of the sum that says whether data contradicted all members, among an agent's sums.
CONTRADICTED = "contradicted"


class Member(NamedTuple):
    """A member of a family.

    Attributes:
        kernel: The number of its kernel among those of the family.
        norm: A bound of the norm of functions.
    """

    kernel: int
    norm: float


class RoleSets(Module):
    """The sets of all members, for the reward or for the transition.

    Attributes:
        posteriors: For each kernel, the posteriors for all regularisers.
        betas: β of each member and regulariser.
        survives: Whether the data allow each member. If they contradict all, all are kept.
        slacks: What the error of a compiled kernel adds to the half-width of each member.
        contradicted: Whether the data contradict all members.
    """

    posteriors: tuple[tuple[Posterior, ...], ...]
    betas: Float[np.ndarray, "n k"]
    survives: Bool[np.ndarray, " n"]
    slacks: Float[np.ndarray, " n"]
    contradicted: bool


def role_sets(
    posteriors: Sequence[Posterior],
    members: Sequence[Member],
    *,
    squared_length: float,
    deviation: float,
    log_odds: float,
) -> RoleSets:
    """Build the sets of all members for one role.

    Args:
        posteriors: The posterior of each kernel, from the same data.
        members: The members.
        squared_length: |y|²/λ.
        deviation: The sub-Gaussian proxy σ of the noise.
        log_odds: ln(share/δ).

    Returns:
        The sets.
    """
    changed, spectra = zip(*(with_regularisers(p, MULTIPLIERS) for p in posteriors), strict=True)
    regulariser = float(np.min(np.asarray(posteriors[0].regularisers)))
    errors = [float(p.error) for p in posteriors]
    count = as_float(posteriors[0].count)
    numbers = family_betas(
        tuple(spectra),
        kernels=tuple(member.kernel for member in members),
        norm_bounds=tuple(member.norm for member in members),
        missed=jnp.asarray([count * error / regulariser for error in errors]),
        squared_length=jnp.asarray(squared_length),
        variance_proxy=deviation**2 / regulariser,
        log_odds=log_odds,
    )
    survives = np.asarray(numbers.survives)
    return RoleSets(
        tuple(map(tuple, changed)),
        np.asarray(numbers.betas),
        survives if survives.any() else np.ones(len(members), bool),
        np.array([member.norm * np.sqrt(errors[member.kernel]) for member in members]),
        not survives.any(),
    )


def half_widths(sets: RoleSets, members: Sequence[Member], points: AnyArray) -> np.ndarray:
    """Compute the half-widths of all members at points, the least over regularisers.

    Args:
        sets: The sets.
        members: The members.
        points: z = (s, a), (n, d).

    Returns:
        Half-widths, (members, n). For several outputs, with the largest standard deviation.
    """
    deviations = [
        np.stack([np.asarray(p.predict(points)[1]).reshape(len(points), -1).max(1) for p in group])
        for group in sets.posteriors
    ]
    return np.stack(
        [
            np.min(beta[:, None] * deviations[member.kernel], axis=0) + slack
            for member, beta, slack in zip(members, sets.betas, sets.slacks, strict=True)
        ]
    )


class UnionOfMembers(PlausibleModel):
    """All models that lie in the set of a member that data allow.

    Intervals are joined to the smallest interval around them. In two dimensions or more, a ball
    around the member with the largest ball contains all others.

    Attributes:
        beliefs: The beliefs that stand for the family where one kernel is needed.
        beta_reward: The largest β_R of the members that data allow, for their own regulariser.
        beta_transition: The largest β_P.
        sets: For every kernel, the set of its largest member that data allow.
        allowed: Whether there is one: a row for the reward, and one for the transition.
        counts: The numbers of members that data allow, for reward and transition.
        empty: Whether data contradict all members, for the reward or for the transition.
            The union is then over all of them, and nothing is claimed.
    """

    beliefs: Beliefs
    beta_reward: Any
    beta_transition: Any
    sets: tuple[Intersection, ...]
    allowed: Bool[Array, "2 n"]
    counts: Float[Array, "2"]
    empty: Any

    @property
    def contradicted(self) -> bool:
        return bool(self.empty)

    def within(self, reward_range: tuple[Any, Any]) -> "UnionOfMembers":
        return replace_fields(self, sets=tuple(each.within(reward_range) for each in self.sets))

    def numbers(self) -> dict[str, float]:
        return dict(zip(COLUMNS, np.asarray(self.counts, float).tolist(), strict=True))

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        predictions = [each(points) for each in self.sets]
        rewards = jnp.stack([p.reward for p in predictions])
        widths = jnp.stack([p.reward_width for p in predictions])
        reward, reward_width = _joined(rewards, widths, self.allowed[0][:, None])
        scale = self.beliefs.scale.astype(points.dtype)
        states = jnp.stack([p.state / scale[None, :] for p in predictions])
        radii = jnp.stack([p.radius for p in predictions])
        if scale.shape[0] == 1:
            state, radius = _joined(states[:, :, 0], radii, self.allowed[1][:, None])
            return Prediction(reward, state[:, None] * scale[None, :], reward_width, radius=radius)
        radii = jnp.where(self.allowed[1][:, None], radii, -jnp.inf)
        largest, rows = jnp.argmax(radii, axis=0), jnp.arange(points.shape[0])
        centre = states[largest, rows]
        apart = jnp.linalg.norm(states - centre[None], axis=2)
        radius = jnp.max(radii + apart, axis=0)
        return Prediction(reward, centre * scale[None, :], reward_width, radius=radius)


def _joined(centres: Array, widths: Array, allowed: Array) -> tuple[Array, Array]:
    """Centre and half-width of the smallest interval around those that are allowed."""
    low = jnp.min(jnp.where(allowed, centres - widths, jnp.inf), axis=0)
    high = jnp.max(jnp.where(allowed, centres + widths, -jnp.inf), axis=0)
    return (low + high) / 2, (high - low) / 2


def _set_of_members(
    beliefs: Beliefs,
    sets: dict[str, RoleSets],
    members: dict[str, Sequence[Member]],
    chosen: dict[str, int],
    shape: str,
) -> Intersection:
    """The set of one member for each role, intersected over regularisers."""
    zero = jnp.zeros(())
    choices, slacks = dict[str, Any](), {"reward": zero, "transition": zero}
    for role, role_set in sets.items():
        number = chosen[role]
        posteriors = role_set.posteriors[members[role][number].kernel]
        choices[role] = list(posteriors), tuple(map(jnp.asarray, role_set.betas[number]))
        slacks[role] = jnp.asarray(role_set.slacks[number])
    plain = Plausible(
        beliefs=beliefs,
        beta_reward=zero,
        beta_transition=zero,
        slack_reward=slacks["reward"],
        slack_transition=slacks["transition"],
        net=None,
        shape=shape,
        reward_range=EVERYTHING,
    )
    return intersection(plain, choices)


def union_of_members(
    beliefs: Beliefs,
    sets: dict[str, RoleSets],
    members: dict[str, Sequence[Member]],
    shape: str,
    only: dict[str, int] | None = None,
) -> UnionOfMembers:
    """Make the union over all members that data allow, or over one member for each role.

    For one kernel, the set of a larger norm contains that of a smaller one. So the largest norm
    stands for each kernel.

    Args:
        beliefs: The beliefs that stand for the family.
        sets: The sets of all members, by role.
        members: The members, by role.
        shape: The shape of the set of next states.
        only: The number of the only member, by role. The union of one member has the same
            structure as that of all, so one compiled program serves every choice.

    Returns:
        The union.
    """
    count = max(len(role_set.posteriors) for role_set in sets.values())
    stands = {role: np.zeros(count, int) for role in sets}
    allowed, counts = np.ones((2, count), bool), np.zeros(2)
    betas = {"reward": 0.0, "transition": 0.0}
    for role, role_set in sets.items():
        row, survives = int(role == "transition"), role_set.survives
        if only is not None:
            survives = np.arange(len(survives)) == only[role]
        for kernel in range(count):
            of_kernel = [i for i, member in enumerate(members[role]) if member.kernel == kernel]
            left = [i for i in of_kernel if survives[i]]
            norms = [members[role][i].norm for i in left]
            allowed[row, kernel] = bool(left)
            number = left[int(np.argmax(norms))] if left else (of_kernel or [0])[0]
            stands[role][kernel] = number
            if left:
                betas[role] = max(betas[role], float(role_set.betas[number, 0]))
        counts[row] = survives.sum()
    return UnionOfMembers(
        beliefs,
        jnp.asarray(betas["reward"]),
        jnp.asarray(betas["transition"]),
        tuple(
            _set_of_members(
                beliefs, sets, members, {role: int(stands[role][kernel]) for role in sets}, shape
            )
            for kernel in range(count)
        ),
        jnp.asarray(allowed),
        jnp.asarray(counts),
        jnp.asarray(any(role_set.contradicted for role_set in sets.values())),
    )
