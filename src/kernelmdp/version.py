"""The version of the library, read from the installed package."""

from importlib import metadata

__version__ = metadata.version("kernelmdp")
