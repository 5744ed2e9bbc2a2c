"""Information gain: realised, and lower and certified upper bounds of its maximum."""

from kernelmdp.information.gain import (
    MaximumGain,
    gain_curve,
    maximum_gain,
    realised_gain,
    upper_bounds,
)

__all__ = ["MaximumGain", "gain_curve", "maximum_gain", "realised_gain", "upper_bounds"]
