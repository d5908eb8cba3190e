"""The reading of an evaluation: its text to a document that is checked, and that to dataclasses."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from dlbricks_tui.evaluations.evaluation import FORMAT, Evaluation, EvaluationError
from dlbricks_tui.evaluations.faults import (
    Fault,
    offset_of,
    offsets_of,
    position_at,
    shown,
)
from dlbricks_tui.evaluations.rules import broken_rules
from dlbricks_tui.evaluations.schema import TABLES, FileTable
from dlbricks_tui.evaluations.validation import faults_of
from dlbricks_tui.evaluations.writing import error_at, parsed

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
    tables = {it.field: loaded(it, document.get(name)) for name, it in TABLES.items() if name in document}
    return Evaluation(name=document["name"], about=document.get("about", ""), sha256=sha256, **tables)


def loaded(table: FileTable, value: Any) -> Any:
    """Return the dataclass of a table, or of each table of a name."""
    if isinstance(value, list):
        return tuple([loaded(table, each) for each in value])
    return table.kind(**{name: key.read(value[name]) for name, key in table.keys.items() if name in value})
