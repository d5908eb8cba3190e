"""The provenance of results of runs: by the fake worker, and by the real frameworks."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint, host_facts
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.events import BatchStarted
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs.results import (
    ONEDNN,
    keep_provenance,
    model_digests,
    version_told,
    with_known_onednn,
    with_onednn,
)
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Provenance
from dlbricks_tui.store.verification import verify
from tests.runs.runs import FAKE, MODEL, Measured, Site
from tests.store.samples import provenance


def stored(site: Site) -> list[Provenance]:
    with ResultsDatabase(site.data.store) as store:
        return store.records(Provenance)


def test_a_run_records_versions_host_and_model_files_once(measured_inside: Measured) -> None:
    site = measured_inside.site
    (found,) = stored(site)
    result = site.contents().end_to_end[0]
    assert (found.run, found.system, found.runtime) == (measured_inside.state.run, result.system, result.runtime)
    assert found.protocol == Method.INSIDE.id
    assert dict(found.packages) == {"dlbricks": __version__, "python": "3.11.0", "mxnet": "1.9.1", ONEDNN: "2.4.0"}
    assert found.host == host_facts(fingerprint())
    (source,) = Library(SAMPLE_MODELS, site.path).find(MODEL)
    assert dict(found.models) == {result.model: hashlib.sha256(source.path.read_bytes()).hexdigest()}
    assert (found.evaluation, found.unmet) == ("nightly", ("turbo is on",))
    assert verify(site.data.store).implausible == ()


@pytest.mark.parametrize("is_known", [False, True])
def test_a_first_run_asks_for_the_version_of_onednn_before_it_measures(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    steps: list[str] = []
    workers: list[Worker] = []

    def noted(found: Provenance, *where: object) -> Provenance:
        early = [it for it in where if isinstance(it, Worker) and it.pid is not None]
        workers.extend(early)
        steps.append("asked" if early else "asked at the end")
        return found

    def listen(event: Event) -> None:
        if isinstance(event, BatchStarted):
            steps.append("measures")
            assert all(worker.pid is None for worker in workers)

    if is_known:
        (site.data.cache / ONEDNN).mkdir(parents=True)
    monkeypatch.setattr("dlbricks_tui.runs.work.with_onednn", noted)
    site.run(site.request(end_to_end=True, bricks=False, rule=FixedRuns(5)), listen)
    assert steps == ["asked"] * (not is_known) + ["measures", "asked at the end"]


def test_each_part_of_a_run_has_its_own_provenance(site: Site) -> None:
    request = site.request(end_to_end=True, bricks=False, rule=FixedRuns(5))
    other = replace(FAKE, settings=replace(FAKE.settings, threads=1))
    site.run(replace(request, runtime=FAKE.with_threads(2), others=(site.choice(other, request.models),)))
    assert sorted(it.runtime for it in stored(site)) == sorted((FAKE.with_threads(2).identity, other.identity))
    assert len({it.run for it in stored(site)}) == 1


def test_the_same_provenance_is_kept_once_and_a_changed_host_beside_it(tmp_path: Path) -> None:
    first, again = provenance(), provenance(when="2026-11-22T08:00:00+00:00")
    with ResultsDatabase(tmp_path) as store:
        for found in (first, again, replace(again, host=(("kernel", "6.9"),))):
            keep_provenance(store, found)
        assert [dict(it.host).get("kernel") for it in store.records(Provenance)] == ["6.1.0-13-cloud-amd64", "6.9"]


def test_a_model_file_that_is_gone_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"net")
    files = [("a", tmp_path / "net.onnx"), ("b", tmp_path / "gone.onnx"), ("a", tmp_path / "gone.onnx")]
    assert model_digests(files) == (("a", hashlib.sha256(b"net").hexdigest()),)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (
            "dnnl_verbose,info,oneDNN v2.4.0 (commit 83ebc40d86bc54f0f23e947235e53570eeacf254)",
            "2.4.0 (commit 83ebc40d86bc)",
        ),
        ("onednn_verbose,v1,info,oneDNN v3.10.2 (commit 0123456789abcdef)", "3.10.2 (commit 0123456789ab)"),
        ("onednn_verbose,info,oneDNN v3.1.0", "3.1.0"),
        ("dnnl_verbose,info,cpu,runtime:OpenMP", ""),
    ],
)
def test_the_version_is_that_in_the_first_line_of_onednn(line: str, version: str) -> None:
    assert version_told(["dnnl_verbose,info,gpu,runtime:none", line]) == version
    assert version_told([]) == ""


def test_a_worker_that_cannot_tell_leaves_the_version_out_and_is_asked_again(tmp_path: Path) -> None:
    found = provenance(packages=(("mxnet", "1.9.1"),))
    missing = replace(FAKE, python=str(tmp_path / "no-python"))
    assert with_onednn(found, missing, tmp_path, tmp_path / "log") == found
    assert list(tmp_path.rglob("onednn/*")) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("default", marks=[pytest.mark.mxnet, pytest.mark.soak]),
        pytest.param("default-openvino", marks=pytest.mark.openvino),
    ],
)
def test_the_frameworks_tell_their_onednn_once(name: str, tmp_path: Path) -> None:
    runtime = Registry(tmp_path).find(name)
    found = provenance(packages=((runtime.framework, runtime.version),))
    assert with_known_onednn(found, runtime, tmp_path / "cache") == found
    told = dict(with_onednn(found, runtime, tmp_path / "cache", tmp_path / "log").packages)[ONEDNN]
    assert isinstance(told, str) and int(told.partition(".")[0]) >= 1
    # From the cache: no worker starts.
    gone = replace(runtime, name="renamed")
    assert dict(with_known_onednn(found, gone, tmp_path / "cache").packages)[ONEDNN] == told
    another = provenance(packages=((runtime.framework, "0.1"),))
    assert with_known_onednn(another, runtime, tmp_path / "cache") == another
