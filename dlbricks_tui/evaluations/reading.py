"""The reading of an evaluation: its text to a document that is checked, and that to dataclasses."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.evaluations.evaluation import (
    FORMAT,
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    EvaluationError,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.evaluations.faults import (
    Fault,
    offset_of,
    offsets_of,
    position_at,
    shown,
)
from dlbricks_tui.evaluations.rules import as_list, broken_rules
from dlbricks_tui.evaluations.validation import faults_of
from dlbricks_tui.evaluations.writing import error_at, parsed
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind

_MOST_FAULTS = 100
_Table = Mapping[str, Any]


def evaluation_of(text: str, sha256: str, file: str) -> Evaluation:
    """Return the evaluation in a text; raise EvaluationError for the first fault. `file` names it in messages."""
    text = text.replace("\r\n", "\n")
    document = parsed(text, file)
    _refuse_other_formats(document, text, file)
    try:
        faults = faults_of(document) or list(islice(broken_rules(document), _MOST_FAULTS))
    except RecursionError:
        raise EvaluationError(f"{file}: the values nest too deep; write them flatter") from None
    if faults:
        raise _first(faults, text, file)
    return _evaluation(document, sha256)


def _refuse_other_formats(document: _Table, text: str, file: str) -> None:
    """Refuse a file of a newer format first: this version does not know its keys."""
    found = document.get("format")
    if "format" in document and type(found) is int and found > FORMAT:
        where = position_at(text, offsets_of(text)["format",])
        raise error_at(
            file,
            where,
            f"format = {shown(found)} was written by a newer dlbricks, and this one reads format {FORMAT}; "
            "update dlbricks",
        )


def _first(faults: list[Fault], text: str, file: str) -> EvaluationError:
    """Return the error about the fault that stands first in the file."""
    offsets = offsets_of(text)
    first = min(faults, key=lambda fault: offset_of(fault.place, offsets))
    return error_at(file, position_at(text, offset_of(first.place, offsets)), first.message)


def _evaluation(document: _Table, sha256: str) -> Evaluation:
    return Evaluation(
        name=document["name"],
        about=document.get("about", ""),
        models=tuple([_model(table) for table in document["model"]]),
        runtimes=tuple([_runtime(table) for table in document["runtime"]]),
        measuring=_measuring(document.get("measure", {})),
        scenarios=tuple([_scenario(table) for table in document.get("scenario", ())]),
        system=_system(document.get("system", {})),
        results=tuple([_result(table) for table in document.get("result", ())]),
        sha256=sha256,
    )


def _model(table: _Table) -> EvaluatedModel:
    return EvaluatedModel(
        name=table["name"],
        sha256=table.get("sha256", ""),
        path=table.get("path", ""),
        inputs={name: tuple(map(int, shape)) for name, shape in table.get("inputs", {}).items()},
        values={name: tuple(as_list(value)) for name, value in table.get("values", {}).items()},
    )


def _runtime(table: _Table) -> EvaluatedRuntime:
    return EvaluatedRuntime(
        framework=table["framework"],
        version=table.get("version", ""),
        threads=_whole_numbers(table.get("threads")),
        batch=_whole_numbers(table.get("batch")),
        precision=tuple([Precision(word) for word in _each_once(table.get("precision"))]),
        instructions=tuple([InstructionSet(word) for word in _each_once(table.get("instructions"))]),
        optimisation=tuple([Optimisation(word) for word in _each_once(table.get("optimisation"))]),
        variables=table.get("variables", {}),
    )


def _each_once(value: Any) -> list[Any]:
    return list(dict.fromkeys(as_list(value)))


def _whole_numbers(value: Any) -> tuple[int, ...]:
    # JSON schema takes 2.0 for a whole number.
    return tuple(map(int, _each_once(value)))


def _measuring(table: _Table) -> Measuring:
    usual = Measuring()
    return Measuring(
        level=Level(table.get("level", usual.level)),
        granularity=int(table.get("granularity", usual.granularity)),
        cut=Cut(table.get("cut", usual.cut)),
        order=LayerOrder(table["order"]) if "order" in table else None,
        method=Method(table["method"]) if "method" in table else None,
        bricks=table.get("bricks", usual.bricks),
        end_to_end=table.get("end_to_end", usual.end_to_end),
        target_interval=_number(table.get("target_interval")),
        fixed_runs=int(table["fixed_runs"]) if "fixed_runs" in table else None,
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _scenario(table: _Table) -> EvaluatedScenario:
    return EvaluatedScenario(
        kind=ScenarioKind(table["kind"]),
        percentile=_number(table.get("percentile")),
        bound_ms=_number(table.get("bound_ms")),
        rate=_number(table.get("rate")),
        batch=_whole_numbers(table.get("batch")),
        instances=int(table.get("instances", 1)),
        full=table.get("full", False),
    )


def _system(table: _Table) -> Requirements:
    return Requirements(
        cores=_limit(table.get("cores", "")),
        memory_gib=_limit(table.get("memory_gib", "")),
        cpu=table.get("cpu", ""),
        instance_type=table.get("instance_type", ""),
        instructions=tuple([InstructionSet(word) for word in _each_once(table.get("instructions"))]),
        governor=table.get("governor", ""),
        turbo=table.get("turbo"),
        hyper_threading=table.get("hyper_threading"),
        quiet=table.get("quiet", False),
    )


def _limit(value: Any) -> str:
    """Return a limit as text, a number without an exponent."""
    return value if isinstance(value, str) else f"{value:.9f}".rstrip("0").rstrip(".")


def _result(table: _Table) -> RecordedResult:
    return RecordedResult(
        model=table["model"],
        framework=table["framework"],
        version=table["version"],
        threads=int(table["threads"]) if "threads" in table else None,
        batch=int(table.get("batch", 1)),
        precision=Precision(table.get("precision", Precision.F32)),
        instructions=InstructionSet(table.get("instructions", InstructionSet.ALL)),
        optimisation=Optimisation(table.get("optimisation", Optimisation.ALL)),
        variables=table.get("variables", {}),
        when=table["when"],
        measured_ms=_number(table.get("measured_ms")),
        low_ms=_number(table.get("low_ms")),
        high_ms=_number(table.get("high_ms")),
        samples_ms=tuple(map(float, table.get("samples_ms", ()))),
        estimate_ms=_number(table.get("estimate_ms")),
        estimate_low_ms=_number(table.get("estimate_low_ms")),
        estimate_high_ms=_number(table.get("estimate_high_ms")),
        packages=tuple(table.get("packages", {}).items()),
        host=tuple(table.get("host", {}).items()),
        sha256=table.get("sha256", ""),
    )
