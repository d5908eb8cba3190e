"""Messages of fleets as JSON text, and back: strictly, as the other side may be damaged or of another version."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

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
)
from dlbricks_tui.runs.request import RunRequest, request_document, request_from
from dlbricks_tui.untrusted_json import check_fields, parsed_document

Found = TypeVar("Found")

REPORT, TASK, MESSAGE, OUTCOME = "dlbricks-host-report", "dlbricks-task", "dlbricks-host-message", "dlbricks-outcome"
SCHEMA = 1
# Bytes of a message and of the outcome of a task, which has all of its records.
MOST_MESSAGE_BYTES, MOST_OUTCOME_BYTES = 1 << 24, 1 << 28
_MOST_RUNTIMES, _MOST_KEYS = 100, 200_000
_LONGEST_TEXT = 1000
# Seconds and counts beyond these are not progress.
_LARGEST = 1e12

_KINDS: Mapping[str, type[Any]] = {
    "progress": TaskProgress,
    "result": ResultFound,
    "note": TaskNote,
    "end": TaskEnded,
}
_ENDS = frozenset({"finished", "cancelled", "failed"})


def report_text(report: HostReport) -> str:
    """Return the report of a host as text."""
    return _text(
        REPORT,
        {
            "dlbricks": report.dlbricks,
            "python": report.python,
            "methods": dict(report.methods),
            "runtimes": [
                {"name": it.name, "framework": it.framework, "version": it.version, "identity": it.identity}
                for it in report.runtimes
            ],
            "system": dict(report.system),
            "clock": report.clock,
            "free_bytes": report.free_bytes,
            "busy": report.busy,
        },
    )


def report_from(text: str) -> HostReport:
    """Return the report in a text; raise MessageError for anything else."""
    return _decoded(text, REPORT, MOST_MESSAGE_BYTES, _report)


def task_text(task: Task) -> str:
    """Return a task as text, without names of the user's models, files and inputs."""
    request = request_document(for_hosts(task.request))
    return _text(TASK, {"id": task.id, "request": request, "parcels": list(task.parcels), "bricks": list(task.bricks)})


def task_from(text: str) -> Task:
    """Return the task in a text; raise MessageError for anything else."""
    return _decoded(text, TASK, MOST_MESSAGE_BYTES, _task)


def for_hosts(request: RunRequest) -> RunRequest:
    """Return a request without everything that only its own host knows: a host fills in its parcels and its runtime.

    Shapes, values and batch sizes are part of the parcels.
    """
    runtime = replace(request.runtime, name=request.runtime.framework, python="")
    return replace(
        request,
        runtime=runtime,
        models=(),
        others=(),
        inputs=(),
        values=(),
        batch_sizes=(),
        suite=None,
        only=(),
        evaluation="",
        unmet=(),
    )


def message_text(message: HostMessage) -> str:
    """Return a message of a host as text."""
    return _text(MESSAGE, message_document(message))


def message_from(text: str) -> HostMessage:
    """Return the message in a text; raise MessageError for anything else."""
    return _decoded(text, MESSAGE, MOST_MESSAGE_BYTES, _message)


def outcome_text(messages: Iterable[HostMessage]) -> str:
    """Return everything that a task found as one text; its last message is the end of the task."""
    return _text(OUTCOME, {"messages": [message_document(it) for it in messages]})


def outcome_from(text: str) -> tuple[HostMessage, ...]:
    """Return the messages in the outcome of a task; raise MessageError for anything else."""
    return _decoded(text, OUTCOME, MOST_OUTCOME_BYTES, _outcome)


def message_document(message: HostMessage) -> dict[str, Any]:
    """Return a message as JSON values that name its kind."""
    kind = next(name for name, its in _KINDS.items() if isinstance(message, its))
    match message:
        case TaskProgress():
            fields: dict[str, Any] = {
                "done": message.done,
                "of": message.of,
                "seconds_left": message.seconds_left,
                "disturbed_rounds": message.disturbed_rounds,
                "disturbed_seconds": message.disturbed_seconds,
                "paused": message.paused,
                "waits_for": message.waits_for,
            }
        case ResultFound():
            fields = {"record": dict(message.record)}
        case TaskNote():
            fields = {"text": message.text[:_LONGEST_TEXT]}
        case TaskEnded():
            fields = {"state": message.state, "reason": message.reason[:_LONGEST_TEXT]}
    return {"kind": kind, "task": message.task, **fields}


def _text(format_name: str, document: Mapping[str, Any]) -> str:
    return json.dumps({"format": format_name, "schema": SCHEMA, **document}, separators=(",", ":"), allow_nan=False)


