"""The demonstration that the package brings: it suits this version, names no host, and measures nothing."""

import errno
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlbricks_tui.analysis.proving import PEAKS, PeaksOrder
from dlbricks_tui.api.demonstration import (
    DATA_MARK,
    FACTS,
    PACKED,
    RESULTS,
    Demonstration,
    DemonstrationError,
    open_demonstration,
)
from dlbricks_tui.api.opening import loader_from_cache
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import events_so_far
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.jobs.process import JobProcess, start_detached
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, in_place_of_this_host, recorded_host
from dlbricks_tui.runs.events import RunEvents
from dlbricks_tui.runtime.errors import FrameworkMissingError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.share.galleries import Trust, import_paths
from dlbricks_tui.share.signatures import Signers
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exchange import export_selection
from docs.recording import HOST, MOST_BYTES

ANEW = "record the demonstration anew, in a checkout on a quiet host: python -m docs.recording FOLDER"


@pytest.fixture(scope="module")
def unpacked() -> Iterator[Demonstration]:
    # Only tests that ask for it see the recorded host.
    with open_demonstration() as found, in_place_of_this_host(None):
        yield found


@pytest.fixture
def demonstration(unpacked: Demonstration) -> Iterator[Demonstration]:
    with in_place_of_this_host(unpacked.host):
        yield unpacked


@pytest.fixture(scope="module")
def parts() -> dict[str, bytes]:
    with tarfile.open(PACKED) as archive:
        opened = {it.name: archive.extractfile(it) for it in archive.getmembers()}
        return {name: file.read() for name, file in opened.items() if file is not None}


def packed(path: Path, parts: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz", preset=0) as archive:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_every_recorded_model_is_read_without_a_framework_and_the_threads_of_results_are_known(
    demonstration: Demonstration,
) -> None:
    loader = loader_from_cache(demonstration.data)
    for source in Library(demonstration.samples, demonstration.data.path).sources():
        try:
            assert loader.load(source, Level.FUSED).layers
        except ModelError as error:
            pytest.fail(f"{source.name}: {error}\n{ANEW}")
    # It was recorded while the frameworks decided about them.
    with ResultsDatabase(demonstration.data.store) as store:
        assert all(it.threads for it in store.select().summaries())
        assert not [it.id for it in store.runtimes() if "threads-default" in it.id]


def test_the_file_is_small_and_names_no_folder_and_no_kernel_build(parts: dict[str, bytes]) -> None:
    assert PACKED.stat().st_size <= MOST_BYTES
    for name, content in parts.items():
        for private in (b"/work", b"/root", b"/tmp/", b"/home/" if DATA_MARK.encode() not in content else b"\0"):
            assert private not in content.replace(b"/home/demo", b""), f"{name} names {private.decode()}"
    system = json.loads(parts[FACTS])["system"]
    assert system["facts"]["kernel"].count(".") == 1
    assert json.loads(parts[FACTS])["name"] == HOST


def test_the_replayed_run_is_whole(demonstration: Demonstration) -> None:
    replayed = RunFolders(demonstration.data.runs).find(demonstration.replayed)
    events = events_so_far(replayed, RunEvents(replayed.events_file))
    assert {"RunStarted", "RoundDone", "EstimateChanged", "ProgramMeasured"} <= {
        type(it.event).__name__ for it in events
    }
    assert type(events[-1].event).__name__ == "RunEnded"


def test_the_recorded_results_suit_this_version_and_the_recorded_host_takes_the_place_of_this_one() -> None:
    here = fingerprint()
    try:
        with open_demonstration() as found:
            assert found.data.store.is_dir()
            assert fingerprint().name == found.host.system["name"]
            assert {it.framework for it in Registry(found.data.path).all()} == {"mxnet", "onnxruntime", "openvino"}
    except DemonstrationError as error:
        pytest.fail(f"{error}\n{ANEW}")
    assert fingerprint() == here and recorded_host() is None
    assert not found.data.path.exists()


def test_leaving_it_while_a_thread_still_writes_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_demonstration():
        monkeypatch.setattr(os, "rmdir", refuse)
    assert recorded_host() is None


def test_nothing_is_started(demonstration: Demonstration, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    runtime = Registry(demonstration.data.path).all()[0]
    with pytest.raises(FrameworkMissingError, match="start `dlbricks` itself"), Worker(runtime, demonstration.data.log):
        pass
    folder = RunFolders(demonstration.data.runs).find(demonstration.replayed)
    with pytest.raises(JobError, match="start `dlbricks` itself"):
        start_detached(folder, demonstration.data, "nothing")
    with pytest.raises(JobError) as refused:
        JobProcess.new(PEAKS, PeaksOrder(1), demonstration.data).run(lambda _: None)
    assert str(refused.value) == NOTHING_IS_MEASURED


def test_a_damaged_or_missing_file_and_one_of_another_schema_is_refused_in_a_line(
    tmp_path: Path, parts: dict[str, bytes]
) -> None:
    kept = {name: parts[name] for name in (FACTS, RESULTS)}
    wrong = [kept | {part: kept[part].replace(b'"schema":', b'"schema":7', 1)} for part in kept]
    wrong += [{name: content for name, content in kept.items() if name != part} for part in kept]
    files = [packed(tmp_path / f"{number}.tar.xz", changed) for number, changed in enumerate(wrong)]
    (tmp_path / "cut.tar.xz").write_bytes(PACKED.read_bytes()[:5000])
    for file in (*files, tmp_path / "cut.tar.xz", tmp_path / "missing.tar.xz"):
        with pytest.raises(DemonstrationError) as refused, open_demonstration(file):
            pass
        assert "\n" not in str(refused.value)
        assert "docs.recording" in str(refused.value) or file not in files
    assert recorded_host() is None


def test_its_results_can_be_exported_and_imported_elsewhere(demonstration: Demonstration, tmp_path: Path) -> None:
    file = tmp_path / "results.json.gz"
    with ResultsDatabase(demonstration.data.store) as store:
        count = export_selection(store.select("runtime~openvino", order=()), file)
    with ResultsDatabase(tmp_path / "store") as store:
        done = import_paths(store, [file], Trust(Signers()))
        assert done.complete
        assert len(store.select(order=())) == count > 100
