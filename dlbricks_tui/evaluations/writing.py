"""The writing of an evaluation as readable TOML: what to measure first, results last."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum

import tomlkit

from dlbricks_tui.evaluations.evaluation import (
    FORMAT,
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    Measuring,
    RecordedResult,
    Requirements,
)

_HEADER = """\
# An evaluation of dlbricks. `dlbricks evaluate FILE` measures it, and `dlbricks evaluate FILE --compare` says whether
# the results equal those below. `dlbricks evaluate --schema` prints the JSON schema of this file for editors.
"""
_MODELS = "# The models by their content. Copies with another name or in another place will do."
_RUNTIMES = "# The runtimes. Each combination of the values of a runtime is measured."
_MEASURE = "# How the models are cut and timed."
_SCENARIOS = "# How requests arrive. Each runtime runs these with its first variant."
_SYSTEM = "# Requirements on the system."
_RESULTS = "# The results of the earlier run, with all samples of the whole models in milliseconds."

_SAMPLES_IN_A_LINE = 10
# The fields that have a table of their own below the others.
_FACTS = ("packages", "host")
# The fields that say nothing with their default.
_SILENT = ("instances", "full", "quiet", "instructions", "optimisation")

_Section = EvaluatedModel | EvaluatedRuntime | EvaluatedScenario | Measuring | Requirements | RecordedResult


def text_of(evaluation: Evaluation) -> str:
    """Return an evaluation as the text of its file."""
    head = {"format": FORMAT, "name": evaluation.name, "about": evaluation.about}
    lines = [f"{key} = {_value(value)}" for key, value in head.items() if value]
    return "\n".join(
        [
            _HEADER,
            *lines,
            *_tables("[[model]]", _MODELS, evaluation.models),
            *_tables("[[runtime]]", _RUNTIMES, evaluation.runtimes),
            *_tables("[measure]", _MEASURE, [evaluation.measuring]),
            *_tables("[[scenario]]", _SCENARIOS, evaluation.scenarios),
            *_tables("[system]", _SYSTEM, [evaluation.system]),
            *_tables("[[result]]", _RESULTS, evaluation.results),
            "",
        ]
    )


def _tables(header: str, comment: str, sections: Sequence[_Section]) -> Iterator[str]:
    """Yield the lines of some tables; the first has a comment."""
    for number, section in enumerate(sections):
        lines = list(_lines(header.strip("[]"), section))
        if lines:
            yield from ("", *([comment] if number == 0 else []), header, *lines)


def _lines(name: str, section: _Section) -> Iterator[str]:
    """Yield the lines of a table: its keys, then the tables in it."""
    below: list[str] = []
    for each in fields(section):
        key, value = each.name, getattr(section, each.name)
        if value in (None, "", (), {}) or (key in _SILENT and value == each.default):
            continue
        if key in _FACTS:
            below += ["", f"[{name}.{key}]", *(f"{_key(fact)} = {_value(it)}" for fact, it in value if it is not None)]
        elif key == "samples_ms":
            yield from (f"{key} = [", *_rows(value), "]")
        else:
            yield f"{key} = {_field(key, value)}"
    yield from below


def _rows(samples: Sequence[float]) -> Iterator[str]:
    for begin in range(0, len(samples), _SAMPLES_IN_A_LINE):
        yield f"    {', '.join(map(_value, samples[begin : begin + _SAMPLES_IN_A_LINE]))},"


def _field(key: str, value: object) -> str:
    """Return the value of a field as TOML; a list of one item is written as the item."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{_key(name)} = {_several(item, key == 'inputs')}" for name, item in value.items())
        return f"{{ {items} }}"
    if key in ("cores", "memory_gib"):
        return _limit(str(value))
    return _several(value, is_list=False)


def _several(value: object, is_list: bool) -> str:
    if not isinstance(value, tuple):
        return _value(value)
    items: Iterable[str] = map(_value, value)
    return next(iter(items)) if len(value) == 1 and not is_list else f"[{', '.join(items)}]"


def _limit(text: str) -> str:
    """Return a plain number without quotes."""
    return text if text.isdecimal() and str(int(text)) == text else _value(text)


def _value(value: object) -> str:
    return tomlkit.item(value.value if isinstance(value, Enum) else value).as_string()


def _key(name: str) -> str:
    return tomlkit.key(name).as_string()
