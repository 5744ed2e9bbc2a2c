"""Random keys of episodes, and NumPy generators made from them."""

from typing import Any

import jax
import numpy as np

from kernelmdp.numerics.modules import small_jit
from kernelmdp.types import Key


@small_jit
def episode_key(seed: Any, episode: Any) -> Key:
    """Derive the random key of an episode. Everything random in the episode comes from it.

    Args:
        seed: The agent's seed.
        episode: The number of episodes before this one.

    Returns:
        A key of JAX.

    >>> bool((episode_key(0, 3) == jax.random.fold_in(jax.random.key(0), 3)).all())
    True
    """
    return jax.random.fold_in(jax.random.key(seed), episode)


def numpy_generator(key: Key) -> np.random.Generator:
    """Make a NumPy random generator from a key of JAX.

    Args:
        key: The key; the same key gives the same generator.

    Returns:
        The generator.

    >>> numpy_generator(jax.random.key(0)).uniform() < 1
    True
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
