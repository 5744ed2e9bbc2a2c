"""The predicted probability of breaking a constraint, in MDPs that are drawn from the beliefs.

This is an estimate, and no bound. Differences between the draws and the mean are inflated by a
factor. In each drawn MDP the mean next state p is known, and a constraint g is linear around it.
With Gaussian noise of standard deviations σ, a step breaks g ≤ 0 with probability
Φ(g(p)/‖σ ∇g(p)‖). The prediction is the mean over the draws.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.model import Model
from kernelmdp.numerics.modules import Module
from kernelmdp.planners.backups import Backup
from kernelmdp.types import Key

#: The smallest standard deviation of a constraint, which makes Φ a step.
LEAST_DEVIATION = 1e-12


class RiskPrediction(Module):
    """Predicts violations in several drawn MDPs.

    Attributes:
        models: The drawn models. Every array has one row for each of them.
        mean: The model of the mean.
        inflation: The factor of differences between draws and the mean, a scalar.
        violation: The constraints.
        states: The state space.
        deviations: Standard deviations σ of the transition's noise, (m,).
    """

    models: Model
    mean: Model
    inflation: Float[Array, ""]
    violation: Violation
    states: Domain
    deviations: Float[Array, " m"]

    def of_steps(
        self, states: Float[Array, "n m"], actions: Float[Array, "n q"]
    ) -> Float[Array, " n"]:
        """Predict whether single steps break a constraint.

        Args:
            states: The states before the steps, (n, m).
            actions: The actions, (n, q).

        Returns:
            The probabilities, (n,).
        """
        points = state_action(states, actions)

        def in_draw(model: Model) -> Array:
            after = self._after(model, points)
            return self._broken(states, actions, after, jnp.zeros_like(self.deviations))

        return jnp.mean(eqx.filter_vmap(in_draw)(self.models), axis=0)

    def of_backups(
        self,
        states: Float[Array, "n m"],
        actions: Float[Array, "n q"],
        backup: Backup,
        *,
        steps: int,
        key: Key,
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Predict whether actions, and a backup after each of them, break a constraint.

        A backup that reaches a trusted state is not followed any further.

        Args:
            states: The states before the actions, (n, m).
            actions: The actions, (n, q).
            backup: What is done after the actions.
            steps: The number of steps of the backup.
            key: Decides the noise, which is the same for all actions of a draw.

        Returns:
            Probabilities of a violation in the first step (n,), and in all steps (n,).
        """
        count = jax.tree.leaves(eqx.filter(self.models, eqx.is_array))[0].shape[0]
        draws = jax.random.normal(key, (count, steps, 1, self.deviations.shape[0]))
        noise = draws * self.deviations[None, None, None, :]

        def in_draw(model: Model, path_noise: Array) -> tuple[Array, Array]:
            def moved(now: Array, taken: Array, before: Array) -> tuple[Array, Array]:
                after = self._after(model, state_action(now, taken))
                return after, self._broken(now, taken, after, before)

            def follow(carry: tuple[Any, ...], inputs: tuple[Array, Array]) -> tuple[Any, None]:
                mean, none_broken, saved, memory = carry
                shift, step = inputs
                now = self.states.nearest(mean + shift)
                taken, trusted, memory = backup.decide(memory, now, step)
                saved = saved | trusted
                after, broken = moved(now, taken, self.deviations)
                none_broken = none_broken * jnp.where(saved, 1.0, 1.0 - broken)
                return (after, none_broken, saved, memory), None

            after, first = moved(states, actions, jnp.zeros_like(self.deviations))
            begin = (after, 1.0 - first, jnp.zeros(states.shape[0], bool), backup.reset())
            inputs = (path_noise, jnp.arange(steps))
            (_, none_broken, _, _), _ = jax.lax.scan(follow, begin, inputs)
            return first, 1.0 - none_broken

        first, total = eqx.filter_vmap(in_draw)(self.models, noise)
        return jnp.mean(first, axis=0), jnp.mean(total, axis=0)

    def largest_error(
        self, states: Float[Array, "H1 m"], actions: Float[Array, "H q"]
    ) -> Float[Array, ""]:
        """Measure how wrong predictions of the constraints were in an episode.

        The error of a constraint g at s' is (g(s') − g(p))/‖∇g(p) (σ² + σ_P²)^½‖, where p and σ_P
        are mean and standard deviation of the predicted next state without inflation.

        Args:
            states: The visited states, (H + 1, m).
            actions: The actions, (H, q).

        Returns:
            The largest size of an error. NaN if no constraint is about states alone.
        """
        points = state_action(states[:-1], actions)
        mean = self.mean(points).state
        drawn = eqx.filter_vmap(lambda model: model(points).state)(self.models)
        variances = jnp.mean((drawn - mean[None]) ** 2, axis=0) + self.deviations[None, :] ** 2
        errors = [
            jnp.max(jnp.abs(values_after - values) / (spread + LEAST_DEVIATION))
            for constraint in self.violation.constraints
            if not constraint.on_actions
            for values, spread in [_linearised(constraint, mean, None, jnp.sqrt(variances))]
            for values_after in [constraint.values(states[1:], None)]
        ]
        return jnp.max(jnp.stack(errors)) if errors else jnp.asarray(jnp.nan)

    def _after(self, model: Model, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        mean = self.mean(points).state
        return self.states.nearest(mean + self.inflation * (model(points).state - mean))

    def _broken(self, states: Array, actions: Array, after: Array, before: Array) -> Array:
        """Probabilities of a violation at (s, a), whose state has deviations, or at the next s."""
        none_broken = jnp.ones(states.shape[0])
        for constraint in self.violation.constraints:
            on_actions = constraint.on_actions
            rows, deviations = (states, before) if on_actions else (after, self.deviations)
            taken = actions if on_actions else None
            values, spread = _linearised(constraint, rows, taken, deviations[None, :])
            none_broken = none_broken * jax.scipy.special.ndtr(-values / (spread + LEAST_DEVIATION))
        return 1.0 - none_broken


def _linearised(
    constraint: Constraint,
    states: Float[Array, "n m"],
    actions: Float[Array, "n q"] | None,
    deviations: Float[Array, "_ m"],
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Values of a constraint, and its standard deviations ‖σ ∇g‖ for deviations of the state."""

    def total(rows: Array) -> tuple[Array, Array]:
        values = constraint.values(rows, actions)
        return jnp.sum(values), values

    slopes, values = jax.grad(total, has_aux=True)(states)
    return values, jnp.linalg.norm(slopes * deviations, axis=1)
