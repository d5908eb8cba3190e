from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.printable import printable, printable_lines


def test_a_printable_text_stays_as_it_is() -> None:
    assert printable("conv1 漢 [red]") == "conv1 漢 [red]"


def test_control_codes_are_spelled_out() -> None:
    assert printable("a\x1b]0;title\x07b\r\nc\x9b2J\u202e\x7f") == r"a\x1b]0;title\x07b\r\nc\x9b2J\u202e\x7f"


def test_line_breaks_can_be_kept() -> None:
    assert printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()
