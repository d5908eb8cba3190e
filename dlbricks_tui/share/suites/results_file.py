"""The results of a suite as a file: written for the owner of the models, checked and imported by the owner.

The file names bricks by the ids of the suite; the owner's key says what they stand for.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.known import Conditions, known_in, newest_result
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import conditions_of, runtime_record
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.share.checked_records import LONGEST_TEXT, checked_record
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.key_file import SuiteKey
from dlbricks_tui.share.suites.preparation import PreparedSuite, read_prepared
from dlbricks_tui.share.suites.suite import is_id, sha256
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError, to_document
from dlbricks_tui.store.records import BrickForm, Calibration, Failure, Measurement, Record, Runtime, System, utc_now
from dlbricks_tui.store.verification import check_date, check_samples
from dlbricks_tui.untrusted_json import check_fields, parsed_document

FORMAT = "dlbricks-suite-results"
SCHEMA = 1
MOST_BYTES = 1 << 28
_MOST_CALIBRATIONS = 100


@dataclass(frozen=True, slots=True)
class SuiteResults:
    """The results of a suite. Each measurement names its brick by the random id in the suite, and has no context."""

    suite: str
    manifest_sha256: str
    system: System
    runtime: Runtime
    measured: Mapping[str, Measurement]
    failed: Mapping[str, str]
    calibrations: tuple[Calibration, ...]


def write_results(path: Path, folder: RunFolder, request: RunRequest, data: DataFolder) -> int:
    """Write all stored results of a suite that was run, and return the number of bricks with results."""
    prepared = read_prepared(folder)
    if prepared is None:
        return 0
    system = fingerprint()
    conditions = conditions_of(system.id, request.runtime, Method.ALONE)
    with ResultsDatabase(data.store) as store:
        results = _results(store, prepared, system, runtime_record(request.runtime, system), conditions)
    try:
        write_atomically(path, rendered(results))
    except OSError as error:
        raise ShareError(
            f"cannot write {path}: {error.strerror}; the results are stored: run the same command with another -o"
        ) from error
    return len(results.measured)


def rendered(results: SuiteResults) -> str:
    """Return the file's text, with one result per line."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "suite": results.suite,
        "manifest_sha256": results.manifest_sha256,
        "system": to_document(results.system),
        "runtime": to_document(results.runtime),
        "calibrations": [to_document(each) for each in results.calibrations],
        "failed": dict(results.failed),
        "measured": {name: to_document(each) for name, each in results.measured.items()},
    }
    document["check"] = _check(document)
    lines = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in document.items() if name != "measured"]
    measured = ",\n".join(f"{json.dumps(name)}:{json.dumps(each)}" for name, each in document["measured"].items())
    return "{\n" + ",\n".join(lines) + f',\n"measured":{{\n{measured}\n}}\n' + "}\n"


