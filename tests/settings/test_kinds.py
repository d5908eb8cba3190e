"""The kinds of values: each reads what it writes, and refuses all else with what to give."""

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.settings.setting import (
    ValueKind,
    ValueRefusedError,
    flag,
    name,
    next_of,
    number,
    one_of,
    several,
    share,
    whole,
    with_own,
)


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


KINDS: dict[str, tuple[ValueKind[Any], Any]] = {
    "whole": (whole(1, 64), 7),
    "number": (number(1e6), 12.5),
    "share": (share(), 0.005),
    "words": (one_of(*Colour), Colour.BLUE),
    "name": (name("the name of a theme"), "dark"),
    "flag": (flag("run again", "leave out"), True),
    "several": (several(one_of(*Colour)), (Colour.BLUE, Colour.RED)),
}


@pytest.mark.parametrize(("kind", "value"), KINDS.values(), ids=KINDS)
def test_a_kind_reads_what_it_writes(kind: ValueKind[Any], value: Any) -> None:
    assert kind.read(kind.text(value)) == kind.checked(value) == value


@pytest.mark.parametrize(("kind", "_"), KINDS.values(), ids=KINDS)
@given(text=st.text())
def test_a_text_is_a_value_or_refused_with_what_to_give(kind: ValueKind[Any], _: Any, text: str) -> None:
    try:
        value = kind.read(text)
    except ValueRefusedError as refusal:
        assert str(refusal) == f"give {kind.allowed}"
    else:
        assert kind.accepts(value)


@pytest.mark.parametrize("value", [True, 1.5, 0, 65, "7", None, [7]])
def test_a_value_of_a_file_has_the_type_of_its_kind(value: object) -> None:
    with pytest.raises(ValueRefusedError, match=r"^give a whole number from 1 to 64$"):
        whole(1, 64).checked(value)


def test_several_values_count_once_and_are_offered_alone_and_together() -> None:
    kind = several(whole(1, 64, 1, 2, 4), (1, 2))
    assert kind.read("4, 1,4") == (4, 1)
    assert kind.offered == ((1,), (2,), (4,), (1, 2))
    # The identity of a runtime has commas and spaces.
    assert several(name("a runtime")).read("mxnet 1.9.1, python 3.11") == ("mxnet 1.9.1, python 3.11",)


def test_steps_go_around_and_the_own_value_is_among_them() -> None:
    assert with_own((1, 2, 8), 4) == (1, 2, 4, 8) and with_own(("b", "a"), "own") == ("b", "a", "own")
    assert with_own((1, 2), None) == with_own((1, 2), 2) == (1, 2)
    assert [next_of((1, 2, 4), value, 1) for value in (1, 4, 9)] == [2, 1, 1] and next_of((1, 2, 4), 1, -1) == 4
