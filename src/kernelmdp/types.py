"""Names of array types and shapes for signatures. The tests check the shapes at run time.

n and k are numbers of points, d is the number of coordinates of a point, r a rank, and m the
number of outputs of a transition.
"""

from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Float

#: An array without axes.
Scalar: TypeAlias = Float[Array, ""]
#: One point.
Point: TypeAlias = Float[Array, " d"]
#: Points as rows.
Points: TypeAlias = Float[Array, "n d"]
#: One number for each point.
Vector: TypeAlias = Float[Array, " n"]
#: One number for each pair of points of two sets.
Matrix: TypeAlias = Float[Array, "n k"]
#: One number for each pair of points of one set.
Square: TypeAlias = Float[Array, "n n"]
#: A random key of JAX.
Key: TypeAlias = jax.Array

#: A JAX or NumPy array, for functions that accept both.
AnyArray: TypeAlias = jax.Array | np.ndarray
#: Anything that users may pass as an array.
ArrayLike: TypeAlias = jax.Array | np.ndarray | list | tuple | float | int
#: An observation of a system: numbers, or parts by name.
Observation: TypeAlias = ArrayLike | np.generic | dict
#: A period of an episode, counted from 0. It is an array without axes inside compiled programs.
Period: TypeAlias = int | np.integer | AnyArray
