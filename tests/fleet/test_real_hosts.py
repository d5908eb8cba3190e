"""Tasks that a host carries out with the real frameworks, in a data folder that has never seen the models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet import at_host
from dlbricks_tui.fleet.messages import (
    HostMessage,
    Task,
    TaskEnded,
    TaskProgress,
    message_from,
    outcome_from,
    task_text,
)
from dlbricks_tui.fleet.parcels import pack
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.runs.request import RunRequest, chosen
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.documents import to_record
from dlbricks_tui.store.verification import check_plausible
from tests.fleet.fake_hosts import records
from tests.models.onnx_models import saved, small


@pytest.mark.soak
@pytest.mark.parametrize(
    ("runtime", "form"),
    [("onnxruntime", Format.ONNX), pytest.param("mxnet", Format.MXNET, marks=pytest.mark.mxnet)],
)
def test_a_host_measures_the_bricks_of_a_model_that_it_has_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, form: Format
) -> None:
    monkeypatch.setenv(HOST_LOCK_VARIABLE, str(tmp_path / "lock"))
    # As in the processes of dask.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    home, there = DataFolder(tmp_path / "home"), str(tmp_path / "there")
    library = Library(SAMPLE_MODELS, home.path, form)
    models = library.find_all(["mobilenet0.25"]) if form is Format.MXNET else [source_of(saved(tmp_path, small()))]
    chosen_runtime = Registry(home.path).find(runtime).with_threads(2)
    request = RunRequest(
        models=chosen(models), runtime=chosen_runtime, level=Level.FUSED, method=Method.INSIDE, time_budget_seconds=60
    )
    (packed,) = pack(request, library, home.cache, tmp_path / "worker.log", lambda _: None)
    parcel = packed.parcel
    at_host.take(there, parcel.sha256, parcel.suffix, parcel.content)
    task = Task(id="one", request=request, parcels=(parcel.sha256,), bricks=tuple(sorted(parcel.bricks)))
    sent: list[str] = []
    found = outcome_from(at_host.carry_out(there, task_text(task), sent.append))
    assert found[-1] == TaskEnded(task="one", state="finished")
    assert {it["brick"] for it in records(found, "measurements")} == parcel.bricks
    assert [it for it in map(message_from, sent) if not isinstance(it, TaskProgress)] == list(found)
    for document in _documents(found):
        check_plausible(to_record(document))
    assert {it["runtime"] for it in records(found, "measurements")} == {chosen_runtime.identity}


def _documents(messages: Sequence[HostMessage]) -> list[Any]:
    return [document for table in ("systems", "runtimes", "measurements") for document in records(messages, table)]
