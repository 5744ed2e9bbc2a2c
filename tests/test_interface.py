"""Every public name says what it is and shows it: a docstring with an example, which runs."""

import inspect

import pytest

import kernelmdp as km
from kernelmdp import experiments

PACKAGES = [km, experiments, *(p for n in km.__all__ if inspect.ismodule(p := getattr(km, n)))]


def public(package):
    """Names and objects a package shows; what it only imports for itself does not count."""
    own = [n for n, o in vars(package).items() if inspect.isclass(o) and n[0].isupper()]
    own = [n for n in own if getattr(package, n).__module__ == package.__name__]
    return [(n, getattr(package, n)) for n in getattr(package, "__all__", own)]


NAMES = {
    f"{package.__name__}.{name}": item
    for package in PACKAGES
    for name, item in public(package)
    if inspect.ismodule(item) or inspect.isclass(item) or callable(item)
}


def test_there_are_names():
    assert {"kernelmdp.PSRL", "kernelmdp.errors.ShapeError", "kernelmdp.kernels.Matern"} <= set(
        NAMES
    )


@pytest.mark.parametrize("name", NAMES)
def test_docstring_with_an_example(name):
    assert ">>>" in (NAMES[name].__doc__ or "")
