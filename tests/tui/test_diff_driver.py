"""The reduced output is checked with a small terminal that draws both outputs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual._compositor import CompositorUpdate
from textual.drivers.headless_driver import HeadlessDriver

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.diff_driver import ScreenDiff, look_of
from tests.tui.application import MEASURED_ONLY, app_on, press, running

WIDTH, HEIGHT = 20, 6


class Paper:
    """A minimal terminal: the text and the style of each cell."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, object]] = {}
        self.row = self.column = 0
        self.style = ""

    def write(self, data: str) -> None:
        for token in re.finditer(r"\x1b\[([0-9;]*)([mHC])|(\r?\n)|([^\x1b\r\n])|\x1b\[\?\d+[hl]", data):
            numbers, kind, line, character = token.groups()
            if kind == "m":
                self.style = "" if numbers in ("", "0") else f"{self.style};{numbers}"
            elif kind == "H":
                self.row, self.column = (int(each) - 1 for each in numbers.split(";"))
            elif kind == "C":
                self.column += int(numbers)
            elif line:
                self.row, self.column = self.row + 1, 0
            elif character:
                self._put(character)

    def _put(self, character: str) -> None:
        look = look_of(self.style)
        shown: object = look
        if character == " " and not look.flags & {"4", "7", "9"}:
            shown = look.ground
        for each in range(cell_len(character)):
            self.cells[self.row, self.column + each] = (character if each == 0 else "", shown)
        self.column += cell_len(character)


def place(row: int, column: int) -> str:
    return f"\x1b[{row + 1};{column + 1}H"


STYLES = st.sampled_from(["1", "38;5;75;48;5;236", "1;31", "38;2;1;2;3", "7", "4;92;40", "97;104", "39;49"])
WORDS = st.text("ab ─█é漢", min_size=1, max_size=4)
DRAWN = st.builds(
    lambda row, column, pieces: (
        place(row, column) + "".join(f"\x1b[{style}m{word}\x1b[0m" for style, word in pieces) + "\r\n\x1b[31mx\x1b[0m"
    ),
    st.integers(0, HEIGHT - 2),
    st.integers(0, WIDTH // 2),
    st.lists(st.tuples(STYLES, WORDS), min_size=1, max_size=3),
)


@given(st.lists(DRAWN, min_size=1, max_size=12))
def test_the_reduced_output_draws_the_same_screen(drawn: list[str]) -> None:
    diff, expected, found = ScreenDiff(), Paper(), Paper()
    for data in drawn:
        expected.write(data)
        found.write(diff.reduced(data))
        assert found.cells == expected.cells
        assert (found.row, found.column) == (expected.row, expected.column)


@pytest.mark.parametrize(
    ("style", "flags", "ink", "ground"),
    [
        ("", set(), "39", "49"),
        ("1;38;5;231;48;5;233", {"1"}, "38;5;231", "48;5;233"),
        ("4;38;2;1;2;3", {"4"}, "38;2;1;2;3", "49"),
        ("31;44", set(), "31", "44"),
        ("97;104;9", {"9"}, "97", "104"),
        ("1;4;31;0;7", {"7"}, "39", "49"),
        ("1;7;22", {"7"}, "39", "49"),
        ("31;42;39;49", set(), "39", "49"),
    ],
)
def test_styles_are_parsed_as_terminals_parse_them(style: str, flags: set[str], ink: str, ground: str) -> None:
    assert look_of(style) == (frozenset(flags), ink, ground)


def test_only_changed_cells_are_written() -> None:
    diff = ScreenDiff()
    diff.reduced(f"{place(0, 0)}\x1b[31mone two three\x1b[0m{place(0, 0)}")
    assert diff.reduced(f"{place(0, 0)}\x1b[31mone TWO three\x1b[0m") == "\x1b[4CTWO\x1b[6C"


def test_sequences_that_draw_nothing_pass_unchanged() -> None:
    diff = ScreenDiff()
    diff.reduced(f"{place(0, 0)}x{place(0, 0)}")
    for sequence in (
        "\x1b[?2026h",
        "\x1b]52;c;YQ==\x07",
        "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\",
        "\x1b[?25l",
        "\x1b[>1u",
    ):
        assert diff.reduced(sequence) == sequence


def test_switching_the_screen_buffer_redraws_everything() -> None:
    diff, data = ScreenDiff(), f"{place(0, 0)}\x1b[31mtext\x1b[0m{place(0, 0)}"
    first = diff.reduced(data)
    diff.forget()
    assert diff.reduced(data) == first
    for upheaval in ("\x1b[?1049h", "\x1b[2J", "\x1bc"):
        diff.reduced(upheaval)
        assert "text" in diff.reduced(data)


async def test_the_workbench_is_drawn_the_same_with_an_eighth_of_the_bytes(measured: DataFolder) -> None:
    diff, expected, found = ScreenDiff(), Paper(), Paper()
    sizes: list[tuple[int, int]] = []
    async with running(app_on(measured, MEASURED_ONLY), (120, 40)) as pilot:
        for key in ("j", "2", "1", "4", "1", "plus", "k"):
            await press(pilot, key)
            screen = pilot.app.screen
            data = screen._compositor.render_update(full=True).render_segments(pilot.app.console)  # type: ignore[union-attr]
            reduced = diff.reduced(data)
            expected.write(data)
            found.write(reduced)
            sizes.append((len(data), len(reduced)))
            assert found.cells == expected.cells
    after_the_first = sizes[1:]
    assert sum(less for _, less in after_the_first) < 0.125 * sum(more for more, _ in after_the_first)


async def test_a_key_repairs_a_screen_that_other_output_has_overwritten(
    measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    diff, terminal = ScreenDiff(), Paper()

    def display(app: DlbricksApp, _: object, drawn: CompositorUpdate | None) -> None:
        if drawn is not None:
            terminal.write(diff.reduced(drawn.render_segments(app.console)))

    monkeypatch.setattr(DlbricksApp, "_display", display)
    # Tests have no terminal; the driver of a slow connection remembers what it has written.
    monkeypatch.setattr("dlbricks_tui.tui.app.DiffDriver", HeadlessDriver)
    monkeypatch.setattr(HeadlessDriver, "forget", lambda _: diff.forget(), raising=False)
    async with running(app_on(measured, MEASURED_ONLY), (120, 40)) as pilot:
        await press(pilot, "j")
        shown = dict(terminal.cells)
        assert len(shown) == 120 * 40
        for column in range(120):
            terminal.cells[5, column] = ("?", None)
        await press(pilot, "2", "1")
        assert terminal.cells != shown
        await press(pilot, "ctrl+l")
        assert terminal.cells == shown
