from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies, unpack_latencies
from dlbricks_tui.store.verification import check_plausible
from tests.store.samples import load_test, runtime, system

LATENCIES_NS = unpack_latencies(load_test().latencies)


def test_latencies_are_kept_to_the_nanosecond() -> None:
    assert list(unpack_latencies(pack_latencies([0, 12_345_678, 1 << 40]))) == [0, 12_345_678, 1 << 40]


@pytest.mark.parametrize("text", ["?", "AAAA", load_test().latencies[:-8], pack_latencies([1])[:-4] + "AAAA"])
def test_latencies_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(BrokenDocumentError, match="latencies that cannot be read"):
        check_plausible(load_test(latencies=text))


def test_a_long_test_is_exported_and_imported_whole(tmp_path: Path) -> None:
    # More characters than any other text may have.
    latencies_ns = [8_000_000 + number * 7919 % 4_000_000 for number in range(40_000)]
    packed = pack_latencies(latencies_ns)
    assert len(packed) > 100_000
    test = load_test(latencies=packed, queries=40_000, seconds=1000.0, per_second=40.0)
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), test)
        export_all(store, tmp_path / "all.json.gz")
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, tmp_path / "all.json.gz").refused
        assert store.records(LoadTest) == [test]


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "single", "percentile": 90.0, "rate": None, "sought": False, "bound_ms": None},
        # Requests of eight samples, with a latency for each request.
        {"kind": "multi", "rate": None, "sought": False, "per_second": 317.0},
        # All samples in one query.
        {"kind": "offline", "rate": None, "sought": False, "bound_ms": None, "queries": 1},
        {"valid": False, "reasons": ("the bound is not met",), "bound_ms": 9.0},
    ],
)
def test_load_tests_of_every_kind_are_plausible(fields: dict[str, Any]) -> None:
    check_plausible(load_test(**fields))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"kind": "burst"}, "is of the unknown scenario 'burst'"),
        ({"percentile": 100.0}, "has the percentile 100"),
        ({"percentile": float("nan")}, "has an impossibly large number"),
        ({"bound_ms": -1.0}, "has an impossible bound, rate or time"),
        ({"rate": 0.0}, "has an impossible bound, rate or time"),
        ({"seconds": 0.0}, "has an impossible bound, rate or time"),
        ({"passing_ms": -0.1}, "has an impossible bound, rate or time"),
        ({"kind": "single"}, "has a rate, which a scenario of kind single does not have"),
        ({"rate": None}, "is of a server without a rate"),
        ({"reasons": ("too few queries",)}, "is valid and has reasons against it"),
        ({"instances": 0}, "has an impossible batch size, or number of instances or queries"),
        ({"queries": 699}, "has 700 latencies of 699 queries"),
        ({"queries": 350}, "has 700 latencies of 350 queries"),
        ({"latencies": pack_latencies([])}, "has 0 latencies of 700 queries"),
        ({"latencies": pack_latencies([-1, *LATENCIES_NS[1:]])}, "has an impossible latency"),
        ({"latencies": pack_latencies([1 << 60, *LATENCIES_NS[1:]])}, "has an impossible latency"),
        ({"per_second": 400.0}, "has requests per second that do not follow from its queries"),
        ({"per_second": 4.0}, "has requests per second that do not follow from its queries"),
        ({"bound_ms": 9.0}, "is valid with too many requests over the bound"),
    ],
)
def test_a_load_test_that_cannot_come_from_a_measurement_is_refused(changed: dict[str, Any], complaint: str) -> None:
    check_plausible(load_test())
    with pytest.raises(BrokenDocumentError, match=complaint):
        check_plausible(replace(load_test(), **changed))