def read_results(path: Path) -> SuiteResults:
    """Return the results in a file, each checked to be possible."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ShareError(f"cannot read {path}: {error.strerror}") from error
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"holds more than {MOST_BYTES >> 20} MiB")
        return _checked(parsed_document(content, FORMAT, SCHEMA))
    except (ValueError, BrokenDocumentError) as error:
        raise ShareError(f"{path} {error}; nothing was imported") from None


def _results(
    store: ResultsDatabase, prepared: PreparedSuite, system: System, runtime: Runtime, conditions: Conditions
) -> SuiteResults:
    failed = known_in(store, conditions, prepared.bricks.values()).failed
    measured: dict[str, Measurement] = {}
    reasons = dict(prepared.refused)
    for name, target in prepared.bricks.items():
        newest = newest_result(store, conditions, target)
        if isinstance(newest, Measurement):
            measured[name] = replace(newest, brick=name, context="")
        elif target in failed:
            reasons[name] = failed[target]
    calibrations = store.records(Calibration, conditions.query)
    return SuiteResults(
        prepared.suite,
        prepared.manifest_sha256,
        system,
        runtime,
        measured,
        {name: reason[:LONGEST_TEXT] for name, reason in reasons.items()},
        tuple(sorted(calibrations, key=lambda each: each.when)[-_MOST_CALIBRATIONS:]),
    )


def _checked(document: dict[str, Any]) -> SuiteResults:
    """Return the checked results; raise ValueError or BrokenDocumentError, whose message completes "it ..."."""
    fields = {"suite": str, "manifest_sha256": str, "system": dict, "runtime": dict}
    check_fields(document, fields | {"calibrations": list, "failed": dict, "measured": dict, "check": str})
    stated = document.pop("check")
    if stated != _check({"format": FORMAT, "schema": SCHEMA, **document}):
        raise ValueError("does not agree with its hash: it was damaged or changed")
    if not all(map(is_id, (document["suite"], *document["measured"], *document["failed"]))):
        raise ValueError("has results for an id that no suite has")
    system, runtime = checked_record(System, document["system"]), checked_record(Runtime, document["runtime"])
    if len(document["calibrations"]) > _MOST_CALIBRATIONS:
        raise ValueError(f"has more than {_MOST_CALIBRATIONS} calibrations")
    calibrations = tuple(checked_record(Calibration, each) for each in document["calibrations"])
    measured = {name: checked_record(Measurement, each) for name, each in document["measured"].items()}
    for name, measurement in measured.items():
        if (measurement.brick, measurement.context) != (name, ""):
            raise ValueError(f"has a result of brick {name} that names another brick")
        try:
            check_samples(measurement)
        except BrokenDocumentError as error:
            raise ValueError(f"has a result of brick {name} that {error}") from None
    results: list[Measurement | Calibration] = [*measured.values(), *calibrations]
    for result in results:
        _check_way(result, system, runtime)
    if not all(isinstance(reason, str) and len(reason) <= LONGEST_TEXT for reason in document["failed"].values()):
        raise ValueError("has a failure without a reason, or with a very long one")
    return SuiteResults(
        document["suite"],
        document["manifest_sha256"],
        system,
        runtime,
        measured,
        document["failed"],
        calibrations,
    )


def _check_way(record: Measurement | Calibration, system: System, runtime: Runtime) -> None:
    if (record.system, record.runtime) != (system.id, runtime.id):
        raise ValueError(f"has a result of another system or runtime than {system.id} and {runtime.id}")
    if record.protocol != Method.ALONE.id:
        raise ValueError(
            f"was measured by the method {record.protocol[:40]!r}, this version uses {Method.ALONE.id!r}; "
            "use the same version of dlbricks on both sides"
        )
    try:
        check_date(record.when)
    except BrokenDocumentError as error:
        raise ValueError(f"has a result that {error}") from None


def _check(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode())


_FAILED_THERE = "failed elsewhere"


@dataclass(frozen=True, slots=True)
class SuiteImport:
    """The outcome of an import; results of decoys are not imported."""

    system: str
    runtime: str
    models: tuple[str, ...]
    new: int
    known: int
    decoys: int
    failed: int
    missing: int
    calibrations: int


def import_results(store: ResultsDatabase, key: SuiteKey, results: SuiteResults, where: str) -> SuiteImport:
    """Store the results of the private models' bricks; `where` names the file in errors."""
    if results.suite != key.suite:
        raise ShareError(f"{where} is of suite {results.suite}, and the key is to suite {key.suite}")
    if results.manifest_sha256 != key.manifest_sha256:
        raise ShareError(f"{where} is of a suite that was changed after it was exported; nothing was imported")
    strangers = (results.measured.keys() | results.failed.keys()) - key.meanings.keys() - key.decoys
    if strangers:
        raise ShareError(
            f"{where} has results of brick {min(strangers)}, which its suite does not hold; nothing was imported"
        )
    if any(measurement.level is not key.level for measurement in results.measured.values()):
        raise ShareError(f"{where} has results at another level than its suite; nothing was imported")
    mine = {name: measured for name, measured in results.measured.items() if name in key.meanings}
    failed = {name: reason for name, reason in results.failed.items() if name in key.meanings}
    forms = [BrickForm(key=key.meanings[name].brick, canonical=key.meanings[name].canonical) for name in mine]
    measurements = [_at_home(key, name, measured) for name, measured in mine.items()]
    described: list[Record] = [results.system, results.runtime, *forms, *results.calibrations]
    store.add(*described)
    new = store.add(*measurements)
    store.add(*[_failure(key, results, name, reason) for name, reason in failed.items()])
    return SuiteImport(
        results.system.id,
        results.runtime.id,
        key.models,
        new,
        len(measurements) - new,
        len(results.measured) - len(mine),
        len(failed),
        len(key.meanings.keys() - mine.keys() - failed.keys()),
        len(results.calibrations),
    )


def _at_home(key: SuiteKey, name: str, measured: Measurement) -> Measurement:
    meaning = key.meanings[name]
    # One run for all results of a suite, so that the user can find and delete them.
    return replace(measured, brick=meaning.brick, context=meaning.context, run=_run(key))


def _failure(key: SuiteKey, results: SuiteResults, name: str, reason: str) -> Failure:
    meaning = key.meanings[name]
    return Failure(
        brick=meaning.brick,
        context=meaning.context,
        system=results.system.id,
        runtime=results.runtime.id,
        level=key.level,
        protocol=Method.ALONE.id,
        when=utc_now(),
        run=_run(key),
        reason=_FAILED_THERE,
        message=reason,
    )


def _run(key: SuiteKey) -> str:
    return f"suite-{key.suite[:12]}"
