"""Information gain: realised, and lower and certified upper bounds of its maximum.

>>> import kernelmdp as km
>>> round(km.information.realised_gain(km.kernel("linear"), [[1.0]], noise_variance=1.0), 4)
0.3466
"""

from kernelmdp.information.gain import (
    MaximumGain,
    gain_curve,
    maximum_gain,
    realised_gain,
    upper_bounds,
)

__all__ = ["MaximumGain", "gain_curve", "maximum_gain", "realised_gain", "upper_bounds"]
