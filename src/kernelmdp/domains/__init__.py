"""Where points live: boxes, finite sets, whole spaces and their products.

A domain is a plain, hashable description. It knows how to lay a net over itself (with the spacing
along each axis, from which sup norms are certified), how to spread points when a net would be too
large, and how to say which coordinate of a point lies outside.

>>> from kernelmdp.domains import Box, join
>>> join(state=Box([-3.0, -1.0], [3.0, 1.0], periodic=[0]), action=Box([0.0], [1.0])).periodic
(0,)
"""

from kernelmdp.domains.base import Domain
from kernelmdp.domains.product import ProductDomain, join
from kernelmdp.domains.sets import Box, FiniteSet, Unbounded

__all__ = ["Box", "Domain", "FiniteSet", "ProductDomain", "Unbounded", "join"]
