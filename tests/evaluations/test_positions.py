"""The positions of keys and items, checked against what the parser reads."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.evaluations.faults import MOST_LEVELS, Place, Position, excess, offset_of, offsets_of, position_at
from tests.evaluations.example import FULL

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EVERY_NOTATION = '''\
bare = 1
"quoted \\u0041" = 2
'literal.key' = 3
dotted . "key" . last = 4
text = "# no [comment] = \\" here"
literal = 'C:\\'
lines = """
[not.a.table]
not_a_key = "x" \\"""
"""""
literal_lines = \'\'\'
[[neither]] '' \'\'\'\'
list = [1, [2, 3], {a = 4, "b]" = [5]}, # a ] comment
  "x,]",
  1979-05-27 07:32:00 ,
]
empty = []
inline = {}
[table] # [comment]
key = { x = 1, y . z = [ ] }
[table.inner]
key = 1
  [[array]]
  key = 1
  [array.inner]
  key = 1
  [[array.more]]
  key = 1
[other]
key = 1
[[array]]
key = 2
[array.inner]
key = 2
'''


def places_of(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of a document."""
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places_of(item, (*place, key))


@pytest.mark.parametrize("text", [EVERY_NOTATION, FULL, "", "# only a comment", "a=1"])
def test_every_key_and_item_of_a_document_has_a_position(text: str) -> None:
    assert set(offsets_of(text)) == set(places_of(tomllib.loads(text)))


def test_a_position_is_that_of_the_key_or_the_item() -> None:
    offsets = offsets_of(EVERY_NOTATION)
    for place, offset in offsets.items():
        key = place[-1]
        if isinstance(key, str):
            rest = EVERY_NOTATION[offset:].lstrip("\"'")
            assert rest.startswith(key.replace("A", "\\u0041"))
    found = {
        ("list", 1, 1): "3]",
        ("list", 2, "b]", 0): "5]",
        ("list", 3): '"x,]"',
        ("list", 4): "1979",
        ("table", "key", "y", "z"): "z = [ ]",
        ("array", 0, "more", 0): "more]]",
        ("array", 1): "array]]\nkey = 2",
        ("array", 1, "inner", "key"): "key = 2\n",
    }
    for place, beginning in found.items():
        assert EVERY_NOTATION[offsets[place] :].startswith(beginning)


def test_a_missing_key_has_the_position_of_its_table() -> None:
    text = "x = 1\n[[model]]\na = 1\n"
    offsets = offsets_of(text)
    assert position_at(text, offset_of(("model", 0, "name"), offsets)) == Position(2, 3)
    assert position_at(text, offset_of(("name",), offsets)) == Position(1, 1)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=4)
VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=6) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=2), max_size=3), max_size=4))
def test_positions_agree_with_the_parser_in_any_document(document: dict[str, Any]) -> None:
    import tomlkit

    text = tomlkit.dumps(document)
    assert set(offsets_of(text)) == set(places_of(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("a = " + "[" * (MOST_LEVELS + 1), 4 + MOST_LEVELS),
        ("a = " + "{a=" * (MOST_LEVELS + 1), 4 + 3 * MOST_LEVELS),
        ("a." * (MOST_LEVELS + 1), 2 * MOST_LEVELS + 1),
        ('"a" . ' * (MOST_LEVELS + 1), 6 * MOST_LEVELS + 4),
        ("a = 1" + "0" * 200, 4),
        ("a = " + "[" * MOST_LEVELS, None),
        ("a = [" + "1.5, " * 100, None),
        (f'a = "{"[" * 100}" # {"{" * 100}', None),
        (f"a = '''{'.' * 100}'''", None),
        ('a = "not closed ' + "[" * 100, None),
    ],
)
def test_deep_nesting_is_found_without_parsing(text: str, offset: int | None) -> None:
    found = excess(text)
    assert (None if found is None else found.offset) == offset
