"""The results that are committed with the project, as a clone has them."""

import json
import lzma
from pathlib import Path

import pytest

from benchmarks.archive import ARCHIVE, pack, unpack
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.records import BrickForm, EndToEnd, Measurement
from dlbricks_tui.store.selections import equal
from tests.store.samples import end_to_end, form, measurement, runtime, system

LARGEST_BYTES = 3_000_000
# Half a thousandth, and the digits that a mean has lost.
CLOSE = 0.00055


def archive_of(folder: Path) -> Path:
    """Return an archive of some results by both methods."""
    inside = {"protocol": "inside-1a2b3c4d", "run": "r2"}
    with ResultsDatabase(folder / "store") as store:
        store.add(system(), system("idle"), runtime(), form(0), form(1))
        store.add(
            measurement(3.0), measurement(2.0, brick=form(1).key, **inside), end_to_end(), end_to_end(0.01, **inside)
        )
        export_all(store, folder / "all.json.gz")
    pack([folder / "all.json.gz"], folder / "samples.json.xz")
    return folder / "samples.json.xz"


def test_unpacked_results_are_as_they_were_to_half_a_thousandth(tmp_path: Path) -> None:
    alone, inside = unpack(archive_of(tmp_path), tmp_path / "unpacked")
    with ResultsDatabase(tmp_path / "again") as store:
        for path in (alone, inside):
            report = import_file(store, path)
            assert (report.refused, report.conflicts) == ([], [])
        assert sorted(it.brick for it in store.records(Measurement)) == sorted((form(0).key, form(1).key))
        assert {it.canonical for it in store.records(BrickForm)} == {form(0).canonical, form(1).canonical}
        was = {it.protocol: it for it in (measurement(3.0), measurement(2.0, protocol="inside-1a2b3c4d"))}
        for now in store.records(Measurement):
            assert now.samples_ms == pytest.approx(was[now.protocol].samples_ms, rel=2 * CLOSE)
            stated, before = now.statistics, was[now.protocol].statistics
            assert stated.trimmed_mean_ms == pytest.approx(before.trimmed_mean_ms, rel=CLOSE)
            assert (stated.low_ms, stated.high_ms) == pytest.approx((before.low_ms, before.high_ms), rel=2 * CLOSE)
        assert {it.run for it in store.records(EndToEnd)} == {end_to_end().run, "r2"}


def test_the_methods_become_two_exports_with_what_they_need(tmp_path: Path) -> None:
    paths = unpack(archive_of(tmp_path), tmp_path / "unpacked")
    for number, path in enumerate(paths):
        with ResultsDatabase(tmp_path / str(number)) as store:
            import_file(store, path)
            assert [it.brick for it in store.records(Measurement)] == [form(number).key]
            assert [it.key for it in store.records(BrickForm)] == [form(number).key]
            assert [it.id for it in store.systems()] == [system().id]


def test_an_archive_that_is_unpacked_twice_adds_nothing(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    with ResultsDatabase(tmp_path / "again") as store:
        first, second = (unpack(archive, tmp_path / name)[0] for name in ("one", "two"))
        assert import_file(store, first).new == 5
        assert import_file(store, second).new == 0


def test_an_archive_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.json.xz"
    path.write_bytes(lzma.compress(b'{"format": 99}'))
    with pytest.raises(SystemExit, match="unknown format 99"):
        unpack(path, tmp_path)


def test_the_committed_archive_is_small() -> None:
    assert ARCHIVE.stat().st_size <= LARGEST_BYTES


@pytest.mark.soak
def test_committed_results_can_be_imported(tmp_path: Path) -> None:
    content = json.loads(lzma.decompress(ARCHIVE.read_bytes()))
    assert len({it["id"] for it in content["systems"]}) == 3
    expected = (({"mxnet", "onnxruntime", "openvino"}, 30_000), ({"onnxruntime", "openvino"}, 3_000))
    for path, (frameworks, bricks) in zip(unpack(ARCHIVE, tmp_path), expected, strict=True):
        with ResultsDatabase(tmp_path / path.stem) as store:
            report = import_file(store, path)
            assert (report.refused, report.conflicts, report.known) == ([], [], 0)
            assert {it.framework for it in store.runtimes()} == frameworks
            assert len(store.select(equal(of="brick", good=True), order=())) > bricks
