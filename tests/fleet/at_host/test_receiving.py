"""Parcels and reports at a host."""

import hashlib
import os
from pathlib import Path

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet import at_host
from dlbricks_tui.fleet.at_host import receiving
from dlbricks_tui.fleet.at_host.reporting import host_report
from dlbricks_tui.fleet.at_host.runtimes import runtime_here, runtimes_here
from dlbricks_tui.fleet.encoding import report_from
from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue
from dlbricks_tui.measure.method import Method
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.store.documents import to_record
from dlbricks_tui.store.records import System
from tests.host.lines import turn_of

CONTENT = b"a network"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def test_a_host_lacks_a_parcel_until_it_has_taken_it(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert at_host.missing(data, [SHA256, "b" * 64]) == [SHA256, "b" * 64]
    at_host.take(data, SHA256, ".onnx", CONTENT)
    assert at_host.missing(data, [SHA256, "b" * 64]) == ["b" * 64]
    assert (DataFolder(Path(data)).parcels / f"{SHA256}.onnx").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("sha256", "suffix", "content", "reason"),
    [
        (SHA256, ".onnx", b"another network", "another content"),
        (SHA256, ".py", CONTENT, "no model file"),
        (SHA256, "/../x.onnx", CONTENT, "no model file"),
        ("../" + "a" * 61, ".onnx", CONTENT, "another content"),
        ("0" * 64, ".onnx", b"\0" * (receiving.MOST_PARCEL_BYTES + 1), "the most"),
    ],
)
def test_what_is_no_parcel_is_refused(tmp_path: Path, sha256: str, suffix: str, content: bytes, reason: str) -> None:
    with pytest.raises(HostError, match=reason):
        at_host.take(str(tmp_path), sha256, suffix, content)
    assert not list(tmp_path.rglob("*.onnx"))


def test_a_hash_is_never_taken_for_a_path(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no hash"):
        at_host.missing(str(tmp_path), ["../../etc/passwd"])


def test_a_disk_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "parcels").write_text("no folder")
    with pytest.raises(HostError, match=r"cannot write .*parcels: "):
        at_host.take(str(tmp_path), SHA256, ".onnx", CONTENT)


def test_the_parcels_used_longest_ago_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "MOST_KEPT_BYTES", 4000)
    data, hashes = str(tmp_path), []
    for number in range(4):
        content = bytes([number]) * 1000
        hashes.append(hashlib.sha256(content).hexdigest())
        at_host.take(data, hashes[-1], ".onnx", content)
        os.utime(tmp_path / "parcels" / f"{hashes[-1]}.onnx", (number, number))
    # The first one is used once more.
    assert at_host.missing(data, hashes[:1]) == []
    last = b"z" * 1000
    at_host.take(data, hashlib.sha256(last).hexdigest(), ".onnx", last)
    assert at_host.missing(data, hashes[:1]) == []
    assert at_host.missing(data, hashes[1:2]) == hashes[1:2]


def test_a_host_reports_its_system_versions_and_room(tmp_path: Path) -> None:
    found = report_from(at_host.report(str(tmp_path / "data")))
    assert found.dlbricks == __version__
    assert found.methods == {method.value: method.id for method in Method}
    assert to_record(found.system) == fingerprint()
    assert isinstance(to_record(found.system), System)
    assert {it.framework for it in found.runtimes} >= {"onnxruntime"}
    assert found.free_bytes > 0


def test_settings_of_the_shell_are_not_those_of_the_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The processes of dask set these for their own sake.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    for runtime in runtimes_here(DataFolder(tmp_path)):
        assert "threads-default" in runtime.identity
        assert "MALLOC" not in runtime.identity
        assert "OMP_NUM_THREADS" not in runtime.environment(os.environ)


def test_a_host_starts_its_own_number_of_threads_unless_the_request_states_one(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    (onnx,) = (it for it in runtimes_here(data) if it.framework == "onnxruntime")
    assert runtime_here(data, onnx) == onnx.on(processors_here())
    assert runtime_here(data, onnx.with_threads(7)).settings.threads == 7


def test_a_host_on_which_another_run_measures_is_busy(tmp_path: Path) -> None:
    data, mine = DataFolder(tmp_path), HostQueue(tmp_path / "lock")
    assert host_report(data, mine).busy == ""
    other = turn_of(HostQueue(tmp_path / "lock"), "20261127-1", tmp_path)
    assert "run 20261127-1 of " in host_report(data, mine).busy
    other.leave()
    assert host_report(data, mine).busy == ""
