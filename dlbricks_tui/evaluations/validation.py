"""The checks of a document: against the JSON schema, and by the rules that a schema cannot say."""

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from dlbricks_tui.evaluations.evaluation import RecordedResult, Schema, as_list, schema
from dlbricks_tui.evaluations.faults import LONGEST_SHOWN, Fault, Place, key_shown, shown, table_shown
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.settings.setting import plain
from dlbricks_tui.settings.variant import EXECUTION, THREADS

# Of all runtimes together.
_MOST_COMBINATIONS = 10_000
_OF_FRAMEWORK = ("model", "sha256", "framework", "version")
_OF_VARIANT = tuple(it.field for it in (THREADS, *EXECUTION))

# The tables of a document that the schema allows.
_Table = Mapping[str, Any]


def broken_rules(document: _Table) -> Iterator[Fault]:
    """Yield the rules that a document breaks which the schema allows."""
    yield from _in_models(document["model"])
    yield from _in_runtimes(document["runtime"])
    measure = document.get("measure", {})
    if "fixed_runs" in measure and "target_interval" in measure:
        yield Fault(("measure", "fixed_runs"), "fixed_runs and target_interval exclude each other: remove one of them")
    if measure.get("bricks") is False and measure.get("end_to_end") is False and not bool(document.get("scenario")):
        yield Fault(
            ("measure", "bricks"), "bricks and end_to_end are both false, and there is no [[scenario]]: set one to true"
        )
    for number, scenario in enumerate(document.get("scenario", ())):
        place = ("scenario", number)
        kind = ScenarioKind(scenario["kind"])
        if kind is ScenarioKind.SERVER and "bound_ms" not in scenario and "rate" not in scenario:
            yield Fault(place, "a server needs bound_ms, the bound of its latency, or rate: add one of them")
        if kind is not ScenarioKind.SERVER and "rate" in scenario:
            yield Fault((*place, "rate"), f'kind {kind.value} has no rate: remove it, or choose kind = "server"')
        if kind is ScenarioKind.SINGLE and any(size != 1 for size in as_list(scenario.get("batch"))):
            yield Fault((*place, "batch"), "a single stream has one request at a time: remove batch")
    results = document.get("result", ())
    models = [model["name"] for model in document["model"]]
    frameworks = [runtime["framework"] for runtime in document["runtime"]]
    for number, result in enumerate(results):
        yield from _in_result(("result", number), result, models, frameworks)
    for number in _repeated(map(_combination, results)):
        yield Fault(
            ("result", number), "another [[result]] has the same model, runtime and variant: remove one of them"
        )


def _in_models(models: Sequence[_Table]) -> Iterator[Fault]:
    named: dict[str, list[str]] = {}
    for number, model in enumerate(models):
        name, content = model["name"], model.get("sha256", "")
        others = named.setdefault(name, [])
        if others and (not content or "" in others or content in others):
            yield Fault(
                ("model", number, "name"),
                f"name = {shown(name)}: another [[model]] has this name; choose another, or give each its own sha256",
            )
        others.append(content)
    for number, model in enumerate(models):
        for key in ("inputs", "values"):
            if "" in model.get(key, {}):
                yield Fault(("model", number, key, ""), f"an input of {key} has no name: write the name of the input")


def _in_runtimes(runtimes: Sequence[_Table]) -> Iterator[Fault]:
    combinations = 0
    for number, runtime in enumerate(runtimes):
        try:
            SpecifierSet(runtime.get("version", ""))
        except InvalidSpecifier:
            yield Fault(
                ("runtime", number, "version"),
                f"version = {shown(runtime['version'])}: it has to be a version constraint, "
                'such as ">=1.20,<2" or "==1.9.1"',
            )
        product = 1
        for key in _OF_VARIANT:
            product *= max(1, len(dict.fromkeys(as_list(runtime.get(key)))))
        combinations += product
        if combinations > _MOST_COMBINATIONS:
            yield Fault(
                ("runtime", number),
                f"the runtimes have more than {_MOST_COMBINATIONS:,} combinations of variants up to here: "
                "list fewer values",
            )
            break
    for number in _repeated(map(_frozen, runtimes)):
        yield Fault(("runtime", number), "another [[runtime]] is the same: remove one of them")


