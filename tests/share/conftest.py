"""Fixtures for tests of suites."""

import pytest

from tests.share.trio import Trio


@pytest.fixture(scope="session")
def measured_suite(tmp_path_factory: pytest.TempPathFactory) -> Trio:
    """A suite of written layers that the vendor has measured, whose results are not imported; tests copy it."""
    trio = Trio(tmp_path_factory.mktemp("measured"))
    trio.export()
    with pytest.MonkeyPatch.context() as patch:
        # However few rounds a busy host has time for, no result is so imprecise that it is measured again.
        patch.setenv("FAKE_NOISE", "0")
        trio.run()
    return trio
