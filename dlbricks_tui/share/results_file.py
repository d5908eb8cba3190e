"""The results of a suite as a file: written for the owner of the models, checked and imported by the owner.

The file names bricks by their keys, and networks that could not be read by the ids of the suite. The owner's key tells
which of them are the owner's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from dlbricks_tui.files import check_fields, open_regular, parsed_document
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suite_files import SuiteKey, is_id, is_key, sha256
from dlbricks_tui.store.database import ResultsDatabase, Source, numbered
from dlbricks_tui.store.documents import BrokenDocumentError, hash_of, to_document, to_record
from dlbricks_tui.store.records import (
    ANY_CONTEXT,
    BrickForm,
    Failure,
    Measurement,
    Record,
    RuntimeRecord,
    System,
    utc_now,
)
from dlbricks_tui.store.verification import References, check_plausible

LONGEST_TEXT = 1000

Kind = TypeVar("Kind", bound=Record)


def checked_record(kind: type[Kind], document: Any) -> Kind:
    """Return the record in a document; raise ValueError or BrokenDocumentError, whose message completes "it ..."."""
    if not isinstance(document, dict):
        raise ValueError(f"has a {kind.__name__} that is not an object")
    record = to_record(document)
    if not isinstance(record, kind):
        raise ValueError(f"has a {type(record).__name__} where a {kind.__name__} belongs")
    check_plausible(record, LONGEST_TEXT)
    return record


FORMAT = "dlbricks-suite-results"
SCHEMA = 2
MOST_BYTES = 1 << 28
_MOST_PARTS = 1000
# The occurrences of a brick in the networks of a suite.
_MOST_OCCURRENCES = 10_000
# The format is in the first line, or near it if the file was written anew.
_BEGIN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PartResults:
    """The results of one runtime. Each measurement names its brick as the file does, and has no context.

    There is one for each occurrence of a brick in the networks that were timed.
    """

    runtime: RuntimeRecord
    measured: Mapping[str, tuple[Measurement, ...]]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SuiteResults:
    """The results of a suite on a system."""

    suite: str
    manifest_sha256: str
    system: System
    parts: tuple[PartResults, ...]


def rendered(results: SuiteResults) -> str:
    """Return the file's text, with one result per line."""
    parts: list[dict[str, Any]] = [
        {
            "runtime": to_document(part.runtime),
            "failed": dict(part.failed),
            "measured": {name: list(map(to_document, found)) for name, found in part.measured.items()},
        }
        for part in results.parts
    ]
    head = {
        "format": FORMAT,
        "schema": SCHEMA,
        "suite": results.suite,
        "manifest_sha256": results.manifest_sha256,
        "system": to_document(results.system),
    }
    check = _check({**head, "parts": parts})
    texts = []
    for part in parts:
        lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(it)}" for name, it in part["measured"].items())
        texts.append("{" + _lines({**part, "measured": None}) + f',\n"measured":{{\n{lines}\n}}' + "}")
    listed = ",\n".join(texts)
    return "{\n" + _lines({**head, "check": check}) + f',\n"parts":[\n{listed}\n]\n' + "}\n"


def _lines(document: Mapping[str, Any]) -> str:
    """Return the fields of an object, one a line; those without a value are left out."""
    return ",\n".join(f"{json.dumps(name)}:{json.dumps(it)}" for name, it in document.items() if it is not None)


def has_suite_results(path: Path) -> bool:
    """Return whether a file begins like the results of a suite."""
    try:
        with open_regular(path) as file:
            return json.dumps(FORMAT).encode() in file.read(_BEGIN_BYTES)
    except OSError:
        return False


def read_results(path: Path) -> SuiteResults:
    """Return the results in a file, each checked to be possible."""
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ShareError(f"cannot read {path}: {error.strerror}") from error
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"holds more than {MOST_BYTES >> 20} MiB")
        return _checked(parsed_document(content, FORMAT, SCHEMA))
    except (ValueError, BrokenDocumentError) as error:
        raise ShareError(f"{path} {error}; nothing was imported") from None


def _checked(document: dict[str, Any]) -> SuiteResults:
    """Return the checked results; raise ValueError or BrokenDocumentError, whose message completes "it ..."."""
    check_fields(document, {"suite": str, "manifest_sha256": str, "system": dict, "parts": list, "check": str})
    stated = document.pop("check")
    if stated != _check({"format": FORMAT, "schema": SCHEMA, **document}):
        raise ValueError("does not agree with its hash: it was damaged or changed")
    if not is_id(document["suite"]):
        raise ValueError("is of an id that no suite has")
    system = checked_record(System, document["system"])
    if len(document["parts"]) > _MOST_PARTS:
        raise ValueError(f"has results of more than {_MOST_PARTS:,} runtimes")
    parts = tuple(_checked_part(part, system) for part in document["parts"])
    if len({part.runtime.id for part in parts}) < len(parts):
        raise ValueError("has two parts of one runtime")
    return SuiteResults(document["suite"], document["manifest_sha256"], system, parts)


