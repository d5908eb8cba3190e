"""The checks of a document against the JSON schema."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from dlbricks_tui.evaluations.faults import (
    Fault,
    Place,
    any_number_fault,
    missing_key,
    too_long,
    unknown_key,
    wrong_count,
    wrong_name,
    wrong_value,
)
from dlbricks_tui.evaluations.schema import Schema, schema

# The first faults are enough: only one is reported.
_MOST_FAULTS = 100
# Longer lists of plain numbers are checked by their least and largest one.
_SHORT_LIST = 8
# No setting and no latency is larger, and numbers of more digits take long to print.
_LARGEST = 10**20


def faults_of(document: Mapping[str, Any]) -> list[Fault]:
    """Return the first faults of a document: numbers that are none, then what the schema does not allow."""
    numbers = list(islice(_number_faults(document), _MOST_FAULTS))
    if numbers:
        return numbers
    return [_fault(error) for error in islice(_validator().iter_errors(document), _MOST_FAULTS)]


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
            yield from (any_number_fault((*place, number), value[number]) for number in strange)
        elif isinstance(value, int | float) and _is_strange(value):
            yield any_number_fault(place, value)


def _is_strange(number: float) -> bool:
    return not (math.isfinite(number) if isinstance(number, float) else abs(number) < _LARGEST)


@cache
def _validator() -> Draft202012Validator:
    kind = extend(Draft202012Validator, {"items": _items, "pattern": _pattern})
    return kind(schema())


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


def _fault(error: ValidationError) -> Fault:
    """Return an error of the library as a fault."""
    place: Place = tuple(error.absolute_path)
    part, value, kind = error.schema, error.instance, error.validator
    if "propertyNames" in error.absolute_schema_path:
        return wrong_name(place, value, part)
    if kind == "required":
        lacking = next(key for key in part["required"] if key not in value)
        return missing_key(place, lacking, part)
    if kind == "additionalProperties":
        unknown = next(key for key in value if key not in part["properties"])
        return unknown_key(place, unknown, part)
    if kind in ("minItems", "maxItems", "maxProperties"):
        return wrong_count(place, value, part)
    if kind == "maxLength":
        return too_long(place, value, part)
    if kind == "anyOf":
        inner = _within(error)
        if inner is not None:
            return _fault(inner)
    return wrong_value(place, value, part)


def _within(error: ValidationError) -> ValidationError | None:
    """Return the error in the alternative whose type fits the value; None if no type fits."""
    context = list(error.context or ())
    misfits = {each.schema_path[0] for each in context if each.validator in ("type", "enum") and not each.path}
    return next((each for each in context if each.schema_path[0] not in misfits), None)
