"""Addresses of dask schedulers."""

import pytest

from dlbricks_tui.fleet.engine.scheduler import check_address
from dlbricks_tui.fleet.errors import FleetError


@pytest.mark.parametrize("address", ["tls://10.0.0.1:8786", "tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1"])
def test_an_address_with_tls_or_on_the_loopback_is_used(address: str) -> None:
    assert check_address(address, allow_plain=False).port


def test_an_address_without_tls_needs_leave_if_others_can_reach_it() -> None:
    for address in ("tcp://10.0.0.1:8786", "tcp://0.0.0.0:8786", "tcp://bench.example.com:8786"):
        with pytest.raises(FleetError, match="neither encryption nor certificates"):
            check_address(address, allow_plain=False)
        assert check_address(address, allow_plain=True).scheme == "tcp"


@pytest.mark.parametrize(
    "address", ["", "10.0.0.1:8786", "tls://", "tls://host", "tls://host:99999", "ws://host:1", "tls://[:1"]
)
def test_what_is_no_address_is_told_in_one_line(address: str) -> None:
    with pytest.raises(FleetError, match="is no address of a scheduler: write it like tls:"):
        check_address(address, allow_plain=False)
