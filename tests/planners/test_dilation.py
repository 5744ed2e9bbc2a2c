"""U dilated by balls, and the choice of actions, against loops in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import Box
from kernelmdp.mdp import Gaussian, Prediction, StateGrid, Stencil
from kernelmdp.planners.action_selection import best_actions
from kernelmdp.planners.dilation import NEAR_CELLS, RADIUS_STEPS, BallBackup

METRIC = (0.7, 1.5)


def on_grid(periodic, rng):
    grid = StateGrid(Box([-1.0, -2.0], [1.0, 2.0], periodic), (20, 23), Gaussian(0.0))
    return grid, rng.normal(size=grid.lattice_shape)


def dilated(table, grid, radius):
    """The maximum over chords through nodes, one node and one chord at a time."""
    rows, columns = table.shape
    steps = grid.spacing / np.array(METRIC)
    periodic = grid.states.periodic

    def at(i, j):
        i = i % rows if 0 in periodic else min(max(i, 0), rows - 1)
        j = j % columns if 1 in periodic else min(max(j, 0), columns - 1)
        return table[i, j]

    def between(read, reach):
        """The two values ``reach`` cells away, on either side."""
        cells = int(np.floor(reach))
        share = reach - cells
        return [(1 - share) * read(s * cells) + share * read(s * (cells + 1)) for s in (-1, 1)]

    found = np.empty_like(table)
    for i in range(rows):
        for j in range(columns):
            best = [at(i, j), *between(lambda o, i=i, j=j: at(i + o, j), radius / steps[0])]
            for offset in range(-rows, rows + 1):
                squared = radius**2 - (offset * steps[0]) ** 2
                if squared >= 0:
                    half = np.sqrt(squared) / steps[1]
                    read = lambda o, i=i, j=j, offset=offset: at(i + offset, j + o)  # noqa: E731
                    best += [read(o) for o in range(-int(half), int(half) + 1)]
                    best += between(read, half)
            found[i, j] = max(best)
    return found


def ball_backup(grid, largest):
    backup = BallBackup(grid, METRIC)
    prediction = Prediction(jnp.zeros(1), jnp.zeros((1, 2)), radius=jnp.asarray([largest]))
    return backup, backup.dilation_sizes(prediction)


@pytest.mark.parametrize("periodic", [(), (0,), (0, 1)])
@pytest.mark.parametrize("cells", [3.3, 9.2])
def test_balls_are_unions_of_chords(periodic, cells, rng):
    """For small balls, and for balls beyond the smaller tables."""
    grid, table = on_grid(periodic, rng)
    largest = cells * min(grid.spacing / np.array(METRIC))
    backup, sizes = ball_backup(grid, largest)
    assert (cells > NEAR_CELLS) == (cells == 9.2)
    found = np.asarray(jax.jit(backup.prepare)(jnp.asarray(table.ravel()), sizes))
    assert len(found) == RADIUS_STEPS + 1
    for k in (0, 3, RADIUS_STEPS):
        expected = dilated(table, grid, float(sizes[k]))
        np.testing.assert_allclose(found[k], expected.ravel(), atol=1e-12)


@pytest.mark.parametrize("periodic", [(), (0, 1)])
def test_smaller_tables_change_nothing(periodic, rng):
    grid, table = on_grid(periodic, rng)
    backup, sizes = ball_backup(grid, 7.9 * min(grid.spacing / np.array(METRIC)))
    dilate = jax.jit(backup._dilated, static_argnums=2)
    near, every = (dilate(jnp.asarray(table.ravel()), sizes, cells) for cells in (NEAR_CELLS, None))
    np.testing.assert_array_equal(near, every)


def test_balls_are_read_between_places_and_radii(rng):
    grid, table = on_grid((0,), rng)
    backup, _ = ball_backup(grid, 0.8)
    means = rng.uniform([-1.0, -2.0], [1.0, 2.0], size=(200, 2))
    radii = np.append(rng.uniform(0, 0.8, size=199), 0.8)
    prediction = Prediction(jnp.zeros(200), jnp.asarray(means), radius=jnp.asarray(radii))
    sizes = np.asarray(backup.dilation_sizes(prediction))
    tables = rng.normal(size=(len(sizes), table.size))
    places = backup.locate(prediction, jnp.asarray(sizes), jnp.asarray(0.0))
    found = np.asarray(backup.read(jnp.asarray(tables), places))
    stencil = grid.stencil(jnp.asarray(means))
    corners, weights = np.asarray(stencil.indices), np.asarray(stencil.weights)
    for i, radius in enumerate(radii):
        values = [(row[corners[i]] * weights[i]).sum() for row in tables]
        assert found[i] == pytest.approx(np.interp(radius, sizes, values), abs=1e-12)


@pytest.mark.parametrize("terms", [1, 4, 16, 81])
def test_stencils_are_weighted_sums(terms, rng):
    table, weights = rng.normal(size=50), rng.normal(size=(30, terms))
    indices = rng.integers(50, size=(30, terms))
    found = Stencil(jnp.asarray(indices), jnp.asarray(weights)).read(jnp.asarray(table))
    np.testing.assert_allclose(found, (table[indices] * weights).sum(axis=1), atol=1e-12)


def test_among_tied_actions_the_priority_decides(rng):
    values = rng.integers(3, size=(400, 7)) + 1e-12 * rng.normal(size=(400, 7))
    actions = np.arange(7.0)[:, None]
    for priority in (rng.random(7), np.array([0.2, 0.5, 0.5, 0.1, 0.5, 0.2, 0.2])):
        found = best_actions(*map(jnp.asarray, (values, actions, priority)), None)
        tied = values > values.max(axis=1, keepdims=True) - 1e-6
        expected = np.where(tied, priority, -np.inf).argmax(axis=1)
        np.testing.assert_array_equal(np.asarray(found)[:, 0], expected)