def _in_result(place: Place, result: _Table, models: list[str], frameworks: list[str]) -> Iterator[Fault]:
    for key, table, own_key, known in (
        ("model", "[[model]]", "name", models),
        ("framework", "[[runtime]]", "framework", frameworks),
    ):
        if result[key] not in known:
            listed = ", ".join(shown(name) for name in dict.fromkeys(known[:8]))
            yield Fault(
                (*place, key), f"{key} = {shown(result[key])}: no {table} has this {own_key}; they have {listed}"
            )
    text = result["when"]
    if time_of(text) is None:
        yield Fault(
            (*place, "when"),
            f'when = {shown(text)}: it has to be a time with its time zone, such as "2026-11-27T08:00:00+00:00"',
        )
    for low, middle, high in (
        ("low_ms", "measured_ms", "high_ms"),
        ("estimate_low_ms", "estimate_ms", "estimate_high_ms"),
    ):
        given = [key for key in (low, middle, high) if key in result]
        if len(given) not in (0, 3):
            missing = next(key for key in (low, middle, high) if key not in result)
            yield Fault((*place, given[0]), f"{given[0]} without {missing}: give {low}, {middle} and {high}, or none")
        elif given and result[low] > result[high]:
            yield Fault((*place, low), f"{low} = {shown(result[low])} is above {high}: correct one of them")


def time_of(text: str) -> datetime | None:
    """Return the time in a text; None if it is no time with a time zone."""
    try:
        # Python 3.10 does not read the Z.
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def _combination(result: _Table) -> Hashable:
    """Return what tells a result from the others."""
    usual = {it.name: plain(it.default) for it in fields(RecordedResult)}
    variant = [result.get(key, usual[key]) for key in (*_OF_FRAMEWORK, *_OF_VARIANT)]
    return (*variant, _frozen(result.get("variables", {})))


def _frozen(value: Any) -> Hashable:
    """Return a value that can be looked up, equal for equal values."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _repeated(keys: Iterable[Hashable]) -> Iterator[int]:
    """Yield the number of each key that has occurred before."""
    seen = set()
    for number, key in enumerate(keys):
        if key in seen:
            yield number
        seen.add(key)


# The first faults are enough: only one is reported.
_MOST_FAULTS = 100
# Longer lists of plain numbers are checked by their least and largest one.
_SHORT_LIST = 8
# No setting and no latency is larger, and numbers of more digits take long to print.
_LARGEST = 10**20


def faults_of(document: Mapping[str, Any], allows: Schema | None = None) -> list[Fault]:
    """Return the first faults of a document: numbers that are none, then what its schema does not allow.

    Without a schema it is an evaluation.
    """
    numbers = list(islice(_number_faults(document), _MOST_FAULTS))
    if numbers:
        return numbers
    validator = _validator() if allows is None else _KIND(allows)
    return [_fault(error) for error in islice(validator.iter_errors(document), _MOST_FAULTS)]


def _number_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the numbers that are infinite, not a number, or too large. JSON schema takes them for numbers."""
    waiting: list[tuple[Place, Any]] = [((), document)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*place, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*place, number), item) for number, item in enumerate(value) if type(item) is not float]
            strange = (number for number, item in enumerate(value) if type(item) is float and _is_strange(item))
            yield from (_odd_number((*place, number), value[number]) for number in strange)
        elif isinstance(value, int | float) and _is_strange(value):
            yield _odd_number(place, value)


def _odd_number(place: Place, value: float) -> Fault:
    return Fault(place, f"{_subject(place, value)}: it has to be a finite number of at most 20 digits")


def _is_strange(number: float) -> bool:
    return not (math.isfinite(number) if isinstance(number, float) else abs(number) < _LARGEST)


@cache
def _validator() -> Draft202012Validator:
    return _KIND(schema())


def _items(validator: Any, part: Schema, value: Any, whole: Schema) -> Iterator[ValidationError]:
    """Check the items of a list; a list that is too long has that fault already."""
    if isinstance(value, list) and len(value) <= whole["maxItems"]:
        for number in _deciding(value):
            yield from validator.descend(value[number], part, path=number)


def _deciding(items: list[Any]) -> list[int]:
    """Return the numbers of the items that decide whether all are valid.

    Of plain numbers these are the least and the largest one of each type: a check of each takes 20 microseconds.
    """
    kinds = {type(item) for item in items}
    if len(items) <= _SHORT_LIST or not kinds <= {int, float}:
        return list(range(len(items)))
    found = []
    for kind in kinds:
        of_kind = [number for number, item in enumerate(items) if type(item) is kind]
        found += [min(of_kind, key=items.__getitem__), max(of_kind, key=items.__getitem__)]
    return sorted(found)


def _pattern(_: Any, pattern: str, value: Any, __: Schema) -> Iterator[ValidationError]:
    """Check a text. In JSON schema `$` is the end of the text, in Python also a place before a line break there."""
    if isinstance(value, str) and not re.search(pattern.removesuffix("$") + r"\Z", value):
        yield ValidationError("does not match")


_KIND = extend(Draft202012Validator, {"items": _items, "pattern": _pattern})


