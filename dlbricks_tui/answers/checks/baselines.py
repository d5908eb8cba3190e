"""The earlier latencies in a file that a check compares with: an evaluation, or exported results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.evaluations.baseline import Baseline, baselines_of_evaluation, baselines_of_records
from dlbricks_tui.evaluations.errors import EvaluationError
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.records import EndToEnd, Provenance, Runtime, System

_EVALUATION_SUFFIX = ".toml"
_EXPORT_SUFFIXES = (".json", ".json.gz")
_EXPORTED = (EndToEnd, System, Runtime, Provenance)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The earlier latencies in a file, the system that measured them (None: not known), and lines without a record."""

    found: tuple[Baseline, ...]
    system: System | None = None
    refused: tuple[Damage, ...] = ()


def read_baselines(file: Path, system: str | None = None) -> Baselines:
    """Return the earlier latencies in an evaluation, or those of one system in exported results.

    That system is the named one, this host, or the only one.
    """
    name = file.name.lower()
    if name.endswith(_EVALUATION_SUFFIX):
        # Loaded here: exports need no reader of evaluations.
        from dlbricks_tui.evaluations.file import read_evaluation

        evaluation = read_evaluation(file)
        if not evaluation.results:
            raise EvaluationError(
                f"{file} has no results to compare with: write it from a run, by `dlbricks evaluate --from RUN -o FILE`"
            )
        return Baselines(baselines_of_evaluation(evaluation))
    # An export without an ending is JSON.
    if file.suffix and not name.endswith(_EXPORT_SUFFIXES):
        raise EvaluationError(
            f"{file} is neither an evaluation (.toml) nor a file of exported results (.json, .json.gz): name one that "
            "`dlbricks evaluate --from` or `dlbricks results export` has written"
        )
    records, refused = read_export(file, _EXPORTED)
    measured = dict.fromkeys(it.system for it in records if isinstance(it, EndToEnd) and it.good)
    systems = {it.id: it for it in records if isinstance(it, System) and it.id in measured}
    if not systems:
        raise EvaluationError(
            f"{file} has no good results of whole models: measure them by `dlbricks run --end-to-end`, and export again"
        )
    chosen = _system_of(file, systems, system)
    return Baselines(baselines_of_records(records, chosen), systems[chosen], tuple(refused))


def _system_of(file: Path, systems: Mapping[str, System], named: str | None) -> str:
    if named is not None:
        fitting = [it.id for it in systems.values() if named in (it.id, it.name, it.instance_type)]
        if len(fitting) != 1:
            called = "no system" if not fitting else f"{len(fitting)} systems"
            raise EvaluationError(f"{file} has {called} called {named!r}: name one of {', '.join(sorted(systems))}")
        return fitting[0]
    host = fingerprint().id
    if host not in systems and len(systems) > 1:
        raise EvaluationError(
            f"{file} has results of {len(systems)} systems, and this host is none of them: name one by --system: "
            f"{', '.join(sorted(systems))}"
        )
    return host if host in systems else next(iter(systems))
