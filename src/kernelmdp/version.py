"""The version of the library."""

from importlib import metadata

__version__ = metadata.version("kernelmdp")
