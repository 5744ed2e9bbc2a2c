"""Exports as fixtures. The package is imported later, after the checks of annotations began."""

import pytest

MAKERS = [
    "linear",
    "arms",
    "nearest_choices",
    "points",
    "shifted_points",
    "interpolated",
    "angles",
    "nearest_angles",
    "distilled",
    "distilled_choices",
]


@pytest.fixture(scope="package", params=MAKERS)
def exported(request):
    """An agent, the options of its export, and the export before it is written."""
    from tests.export import agents_to_export

    return agents_to_export.export_of(getattr(agents_to_export, request.param))


@pytest.fixture(scope="package")
def thousand(exported):
    """1,000 observations with periods, and the actions of the exported policy."""
    from tests.export import agents_to_export

    return agents_to_export.thousand_actions(exported)
