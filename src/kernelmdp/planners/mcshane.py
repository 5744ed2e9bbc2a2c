"""McShane extension of Lipschitz functions from nodes to all states, and one-step lookahead on it.

This is the part of the certified planner (note D6) that scores actions at any states.
"""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.evaluation import action_grid
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import MeanModel, Model
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import Module, map_chunks
from kernelmdp.planners.discretisation import DiscretisationSizes
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants

#: Terms of a backup that are in memory at once. It bounds memory, not the result.
TERMS_PER_CHUNK = 2**20
#: Points at which the model is evaluated at once. It bounds memory, not the result.
POINTS_PER_CHUNK = 2**14


class Lookahead(Module):
    """Scores of all actions of the net, at any states, from values at the nodes.

    Attributes:
        model: The model of the MDP, or of a family.
        grid: The nodes.
        reward_range: The lowest and the highest mean reward.
        horizon: The number of periods H.
        largest_metric: The largest entry of the metric of the MDP.
        actions: The net of actions, (A, q).
        offsets: The values that replace the noise, all equally likely, (Q, m).
        slopes: Lipschitz constants L_{V,h} of the values for h = 1..H + 1, (H + 1,).
        charges: What approximation errors cost the lower and the upper value, (2, H + 1).
    """

    model: Model
    grid: StateGrid = eqx.field(static=True)
    reward_range: tuple[float, float] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    largest_metric: float = eqx.field(static=True)
    actions: Float[Array, "A q"]
    offsets: Float[Array, "Q m"]
    slopes: Float[Array, " H1"]
    charges: Float[Array, "2 H1"]

    @staticmethod
    def for_mdp(mdp: MDP, constants: LipschitzConstants, sizes: DiscretisationSizes) -> "Lookahead":
        """Make the lookahead of an MDP, or of a family.

        Args:
            mdp: The MDP or family.
            constants: Lipschitz constants of R̄ and P̄.
            sizes: Numbers of nodes, actions and noise values.

        Returns:
            The lookahead.

        Raises:
            ArgumentError: If the Lipschitz constants of the values overflow.
        """
        slopes = constants.slopes(mdp.horizon)
        if not np.isfinite(slopes).all():
            raise ArgumentError("constants", "values with finite slopes", f"slopes {slopes}")
        _, eta_action, noise_error = sizes.errors(mdp)
        noise_sizes = mdp.transition_noise.axis_sizes(mdp.states.dimension)
        unit_values = mdp.transition_noise.quantiser(sizes.noise)[0]
        axes = [size * unit_values if size > 0 else np.zeros(1) for size in noise_sizes]
        action_slopes = constants.reward_action + slopes * constants.transition_action
        return Lookahead(
            model=mdp.model,
            grid=sizes.grid(mdp),
            reward_range=mdp.reward_range,
            horizon=mdp.horizon,
            largest_metric=max(mdp.metric),
            actions=jnp.asarray(action_grid(mdp.actions, sizes.actions)),
            offsets=jnp.asarray(np.array(list(itertools.product(*axes)))),
            slopes=jnp.asarray(slopes),
            charges=jnp.asarray(
                np.stack([-slopes * noise_error, slopes * noise_error + action_slopes * eta_action])
            ),
        )

    def predictions(self, states: Float[Array, "n m"]) -> tuple[Array, Array, Array]:
        """Predict the results of all actions.

        Args:
            states: The states, (n, m).

        Returns:
            Rewards (n, A), Euclidean radii (n, A) and mean next states (n·A, m).
        """
        n, count = states.shape[0], self.actions.shape[0]
        points = jnp.concatenate(
            [jnp.repeat(states, count, axis=0), jnp.tile(self.actions, (n, 1))], axis=1
        )
        prediction = map_chunks(self.model, points, POINTS_PER_CHUNK)
        reward, radius = prediction.reward, jnp.zeros(n * count)
        if prediction.reward_width is not None:
            reward = jnp.minimum(reward + prediction.reward_width, self.reward_range[1])
        if prediction.root is not None:
            radius = jnp.linalg.norm(prediction.root, ord=2, axis=(1, 2))
        elif prediction.sides is not None:
            radius = jnp.linalg.norm(prediction.sides, axis=1)
        elif prediction.radius is not None:
            # A ball in the metric lies in the Euclidean ball of the largest metric entry.
            radius = self.largest_metric * prediction.radius
        return reward.reshape(n, count), radius.reshape(n, count), prediction.state

    def scores(
        self,
        table: tuple[Array, Array, Array],
        below: Float[Array, " N"],
        above: Float[Array, " N"],
        slope: Float[Array, ""],
    ) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
        """Score all actions: R + E_q M⁻V⁻ and R + E_q M⁺V⁺.

        Args:
            table: Rewards, radii and mean next states from ``predictions``.
            below: V⁻ of the next period at the nodes, (N,).
            above: V⁺ of the next period at the nodes, (N,).
            slope: Lipschitz constant L_{V,h+1} of the next period, a scalar.

        Returns:
            The lower and the upper scores, each (n, A).
        """
        reward, radius, means = table
        count = self.offsets.shape[0]

        def expected(rows: Array) -> tuple[Array, Array]:
            outcomes = rows[:, None, :] + self.offsets[None, :, :]
            points = self.grid.states.nearest(outcomes.reshape(-1, rows.shape[1]))
            low, high = self.extend(points, below, above, slope)
            return (
                jnp.mean(low.reshape(-1, count), axis=1),
                jnp.mean(high.reshape(-1, count), axis=1),
            )

        nodes_read = 2 if means.shape[1] == 1 else len(self.grid.nodes)
        low, high = map_chunks(expected, means, max(1, TERMS_PER_CHUNK // (count * nodes_read)))
        optimistic = reward + slope * radius
        return optimistic + low.reshape(reward.shape), optimistic + high.reshape(reward.shape)

    def values(
        self, table: tuple[Array, Array, Array], after: tuple[Array, Array], period: Array
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Compute V⁻_h and V⁺_h, clipped to the sums that the remaining rewards can have.

        Args:
            table: Rewards, radii and mean next states from ``predictions``.
            after: V⁻ and V⁺ of the next period at the nodes, each (N,).
            period: The period, counted from 0.

        Returns:
            The lower and the upper values, each (n,).
        """
        scores = self.scores(table, *after, self.slopes[period + 1])
        periods_left = jnp.asarray(self.horizon - period, float)
        bottom, top = (end * periods_left for end in self.reward_range)
        low, high = (
            jnp.clip(jnp.max(score, axis=1) + self.charges[side, period + 1], bottom, top)
            for side, score in enumerate(scores)
        )
        return low, high

    def extend(
        self,
        points: Float[Array, "k m"],
        below: Float[Array, " N"],
        above: Float[Array, " N"],
        slope: Float[Array, ""],
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Extend values from the nodes to states: M⁻ from below and M⁺ from above.

        In one dimension the two neighbours suffice, because the values at nodes are L-Lipschitz
        too. In more dimensions all nodes are used: with fewer nodes the lower extension would not
        be L-Lipschitz.

        Args:
            points: The states, (k, m).
            below: Lower values at the nodes, (N,).
            above: Upper values at the nodes, (N,).
            slope: The Lipschitz constant L of the values, a scalar.

        Returns:
            The lower and the upper values at the states, each (k,).
        """
        states, nodes = self.grid.states, jnp.asarray(self.grid.nodes)
        if states.finite:
            nearest = jnp.argmin(
                jnp.sum((points[:, None, :] - nodes[None, :, :]) ** 2, axis=2), axis=1
            )
            return below[nearest], above[nearest]
        low, high = (end.tolist() for end in states.bounds)
        if states.dimension == 1:
            count, step = nodes.shape[0], float(self.grid.spacing[0])
            position = (points[:, 0] - low[0]) / step
            last = count - 1 if states.periodic else count - 2
            left = jnp.clip(jnp.floor(position), 0, last)
            first = left.astype(jnp.int32)
            neighbours = jnp.stack([first, (first + 1) % count], axis=1)
            distances = jnp.abs(jnp.stack([position - left, left + 1 - position], axis=1)) * step
            rise = slope * distances
            return (
                jnp.max(below[neighbours] - rise, axis=1),
                jnp.min(above[neighbours] + rise, axis=1),
            )
        squares = jnp.zeros((points.shape[0], nodes.shape[0]))
        for j in range(states.dimension):
            gap = jnp.abs(points[:, j][:, None] - nodes[:, j][None, :])
            if j in states.periodic:
                gap = jnp.minimum(gap, high[j] - low[j] - gap)
            squares = squares + gap**2
        rise = slope * jnp.sqrt(squares)
        return jnp.max(below[None, :] - rise, axis=1), jnp.min(above[None, :] + rise, axis=1)

    def require_consistent(self, tables: tuple[Array, Array]) -> None:
        """Raise an error if the values at nodes are steeper than the constants allow.

        This detects some wrong constants, not all. It does not check families, whose centre need
        not have the constants.

        Args:
            tables: V⁻ and V⁺ at the nodes, each (H + 1, N).

        Raises:
            ArgumentError: If a value is too steep.
        """
        if self.grid.states.finite or not isinstance(self.model, MeanModel):
            return
        allowed = np.asarray(self.slopes)
        for table in map(np.asarray, tables):
            values = table.reshape(-1, *self.grid.counts)
            for j, step in enumerate(self.grid.spacing):
                rises = np.abs(np.diff(values, axis=j + 1)).reshape(len(allowed), -1).max(axis=1)
                excess = rises - allowed * step
                worst = int(np.argmax(excess))
                if excess[worst] > 1e-9 * (1 + float(np.abs(table).max())):
                    raise ArgumentError(
                        "constants",
                        f"Lipschitz constants that R̄ and P̄ obey; the value of period {worst} rises "
                        f"by {rises[worst] / step:.4g} per unit of state {j}",
                        f"at most {allowed[worst]:.4g}",
                    )
