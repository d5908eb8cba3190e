"""Brings the results of a suite home: each to the brick that the owner's key says its id stands for."""

from dataclasses import dataclass, replace

from dlbricks_tui.measure.method import Method
from dlbricks_tui.share.errors import BrokenResultsError, KeyFileError
from dlbricks_tui.share.key_file import SuiteKey
from dlbricks_tui.share.results_file import SuiteResults
from dlbricks_tui.store.records import BrickForm, Failure, Measurement, Record, utc_now
from dlbricks_tui.store.store import Store

_FAILED_THERE = "failed elsewhere"


@dataclass(frozen=True, slots=True)
class SuiteImport:
    """What became of the results: those of decoys are left where they are."""

    system: str
    runtime: str
    models: tuple[str, ...]
    new: int
    known: int
    decoys: int
    failed: int
    missing: int
    calibrations: int


def import_results(store: Store, key: SuiteKey, results: SuiteResults, where: str) -> SuiteImport:
    """Stores the results of the private models' bricks; `where` names the file."""
    if results.suite != key.suite:
        raise KeyFileError(f"{where} is of suite {results.suite}, and the key is to suite {key.suite}")
    if results.manifest_sha256 != key.manifest_sha256:
        raise BrokenResultsError(f"{where} is of a suite that was changed after it was exported; nothing was imported")
    strangers = (results.measured.keys() | results.failed.keys()) - key.meanings.keys() - key.decoys
    if strangers:
        raise BrokenResultsError(
            f"{where} claims brick {min(strangers)}, which its suite does not hold; nothing was imported"
        )
    if any(measurement.level is not key.level for measurement in results.measured.values()):
        raise BrokenResultsError(f"{where} has results at another level than its suite; nothing was imported")
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
    # By the run a person finds, and can delete, all that came from one suite.
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
