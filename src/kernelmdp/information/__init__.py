"""Information gain: the gain of data, and lower and certified upper bounds on its maximum.

``realised_gain`` is ½ ln|I + K/λ| of given points. ``maximum_gain`` and ``gain_curve`` bound
γ_n(k, X, λ), the maximum over all sequences of n points.

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