def _fault(error: ValidationError) -> Fault:
    """Return an error of the library as a fault."""
    place: Place = tuple(error.absolute_path)
    part, value, kind = error.schema, error.instance, error.validator
    if "propertyNames" in error.absolute_schema_path:
        told = f"{key_shown(value)} is not allowed here: it has to be {part['patternErrorMessage']}"
        return Fault((*place, value), told)
    if kind == "required":
        lacking = next(key for key in part["required"] if key not in value)
        return Fault(place, f"{table_shown(place)} lacks {_lacking(lacking, part['properties'][lacking])}")
    if kind == "additionalProperties":
        known = list(part["properties"])
        key = next(key for key in value if key not in known)
        close = get_close_matches(key.lower()[:LONGEST_SHOWN], known, 1)
        hint = f"did you mean {close[0]}?" if close else f"the keys of {table_shown(place)} are {', '.join(known)}"
        return Fault((*place, key), f"there is no key {key_shown(key)} in {table_shown(place)}; {hint}")
    if kind in ("minItems", "maxItems", "maxProperties"):
        name = key_shown(next((key for key in reversed(place) if isinstance(key, str)), ""))
        most = part.get("maxItems", part.get("maxProperties"))
        told = f"{len(value):,} items: the limit is {most:,}" if value else "no items: give at least one"
        return Fault(place, f"{name} has {told}")
    if kind == "maxLength":
        told = f"it has {len(value):,} characters, the limit is {part['maxLength']:,}"
        return Fault(place, f"{_subject(place, value)}: {told}")
    if kind == "anyOf":
        context = list(error.context or ())
        misfits = {each.schema_path[0] for each in context if each.validator in ("type", "enum") and not each.path}
        inner = next((each for each in context if each.schema_path[0] not in misfits), None)
        if inner is not None:
            return _fault(inner)
    return _wrong_value(place, value, part)


def _lacking(key: str, wanted: Schema) -> str:
    """Return the key that a table lacks, with what to do."""
    if "const" in wanted:
        return f"{key}: add {key} = {shown(wanted['const'])}"
    return f"[[{key}]]: add one" if wanted.get("type") == "array" else f"{key}: add it, {allowed(wanted)}"


def allowed(part: Schema) -> str:
    """Return the values that a part of the schema allows, in words."""
    if "patternErrorMessage" in part:
        return str(part["patternErrorMessage"])
    if "anyOf" in part:
        return f"{allowed(part['anyOf'][0])}, or a list of such values"
    if "const" in part:
        return shown(part["const"])
    if "enum" in part:
        return f"one of {', '.join(map(shown, part['enum']))}"
    kinds = part["type"]
    if isinstance(kinds, list):
        return "text, a number, or true or false"
    if kinds == "array":
        items = part["items"]
        return "several tables" if items.get("type") == "object" else f"a list, each item {allowed(items)}"
    return {
        "integer": f"a whole number{_bounds(part)}",
        "number": f"a number{_bounds(part)}",
        "string": "text in quotes",
        "boolean": "true or false",
        "object": "a table",
    }[kinds]


def _bounds(part: Schema) -> str:
    least, most = part.get("minimum"), part.get("maximum")
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    if above is not None and below is not None:
        return f" between {above:,.10g} and {below:,.10g}"
    if least is not None and most is not None:
        return f" from {least:,.10g} to {most:,.10g}"
    if above is not None and most is not None:
        return f" above {above:,.10g}, at most {most:,.10g}"
    return ""


def _wrong_value(place: Place, value: object, part: Schema) -> Fault:
    """Return the fault that a value is not one of those that the schema allows."""
    if isinstance(value, dict) and allowed(part) == "several tables":
        return Fault(place, f"there may be several: write [[{key_shown(str(place[-1]))}]] with two brackets")
    if isinstance(value, list) and part.get("type") == "object" and place:
        return Fault(place, f"there is only one: write [{key_shown(str(place[-1]))}] with one bracket")
    close = _close(value, part)
    hint = f"; did you mean {shown(close)}?" if close else ""
    return Fault(place, f"{_subject(place, value)}: it has to be {allowed(part)}{hint}")


def _close(value: object, part: Schema) -> str:
    """Return the word of an enumeration that a text resembles; empty if there is none."""
    words = [str(word) for each in (part, *part.get("anyOf", ())) for word in each.get("enum", ())]
    if not isinstance(value, str) or value in words:
        return ""
    text = value.lower()[:LONGEST_SHOWN]
    longer = [word for word in words if len(text) > 2 and word.startswith(text)]
    return next(iter([*longer, *get_close_matches(text, words, 1)]), "")


def _subject(place: Place, value: object) -> str:
    """Return the key and value that a fault is about."""
    names = [key for key in place if isinstance(key, str)]
    if not names:
        return "the file"
    is_item = isinstance(place[-1], int)
    return f"{key_shown(names[-1])} {'has the item' if is_item else '='} {shown(value)}"
