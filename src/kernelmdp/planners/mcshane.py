"""Lipschitz functions known at nodes, extended by cones, and looking one step ahead on them.

The part of the certified planner (math D6) that scores actions at any states.
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
from kernelmdp.numerics.modules import Module, in_chunks
from kernelmdp.planners.discretisation import DiscretisationSizes
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants

#: Terms held at once, and points a model is asked for at once.
HELD, ASKED = 2**20, 2**14


class Lookahead(Module):
    """Scores of all actions of the net, at any states, from values at the nodes."""

    model: Model
    grid: StateGrid = eqx.field(static=True)
    reward_range: tuple[float, float] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    widest: float = eqx.field(static=True)
    actions: Float[Array, "A q"]
    offsets: Float[Array, "Q m"]
    slopes: Float[Array, " H1"]
    charges: Float[Array, "2 H1"]

    @staticmethod
    def over(mdp: MDP, constants: LipschitzConstants, sizes: DiscretisationSizes) -> "Lookahead":
        """For an MDP (or a family) with these constants and nets of these sizes."""
        slopes = constants.slopes(mdp.horizon)
        if not np.isfinite(slopes).all():
            raise ArgumentError("constants", "values with finite slopes", f"slopes {slopes}")
        _, eta_action, noise_error = sizes.errors(mdp)
        along = mdp.transition_noise.along(mdp.states.dimension)
        unit = mdp.transition_noise.quantiser(sizes.noise)[0]
        axes = [size * unit if size > 0 else np.zeros(1) for size in along]
        finer = constants.reward_action + slopes * constants.transition_action
        return Lookahead(
            model=mdp.model,
            grid=sizes.grid(mdp),
            reward_range=mdp.reward_range,
            horizon=mdp.horizon,
            widest=max(mdp.metric),
            actions=jnp.asarray(action_grid(mdp.actions, sizes.actions)),
            offsets=jnp.asarray(np.array(list(itertools.product(*axes)))),
            slopes=jnp.asarray(slopes),
            charges=jnp.asarray(
                np.stack([-slopes * noise_error, slopes * noise_error + finer * eta_action])
            ),
        )

    def outcomes(self, states: Float[Array, "n m"]) -> tuple[Array, Array, Array]:
        """Rewards (n, A), radii (n, A) and mean next states (n·A, m) of all actions."""
        n, count = states.shape[0], self.actions.shape[0]
        points = jnp.concatenate(
            [jnp.repeat(states, count, axis=0), jnp.tile(self.actions, (n, 1))], axis=1
        )
        prediction = in_chunks(self.model, points, ASKED)
        reward, radius = prediction.reward, jnp.zeros(n * count)
        if prediction.reward_width is not None:
            reward = jnp.minimum(reward + prediction.reward_width, self.reward_range[1])
        if prediction.root is not None:
            radius = jnp.linalg.norm(prediction.root, ord=2, axis=(1, 2))
        elif prediction.sides is not None:
            radius = jnp.linalg.norm(prediction.sides, axis=1)
        elif prediction.radius is not None:
            # A ball in the metric lies in the Euclidean ball of the widest axis.
            radius = self.widest * prediction.radius
        return reward.reshape(n, count), radius.reshape(n, count), prediction.state

    def scores(
        self,
        table: tuple[Array, Array, Array],
        below: Float[Array, " N"],
        above: Float[Array, " N"],
        slope: Float[Array, ""],
    ) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
        """R + E_q M⁻V⁻ and R + E_q M⁺V⁺, for ``table`` from ``outcomes``."""
        reward, radius, means = table
        count = self.offsets.shape[0]

        def expected(rows: Array) -> tuple[Array, Array]:
            landed = rows[:, None, :] + self.offsets[None, :, :]
            points = self.grid.states.nearest(landed.reshape(-1, rows.shape[1]))
            low, high = self.extend(points, below, above, slope)
            return (
                jnp.mean(low.reshape(-1, count), axis=1),
                jnp.mean(high.reshape(-1, count), axis=1),
            )

        read = 2 if means.shape[1] == 1 else len(self.grid.nodes)
        low, high = in_chunks(expected, means, max(1, HELD // (count * read)))
        certain = reward + slope * radius
        return certain + low.reshape(reward.shape), certain + high.reshape(reward.shape)

    def values(
        self, table: tuple[Array, Array, Array], after: tuple[Array, Array], period: Array
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """V⁻_h and V⁺_h from those of the next period, clipped to what rewards can add up to."""
        scores = self.scores(table, *after, self.slopes[period + 1])
        left = jnp.asarray(self.horizon - period, float)
        bottom, top = (end * left for end in self.reward_range)
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
        """M⁻ of values below and M⁺ of values above, at states.

        In one dimension the two neighbours decide, for values at nodes are L-Lipschitz as well;
        else all nodes are asked: cones of fewer nodes would not be L-Lipschitz on the lower side.
        """
        states, nodes = self.grid.states, jnp.asarray(self.grid.nodes)
        if states.finite:
            where = jnp.argmin(
                jnp.sum((points[:, None, :] - nodes[None, :, :]) ** 2, axis=2), axis=1
            )
            return below[where], above[where]
        low, high = (end.tolist() for end in states.bounds)
        if states.dimension == 1:
            count, step = nodes.shape[0], float(self.grid.spacing[0])
            place = (points[:, 0] - low[0]) / step
            last = count - 1 if states.periodic else count - 2
            left = jnp.clip(jnp.floor(place), 0, last)
            first = left.astype(jnp.int32)
            index = jnp.stack([first, (first + 1) % count], axis=1)
            lengths = jnp.abs(jnp.stack([place - left, left + 1 - place], axis=1)) * step
            cone = slope * lengths
            return jnp.max(below[index] - cone, axis=1), jnp.min(above[index] + cone, axis=1)
        squares = jnp.zeros((points.shape[0], nodes.shape[0]))
        for j in range(states.dimension):
            gap = jnp.abs(points[:, j][:, None] - nodes[:, j][None, :])
            if j in states.periodic:
                gap = jnp.minimum(gap, high[j] - low[j] - gap)
            squares = squares + gap**2
        cone = slope * jnp.sqrt(squares)
        return jnp.max(below[None, :] - cone, axis=1), jnp.min(above[None, :] + cone, axis=1)

    def require_consistent(self, tables: tuple[Array, Array]) -> None:
        """ArgumentError when the values at nodes are steeper than the constants allow.

        It refutes wrong constants, not all of them. The centre of a family need not have them.
        """
        if self.grid.states.finite or not isinstance(self.model, MeanModel):
            return
        allowed = np.asarray(self.slopes)
        for table in map(np.asarray, tables):
            shaped = table.reshape(-1, *self.grid.counts)
            for j, step in enumerate(self.grid.spacing):
                rises = np.abs(np.diff(shaped, axis=j + 1)).reshape(len(allowed), -1).max(axis=1)
                excess = rises - allowed * step
                worst = int(np.argmax(excess))
                if excess[worst] > 1e-9 * (1 + float(np.abs(table).max())):
                    raise ArgumentError(
                        "constants",
                        f"Lipschitz constants that R̄ and P̄ obey; the value of period {worst} rises "
                        f"by {rises[worst] / step:.4g} per unit of state {j}",
                        f"at most {allowed[worst]:.4g}",
                    )
