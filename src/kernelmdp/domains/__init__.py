"""Domains of points: boxes, finite sets, whole spaces and their products.

A domain is an immutable, hashable description of a set of points. It provides:

- a regular net with its spacing along each axis, from which sup norms are certified;
- low-discrepancy points, for domains on which a net would be too large;
- projection of points onto the domain, and the distance of each coordinate from it.

>>> from kernelmdp.domains import Box, join
>>> join(state=Box([-3.0, -1.0], [3.0, 1.0], periodic=[0]), action=Box([0.0], [1.0])).periodic
(0,)
"""

from kernelmdp.domains.base import Domain
from kernelmdp.domains.product import ProductDomain, join
from kernelmdp.domains.sets import Box, FiniteSet, Unbounded

__all__ = ["Box", "Domain", "FiniteSet", "ProductDomain", "Unbounded", "join"]