def _checked_part(part: Any, system: System) -> PartResults:
    if isinstance(part, dict):
        # Earlier versions corrected the sums of isolated bricks by constants.
        part.pop("calibrations", None)
    check_fields(part, {"runtime": dict, "failed": dict, "measured": dict})
    runtime = checked_record(RuntimeRecord, part["runtime"])
    if runtime.framework not in TRAITS:
        raise ValueError(f"has results of the unknown framework {runtime.framework[:40]!r}")
    if not all(is_key(name) or is_id(name) for name in (*part["measured"], *part["failed"])):
        raise ValueError("has results for an id that no suite has")
    if not all(isinstance(found, list) and 0 < len(found) <= _MOST_OCCURRENCES for found in part["measured"].values()):
        raise ValueError("has a brick without a list of results, or with a very long one")
    measured = {
        name: tuple(checked_record(Measurement, each) for each in found) for name, found in part["measured"].items()
    }
    everything = [(name, each) for name, found in measured.items() for each in found]
    for name, measurement in everything:
        if (measurement.brick, measurement.context) != (name, ""):
            raise ValueError(f"has a result of brick {name} that names another brick")
        _check_way(measurement, system, runtime)
    # Those of earlier versions were refused for their method.
    if not all(map(is_key, measured)):
        raise ValueError("has results for an id that no suite has")
    if not all(isinstance(reason, str) and len(reason) <= LONGEST_TEXT for reason in part["failed"].values()):
        raise ValueError("has a failure without a reason, or with a very long one")
    there = [system]
    return PartResults(
        next(numbered([runtime], there)),
        {name: tuple(numbered(found, there)) for name, found in measured.items()},
        part["failed"],
    )


def _check_way(record: Measurement, system: System, runtime: RuntimeRecord) -> None:
    if (record.system, record.runtime) != (system.id, runtime.id):
        raise ValueError(f"has a result of another system or runtime than {system.id} and {runtime.id}")
    if record.protocol != Method.INSIDE.id:
        raise ValueError(
            f"was measured by the method {record.protocol[:40]!r}, this version uses {Method.INSIDE.id!r}; "
            "use the same version of dlbricks on both sides"
        )


def _check(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode())


_FAILED_THERE = "failed elsewhere"


@dataclass(frozen=True, slots=True)
class SuiteImport:
    """The outcome of an import; results of decoys are not imported."""

    system: str
    # The first of the runtimes.
    runtime: str
    runtimes: tuple[str, ...]
    models: tuple[str, ...]
    new: int
    known: int
    decoys: int
    failed: int
    missing: int
    # Always 0: results of earlier versions had calibrations.
    calibrations: int = 0


def import_results(store: ResultsDatabase, key: SuiteKey, results: SuiteResults, where: str) -> SuiteImport:
    """Store the results of the private models' bricks; `where` names the file in errors."""
    if results.suite != key.suite:
        raise ShareError(f"{where} is of suite {results.suite}, and the key is to suite {key.suite}")
    if results.manifest_sha256 != key.manifest_sha256:
        raise ShareError(f"{where} is of a suite that was changed after it was exported; nothing was imported")
    if not results.parts:
        raise ShareError(f"{where} has no results; run the suite again, and give it more time")
    try:
        References.of(store.generation, fingerprint()).check(results.system)
    except BrokenDocumentError as error:
        raise ShareError(f"{where} {error}; nothing was imported") from None
    # One run for all results of a suite, so that the user can find and delete them.
    run = f"suite-{key.suite[:12]}"
    described: list[Record] = []
    bricks: list[list[Measurement]] = []
    failures: list[Failure] = []
    decoys = missing = 0
    for part in results.parts:
        _refuse_strangers(key, part, where)
        # The owner's bricks that the framework of the part runs.
        own = {name: it for name, it in key.meanings.items() if it.framework == part.runtime.framework}
        by_name = own | {it.brick: it for it in own.values()}
        mine = {name: by_name[name] for name in part.measured if name in by_name}
        failed = {name: by_name[name] for name in part.failed if name in by_name}
        described += [part.runtime, *(BrickForm(key=it.brick, canonical=it.canonical) for it in mine.values())]
        for name, it in mine.items():
            bricks.append([replace(each, brick=it.brick, run=run) for each in part.measured[name]])
        for name, it in failed.items():
            # The id is a hash of the content, so that importing again finds it.
            content = [run, results.system.id, part.runtime.id, it.brick, part.failed[name]]
            failures.append(
                Failure(
                    uuid=hash_of(content),
                    brick=it.brick,
                    context=ANY_CONTEXT,
                    system=results.system.id,
                    runtime=part.runtime.id,
                    level=key.level,
                    protocol=Method.INSIDE.id,
                    when=utc_now(),
                    run=run,
                    reason=_FAILED_THERE,
                    message=part.failed[name],
                )
            )
        decoys += len(part.measured) - len(mine)
        missing += len({it.brick for it in own.values()} - {it.brick for it in (*mine.values(), *failed.values())})
    # Your own results on the same system count before those of a suite, and your own description of it, too.
    source = Source(Path(where).name)
    store.add_imported([results.system, *described], source)
    index = store.generation.index
    new = sum(any(index.row_of_uuid(each.uuid) is None for each in measured) for measured in bricks)
    store.add_imported([*chain.from_iterable(bricks), *failures], source)
    runtimes = tuple(part.runtime.id for part in results.parts)
    known = len(bricks) - new
    return SuiteImport(results.system.id, runtimes[0], runtimes, key.models, new, known, decoys, len(failures), missing)


def _refuse_strangers(key: SuiteKey, part: PartResults, where: str) -> None:
    """Refuse results of bricks that the suite does not hold. Excerpts hold more bricks than the owner knows of."""
    strangers = {*filter(is_id, part.measured.keys() | part.failed.keys())} - key.meanings.keys() - key.decoys
    if strangers:
        raise ShareError(
            f"{where} has results of brick {min(strangers)}, which its suite does not hold; nothing was imported"
        )
    if any(it.level is not key.level for found in part.measured.values() for it in found):
        raise ShareError(f"{where} has results at another level than its suite; nothing was imported")
