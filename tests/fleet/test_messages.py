"""Messages of fleets as text: what one side writes the other reads, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet.errors import MessageError
from dlbricks_tui.fleet.messages import (
    HostMessage,
    HostReport,
    ResultFound,
    RuntimeReport,
    Task,
    TaskEnded,
    TaskNote,
    TaskProgress,
    message_from,
    message_text,
    outcome_from,
    outcome_text,
    report_from,
    report_text,
    task_from,
    task_text,
)
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.request import InputShape, InputValue, ModelChoice, RunRequest
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.store.documents import to_document
from tests.store.samples import measurement, system

REPORT = HostReport(
    dlbricks="0.2.0",
    python="3.11.9",
    methods={"inside": "inside-1", "alone": "alone-1"},
    runtimes=(RuntimeReport("mxnet", "1.9.1", "mxnet-1.9.1 python-3.11"),),
    system=to_document(system()),
    clock="2026-11-27T08:00:00+00:00",
)
REQUEST = RunRequest(
    models=(ModelChoice("secret net", Path("/home/ada/secret-symbol.json")),),
    runtime=Runtime("ada's own", "/home/ada/venv/bin/python", "mxnet", "1.9.1", "3.10.4", Settings(threads=2)),
    inputs=(InputShape("secret_input", (1, 3)),),
    values=(InputValue("secret_rate", (16000,)),),
    batch_sizes=(1, 8),
    level=Level.WRITTEN,
    method=Method.INSIDE,
    time_budget_seconds=20,
    evaluation="secret evaluation",
)
TASK = Task(id="fleet-1", request=REQUEST, parcels=("a" * 64,), bricks=("b" * 64, "c" * 64))
MESSAGES: tuple[HostMessage, ...] = (
    TaskProgress(
        task="t",
        done=3,
        of=9,
        seconds_left=12.5,
        disturbed_rounds=1,
        disturbed_seconds=0.5,
        paused=True,
        waits_for="for run 1",
    ),
    TaskProgress(task="t", done=0, of=0, seconds_left=None, disturbed_rounds=0, disturbed_seconds=0.0),
    ResultFound(task="t", record=to_document(measurement())),
    TaskNote(task="t", text="parcel 12: its file is damaged"),
    TaskEnded(task="t", state="failed", reason="the disk is full"),
)


def changed(text: str, /, **values: Any) -> str:
    return json.dumps({**json.loads(text), **values})


def without(text: str, name: str) -> str:
    return json.dumps({key: value for key, value in json.loads(text).items() if key != name})


def test_all_are_read_as_they_were_written_in_their_order() -> None:
    assert report_from(report_text(REPORT)) == REPORT
    assert tuple(message_from(message_text(it)) for it in MESSAGES) == outcome_from(outcome_text(MESSAGES)) == MESSAGES
    forged = json.loads(outcome_text(MESSAGES))
    forged["messages"].append({"kind": "TaskEnded", "task": "t", "state": "finished"})
    with pytest.raises(MessageError, match="reason"):
        outcome_from(json.dumps(forged))


def test_a_task_is_read_without_what_concerns_the_users_host_only() -> None:
    found = task_from(task_text(TASK))
    assert (found.id, found.parcels, found.bricks) == (TASK.id, TASK.parcels, TASK.bricks)
    request = found.request
    assert (request.level, request.method, request.time_budget_seconds) == (Level.WRITTEN, Method.INSIDE, 20)
    assert request.runtime.settings == REQUEST.runtime.settings
    assert (request.runtime.framework, request.runtime.version) == ("mxnet", "1.9.1")
    assert (request.models, request.inputs, request.values, request.batch_sizes) == ((), (), (), ())
    assert "secret" not in task_text(TASK) and "/home" not in task_text(TASK)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"format": "dlbricks-host-message"}',
        changed(message_text(MESSAGES[0]), schema=2),
        changed(message_text(MESSAGES[0]), format="dlbricks-task"),
        changed(message_text(MESSAGES[0]), kind="order"),
        changed(message_text(MESSAGES[0]), kind=["TaskProgress"]),
        changed(message_text(MESSAGES[0]), more=1),
        changed(message_text(MESSAGES[0]), task=7),
        changed(message_text(MESSAGES[0]), task="t" * 2000),
        changed(message_text(MESSAGES[0]), done=True),
        changed(message_text(MESSAGES[0]), done=-1),
        changed(message_text(MESSAGES[0]), of=10**400),
        changed(message_text(MESSAGES[0]), seconds_left=True),
        changed(message_text(MESSAGES[0]), seconds_left="soon"),
        changed(message_text(MESSAGES[0]), disturbed_seconds=None),
        message_text(MESSAGES[0]).replace("12.5", "NaN"),
        message_text(MESSAGES[0]).replace("12.5", "1e999"),
        without(message_text(MESSAGES[0]), "seconds_left"),
        without(message_text(MESSAGES[0]), "paused"),
        changed(message_text(MESSAGES[2]), record=[]),
        changed(message_text(MESSAGES[3]), text="x" * 2000),
        changed(message_text(MESSAGES[4]), state="great"),
        '{"format":"dlbricks-host-message","schema":1,"kind":"TaskNote","task":"t","text":' + "[" * 100_000,
    ],
)
def test_anything_else_is_no_message(text: str) -> None:
    with pytest.raises(MessageError):
        message_from(text)


RUNTIME = json.loads(report_text(REPORT))["runtimes"][0]


@pytest.mark.parametrize(
    ("read", "text", "values"),
    [
        *(
            (report_from, report_text(REPORT), values)
            for values in (
                {"methods": {"inside": 1}},
                {"methods": []},
                {"runtimes": [{"name": "mxnet"}]},
                {"runtimes": [RUNTIME] * 101},
                {"dlbricks": 1.5},
                {"system": None},
                {"clock": "x" * 2000},
            )
        ),
        *(
            (task_from, task_text(TASK), values)
            for values in (
                {"request": {"schema": 1}},
                {"request": []},
                {"parcels": [1]},
                {"bricks": "all"},
                {"id": None},
            )
        ),
    ],
)
def test_anything_else_is_no_report_and_no_task(
    read: Callable[[str], object], text: str, values: dict[str, Any]
) -> None:
    with pytest.raises(MessageError):
        read(changed(text, **values))