def _decoded(text: str, format_name: str, most_bytes: int, read: Callable[[dict[str, Any]], Found]) -> Found:
    try:
        content = text.encode()
        if len(content) > most_bytes:
            raise ValueError(f"holds more than {most_bytes >> 20} MiB")
        return read(parsed_document(content, format_name, SCHEMA))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise MessageError(str(error) or repr(error)) from None


def _report(document: dict[str, Any]) -> HostReport:
    texts = {"dlbricks": str, "python": str, "clock": str, "busy": str}
    check_fields(document, {**texts, "methods": dict, "runtimes": list, "system": dict, "free_bytes": int})
    _check_texts(*(document[name] for name in texts))
    methods = document["methods"]
    if len(methods) > _MOST_RUNTIMES or len(document["runtimes"]) > _MOST_RUNTIMES:
        raise ValueError(f"names more than {_MOST_RUNTIMES} methods or runtimes")
    for name, identity in methods.items():
        _check_texts(name, identity)
    if not 0 <= document["free_bytes"] <= _LARGEST * 1e6:
        raise ValueError("has an impossible amount of free disk space")
    document["runtimes"] = tuple([_runtime(it) for it in document["runtimes"]])
    return HostReport(**document)


def _runtime(document: Any) -> RuntimeReport:
    check_fields(document, {"name": str, "framework": str, "version": str, "identity": str})
    _check_texts(*document.values())
    return RuntimeReport(**document)


def _task(document: dict[str, Any]) -> Task:
    check_fields(document, {"id": str, "request": dict, "parcels": list, "bricks": list})
    _check_texts(document["id"])
    for keys in (document["parcels"], document["bricks"]):
        if len(keys) > _MOST_KEYS:
            raise ValueError(f"names more than {_MOST_KEYS:,} bricks or parcels")
        _check_texts(*keys)
    if document["request"].get("schema") != SCHEMA:
        raise ValueError("has a request of another version")
    return Task(
        id=document["id"],
        request=request_from(document["request"]),
        parcels=tuple(document["parcels"]),
        bricks=tuple(document["bricks"]),
    )


def _outcome(document: dict[str, Any]) -> tuple[HostMessage, ...]:
    check_fields(document, {"messages": list})
    return tuple([_message(it) for it in document["messages"]])


def _message(document: Any) -> HostMessage:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ValueError("is not a message of a host")
    kind = document.pop("kind")
    if kind not in _KINDS:
        raise ValueError(f"is of the unknown kind {kind[:40]!r}")
    found = _READERS[kind](document)
    _check_texts(found.task)
    return found


def _progress(document: dict[str, Any]) -> TaskProgress:
    left, seconds = document.pop("seconds_left"), document.get("disturbed_seconds")
    fields = {"task": str, "done": int, "of": int, "disturbed_rounds": int, "disturbed_seconds": float}
    # JSON has one kind of numbers.
    document["disturbed_seconds"] = float(seconds) if type(seconds) is int else seconds
    check_fields(document, {**fields, "paused": bool, "waits_for": str})
    _check_texts(document["waits_for"])
    numbers = [document[name] for name in fields if name != "task"]
    if left is not None:
        if type(left) not in (int, float):
            raise ValueError("has a time left that is not a number")
        numbers.append(left)
    if not all(0 <= number <= _LARGEST for number in numbers):
        raise ValueError("tells an impossible progress")
    return TaskProgress(seconds_left=None if left is None else float(left), **document)


def _result(document: dict[str, Any]) -> ResultFound:
    check_fields(document, {"task": str, "record": dict})
    return ResultFound(**document)


def _note(document: dict[str, Any]) -> TaskNote:
    check_fields(document, {"task": str, "text": str})
    _check_texts(document["text"])
    return TaskNote(**document)


def _end(document: dict[str, Any]) -> TaskEnded:
    check_fields(document, {"task": str, "state": str, "reason": str})
    _check_texts(document["reason"])
    if document["state"] not in _ENDS:
        raise ValueError(f"names the unknown state {document['state'][:40]!r}")
    return TaskEnded(**document)


_READERS: Mapping[str, Callable[[dict[str, Any]], HostMessage]] = {
    "progress": _progress,
    "result": _result,
    "note": _note,
    "end": _end,
}


def _check_texts(*texts: Any) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise ValueError("has a value that is not text where a text belongs")
        if len(text) > _LONGEST_TEXT:
            raise ValueError(f"has a text of {len(text):,} letters")
