"""The confidence sets of a family of kernels: the union over the members that data allow."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.dual_sets import MULTIPLIERS, Intersection, intersection
from kernelmdp.confidence.family_betas import FamilyBetas, family_betas
from kernelmdp.confidence.sets import EVERYTHING, ConfidenceSets, Plausible, PlausibleModel
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.gp.regularisation import with_regularisers
from kernelmdp.mdp import Noise, Prediction
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.numerics.tracing import as_float

#: Columns for the numbers of members that data allow.
COLUMNS = ("members_reward", "members_transition")
#: The name of the sum that says whether data contradicted all members, among an agent's sums.
CONTRADICTED = "contradicted"


class UnionOfMembers(PlausibleModel):
    """All models that lie in the set of a member that data allow.

    Intervals are joined to the smallest interval around them. In two dimensions or more, a ball
    around the member with the largest ball contains all others.

    Attributes:
        beliefs: The beliefs of the member that explains the data best.
        beta_reward: The largest β_R of the members that data allow, for their own regulariser.
        beta_transition: The largest β_P.
        members: The sets of the members.
        allowed: Whether data allow each member: a row for the reward, and one for the transition.
        empty: Whether data contradict all members, for the reward or for the transition.
            The union is then over all of them, and nothing is claimed.
    """

    beliefs: Beliefs
    beta_reward: Any
    beta_transition: Any
    members: tuple[Intersection, ...]
    allowed: Bool[Array, "2 n"]
    empty: Any

    @property
    def contradicted(self) -> bool:
        return bool(self.empty)

    def within(self, reward_range: tuple[Any, Any]) -> "UnionOfMembers":
        members = tuple(member.within(reward_range) for member in self.members)
        return replace_fields(self, members=members)

    def numbers(self) -> dict[str, float]:
        return dict(zip(COLUMNS, np.sum(self.allowed, axis=1, dtype=float), strict=True))

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        predictions = [member(points) for member in self.members]
        rewards = jnp.stack([p.reward for p in predictions])
        widths = jnp.stack([p.reward_width for p in predictions])
        reward, reward_width = _joined(rewards, widths, self.allowed[0][:, None])
        scale = self.beliefs.scale.astype(points.dtype)
        states = jnp.stack([p.state for p in predictions]) / scale
        radii = jnp.stack([p.radius for p in predictions])
        if scale.shape[0] == 1:
            state, radius = _joined(states[:, :, 0], radii, self.allowed[1][:, None])
            return Prediction(reward, state[:, None] * scale, reward_width, radius=radius)
        radii = jnp.where(self.allowed[1][:, None], radii, -jnp.inf)
        largest, rows = jnp.argmax(radii, axis=0), jnp.arange(points.shape[0])
        centre = states[largest, rows]
        apart = jnp.linalg.norm(states - centre[None], axis=2)
        radius = jnp.max(radii + apart, axis=0)
        return Prediction(reward, centre * scale, reward_width, radius=radius)


def _joined(centres: Array, widths: Array, allowed: Array) -> tuple[Array, Array]:
    """Centre and half-width of the smallest interval around those that are allowed."""
    low = jnp.min(jnp.where(allowed, centres - widths, jnp.inf), axis=0)
    high = jnp.max(jnp.where(allowed, centres + widths, -jnp.inf), axis=0)
    return (low + high) / 2, (high - low) / 2


def family_sets(
    confidence: Any,
    members: Sequence[Beliefs],
    best: Beliefs,
    *,
    squared_lengths: Sequence[Any],
    reward_noise: Noise,
    transition_noise: Noise,
) -> ConfidenceSets:
    """Build the sets of a family.

    Args:
        confidence: The rule, an ``AdaptiveConfidence`` for the problem.
        members: The beliefs of each member, from the same data.
        best: The beliefs that stand for the family where one kernel is needed.
        squared_lengths: |y|²/λ for rewards and for transitions.
        reward_noise: Noise of rewards.
        transition_noise: Noise of next states, in units of the state.

    Returns:
        The sets.
    """
    outputs, scale = best.transition.outputs, np.asarray(best.scale, float)
    noises = {
        "reward": reward_noise.sub_gaussian_proxies(1),
        "transition": transition_noise.sub_gaussian_proxies(outputs) / scale,
    }
    roles = tuple(best.learned)
    log_odds = float(np.log((1.0 + len(roles)) / confidence.delta))
    choices: list[dict[str, Any]] = [{} for _ in members]
    slacks: list[dict[str, Any]] = [{} for _ in members]
    allowed = {role: np.ones(len(members), bool) for role in noises}
    largest = dict.fromkeys(noises, 0.0)
    contradicted = False
    for role in roles:
        norms = np.asarray(confidence.member_norms(role), float)
        numbers, posteriors, errors = _role_numbers(
            [beliefs.learned[role] for beliefs in members],
            norms=norms,
            squared_length=squared_lengths[int(role == "transition")],
            deviation=float(np.max(noises[role])),
            log_odds=log_odds,
        )
        survives, betas = np.asarray(numbers.survives), np.asarray(numbers.betas)
        contradicted |= not survives.any()
        allowed[role] = survives if survives.any() else np.ones(len(members), bool)
        largest[role] = float(np.max(betas[allowed[role], 0]))
        for i in range(len(members)):
            choices[i][role] = posteriors[i], tuple(jnp.asarray(beta) for beta in betas[i])
            slacks[i][role] = jnp.asarray(norms[i] * np.sqrt(errors[i]))
    zero = jnp.zeros(())
    sets = [
        Plausible(
            beliefs=beliefs,
            beta_reward=zero,
            beta_transition=zero,
            slack_reward=slack.get("reward", zero),
            slack_transition=slack.get("transition", zero),
            net=None,
            shape=confidence.shape,
            reward_range=EVERYTHING,
        )
        for beliefs, slack in zip(members, slacks, strict=True)
    ]
    union = UnionOfMembers(
        best,
        jnp.asarray(largest["reward"]),
        jnp.asarray(largest["transition"]),
        tuple(map(intersection, sets, choices)),
        jnp.asarray(np.stack([allowed["reward"], allowed["transition"]])),
        jnp.asarray(contradicted),
    )
    evidence = Evidence(
        confidence=confidence,
        reward_known=best.reward_known,
        beliefs=best,
        reward_noise=reward_noise,
        transition_noise=transition_noise,
        totals={CONTRADICTED: float(contradicted)},
    )
    return ConfidenceSets(union, confidence.theorem.coverage(evidence, "sets"))


def _role_numbers(
    posteriors: Sequence[Any],
    *,
    norms: np.ndarray,
    squared_length: Any,
    deviation: float,
    log_odds: float,
) -> tuple[FamilyBetas, list[list[Any]], list[float]]:
    """β and survivors for reward or transition, and each member's posteriors for all α."""
    changed, spectra = zip(*(with_regularisers(p, MULTIPLIERS) for p in posteriors), strict=True)
    regulariser = float(np.min(np.asarray(posteriors[0].regularisers)))
    errors = [float(p.error) for p in posteriors]
    count = as_float(posteriors[0].count)
    numbers = family_betas(
        tuple(spectra),
        norm_bounds=jnp.asarray(norms),
        missed=jnp.asarray([count * error / regulariser for error in errors]),
        squared_length=jnp.asarray(squared_length),
        variance_proxy=deviation**2 / regulariser,
        log_odds=log_odds,
    )
    return numbers, list(changed), errors
