import json
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import pytest

from dlbricks_tui.api.documents import OMIT_NONE, document, schema_of, taken
from tests.api.validation import faults


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    """The inner part.

    Of no interest to a schema.
    """

    share: float | None


@dataclass(frozen=True)
class Outer:
    """The whole."""

    name: str
    colour: Colour
    inner: Inner
    inners: tuple[Inner, ...]
    bounds: tuple[float, int]
    path: Path
    extra: str | None = field(default=None, metadata=OMIT_NONE)


WHOLE = Outer("n", Colour.RED, Inner(0.5), (Inner(None),), (1.0, 2), Path("p"))
DOCUMENT = {
    "name": "n",
    "colour": "red",
    "inner": {"share": 0.5},
    "inners": [{"share": None}],
    "bounds": [1.0, 2],
    "path": "p",
}


def test_a_document_has_the_fields_of_the_class_and_plain_values() -> None:
    assert document(WHOLE) == DOCUMENT
    assert document(replace(WHOLE, extra="e"))["extra"] == "e"
    assert json.loads(json.dumps(document([WHOLE]))) == [DOCUMENT]


def test_a_schema_describes_the_classes_of_a_document() -> None:
    schema = schema_of(Outer)
    assert schema["$ref"] == "#/$defs/Outer"
    assert schema["$defs"]["Inner"] == {
        "type": "object",
        "description": "The inner part.",
        "properties": {"share": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        "required": ["share"],
        "additionalProperties": False,
    }
    assert "extra" not in schema["$defs"]["Outer"]["required"]
    assert schema_of(Outer, many=True)["items"] == {"$ref": "#/$defs/Outer"}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, ""),
        ({"name": 1}, "$.name"),
        ({"colour": "blue"}, "$.colour"),
        ({"bounds": [1.0]}, "$.bounds"),
        ({"inners": [{}]}, "$.inners[0]: 'share' is a required property"),
        ({"other": 1}, "$: Additional properties"),
    ],
)
def test_a_document_conforms_to_its_schema_and_an_invalid_one_does_not(changed: dict[str, object], fault: str) -> None:
    schema = schema_of(Outer)
    found = faults({**document(WHOLE), **changed}, schema, schema)
    assert len(found) == bool(fault) and all(it.startswith(fault) for it in found)


def test_fields_are_taken_from_the_first_source_that_has_them() -> None:
    others = {"colour": Colour.RED, "inners": (), "bounds": (1.0, 2), "path": Path("p")}
    found = taken(Outer, replace(WHOLE, name="first"), WHOLE, **others)
    assert (found.name, found.inner, found.inners, found.extra) == ("first", WHOLE.inner, (), None)
    with pytest.raises(TypeError, match="share"):
        taken(Inner, WHOLE)
