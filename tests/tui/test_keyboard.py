"""Keys are parsed from the bytes of a terminal, and handled one after another."""

import pytest
from textual.drivers import linux_driver
from textual.events import Key
from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.dialogs.commands import HelpScreen, PaletteScreen
from dlbricks_tui.tui.keys.keyboard import KeyParser
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import MEASURED_ONLY, app_on, running, settled


def keys(written: str) -> list[tuple[str, str | None]]:
    return [(event.key, event.character) for event in KeyParser().feed(written) if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("x", ["x"]),
        # Alt with a letter, before a special key and before a letter.
        ("\x1bx\x1b[15~\x18", ["alt+x", "f5", "ctrl+x"]),
        ("\x1bxq", ["alt+x", "q"]),
        ("\x1b,", ["alt+comma"]),
        ("\x1bX", ["alt+shift+x"]),
        # Sequences known to Textual are parsed as before.
        ("\x1b[A\x1bOP\x1b[[A\x1b\t", ["up", "f1", "f1", "shift+tab"]),
        (
            "\x1b[97;5u\x1b[15;2~\x1b[1;5C\x1b[3~\x1b[25~\x1b[Z",
            ["ctrl+a", "shift+f5", "ctrl+right", "delete", "f13", "shift+tab"],
        ),
        # Unknown special keys, and answers of terminals.
        ("\x1b[99~\x1b[120~j", ["j"]),
        ("\x1b[27;99;5~\x1b[1;99Z\x1bOzj", ["j"]),
        ("\x1b[?62;22cj", ["j"]),
        # The mouse reports of old terminals.
        ("\x1b[M !!j\x1b[32;10;10Mj", ["j", "j"]),
    ],
)
def test_each_key_sequence_is_one_key_and_unknown_sequences_type_nothing(written: str, expected: list[str]) -> None:
    assert [key for key, _ in keys(written)] == expected


def test_a_letter_with_alt_types_nothing() -> None:
    assert keys("\x1bx") == [("alt+x", None)]


def test_mouse_events_and_mode_reports_are_still_parsed() -> None:
    told = [type(event).__name__ for event in KeyParser().feed("\x1b[<0;3;4M\x1b[?2026;1$y\x1b[200~\x1b[99~\x1b[201~")]
    assert told[:2] == ["MouseDown", "TerminalSupportsSynchronizedOutput"]


async def typed(pilot: Pilot[None], *keys: str) -> None:
    """Type all keys before the first of them is handled."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))
    await settled(pilot)


async def test_letters_typed_quickly_go_into_the_search_or_the_box_that_the_key_before_them_opens(
    measured: DataFolder,
) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        assert vars(linux_driver)["XTermParser"] is KeyParser
        await typed(pilot, "slash", *"vgg16")
        panel = pilot.app.screen.query_one(ModelsPanel)
        assert panel.search_line.value == "vgg16" and [it.name for it in panel._list.items] == ["vgg16"]
        await typed(pilot, "escape", "G", "slash", *"alex", "enter", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and pilot.app.screen._spec is not None
        assert pilot.app.screen._spec.source.name == "alexnet"
        await typed(pilot, "colon", *"quit")
        assert isinstance(pilot.app.screen, PaletteScreen)
        assert pilot.app.screen.query_one(Field).value == "quit"
        await typed(pilot, "escape", "question_mark", "slash", *"run")
        assert isinstance(pilot.app.screen, HelpScreen) and pilot.app.screen.search_line.value == "run"
