"""Names of array shapes used in signatures, checked by the tests.

n, k: numbers of points; d: coordinates of a point; r: rank; m: outputs of a transition.
"""

from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Float

Scalar: TypeAlias = Float[Array, ""]
Point: TypeAlias = Float[Array, " d"]
Points: TypeAlias = Float[Array, "n d"]
Vector: TypeAlias = Float[Array, " n"]
Matrix: TypeAlias = Float[Array, "n k"]
Square: TypeAlias = Float[Array, "n n"]
Key: TypeAlias = jax.Array

#: An array of either library, where both are handled.
AnyArray: TypeAlias = jax.Array | np.ndarray
#: What users may pass where an array is needed.
ArrayLike: TypeAlias = jax.Array | np.ndarray | list | tuple | float | int
#: The number of a period, counted from 0: a number, or an array of one inside a program.
Period: TypeAlias = int | np.integer | AnyArray
