from struct import pack, unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models.graph import ParamValue
from dlbricks_tui.models.literals import LiteralError, guess_value, parse_tuple, parse_value, single_precision


@pytest.mark.parametrize("text", ["(8, 3)", "(8L, 3L)", "[8,3]", "(8,3,)", " ( 8 , 3 ) ", "8, 3", "(8.0, 3.0)"])
def test_a_tuple_is_one_value_in_the_spelling_of_any_version(text: str) -> None:
    assert parse_value(text, "tuple") == (8, 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [("()", ()), ("[]", ()), ("None", None), ("", None), ("3", (3,)), ("(3,)", (3,)), ("(None, 2)", (None, 2))],
)
def test_empty_short_and_open_tuples_are_read(text: str, value: ParamValue) -> None:
    assert parse_tuple(text) == value


@pytest.mark.parametrize("text", ["True", "true", "1", " TRUE "])
def test_true_is_one_value_in_the_spelling_of_any_version(text: str) -> None:
    assert parse_value(text, "bool") is True


@pytest.mark.parametrize("text", ["False", "false", "0"])
def test_false_is_one_value_in_the_spelling_of_any_version(text: str) -> None:
    assert parse_value(text, "bool") is False


@pytest.mark.parametrize(
    ("text", "value"), [("64", 64), ("64L", 64), ("-1", -1), ("True", 1), ("64.0", 64), ("1e3", 1000)]
)
def test_whole_numbers_are_read(text: str, value: int) -> None:
    found = parse_value(text, "int")
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize(
    "text", ["0.001", "1e-3", "0.0010000000474974513", "0.00100000005", "+.001", "0.001000000047497451305389404296875"]
)
def test_all_spellings_of_a_number_of_32_bits_are_one_value(text: str) -> None:
    assert parse_value(text, "float") == 0.001


@given(st.floats(width=32, allow_nan=False))
def test_a_number_of_32_bits_survives_its_shortest_spelling(value: float) -> None:
    short = single_precision(value)
    assert unpack("f", pack("f", short)) == (value,)
    assert single_precision(short) == short
    assert single_precision(float(f"{value:.9g}")) == short


@pytest.mark.parametrize("text", ["-0.0", "0", "-0"])
def test_zero_has_no_sign(text: str) -> None:
    assert str(parse_value(text, "float")) == "0.0"


@pytest.mark.parametrize("text", ["inf", "1e300", "1e39"])
def test_a_number_beyond_32_bits_is_infinite(text: str) -> None:
    assert parse_value(text, "float") == float("inf")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("inf", "int"),
        ("nan", "int"),
        ("1.5", "int"),
        ("2", "bool"),
        ("nan", "bool"),
        ("many", "int"),
        ("(1, two)", "tuple"),
        ("(1,,2)", "tuple"),
        ("((1, 2), (3, 4))", "tuple"),
        ("1" * 65, "int"),
        ("9" * 1_000_000, "float"),
        ("١٢", "int"),
        ("1\x00", "int"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, kind: str) -> None:
    with pytest.raises(LiteralError) as refusal:
        parse_value(text, kind)
    assert len(str(refusal.value)) < 100


def test_text_is_kept_and_none_is_none() -> None:
    assert parse_value(" NCHW ", "text") == "NCHW"
    assert parse_value("None", "text") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(2L, 2L)", (2, 2)),
        ("True", True),
        ("none", None),
        ("0.10000000149011612", 0.1),
        ("7", 7),
        ("max", "max"),
        ("(a, b)", "(a, b)"),
        ("", None),
    ],
)
def test_the_type_of_an_undeclared_parameter_is_guessed(text: str, value: ParamValue) -> None:
    assert guess_value(text) == value


@given(st.text(), st.sampled_from(["bool", "int", "float", "tuple", "text"]))
def test_any_text_is_a_value_or_refused(text: str, kind: str) -> None:
    guess_value(text)
    try:
        value = parse_value(text, kind)
    except LiteralError:
        return
    expected = {"bool": bool, "int": int, "float": float, "tuple": tuple, "text": str}[kind]
    assert value is None or type(value) is expected
