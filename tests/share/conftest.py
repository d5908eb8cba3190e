"""Fixtures for tests of suites."""

import pytest

from tests.share.trio import Trio


@pytest.fixture(scope="session")
def measured_suite(tmp_path_factory: pytest.TempPathFactory) -> Trio:
    """A suite of written layers that the vendor has measured, whose results are not imported; tests copy it."""
    trio = Trio(tmp_path_factory.mktemp("measured"))
    trio.export()
    trio.run()
    return trio
