"""Names in files may contain control codes; the application draws none of them."""

from textual.widgets import Input

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys.actions import DIALOG
from tests.cli.test_hostile_names import HOSTILE, SPELLED
from tests.tui.application import WIDE, app_on, press, running, settled


def drawn(app: DlbricksApp) -> str:
    """Return all texts that the terminal gets for the current screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_messages_fields_and_titles_of_frames_escape_markup_and_control_codes(new: DataFolder) -> None:
    app = app_on(new)
    async with running(app, WIDE) as pilot:
        app.notify(f"[red] {HOSTILE}", markup=False)
        await settled(pilot)
        assert [each.message for each in app._notifications] == [f"[red] {SPELLED}"]
        assert all(char.isprintable() for char in drawn(app).replace("\n", ""))
        await press(pilot, "escape", "o")
        app.screen.query_one(Input).value = HOSTILE
        await settled(pilot)
        shown = drawn(app)
        assert r"n\x1b]0;owned" in shown
        assert all(char.isprintable() for char in shown.replace("\n", ""))
        box = Box(f"Shapes of [red]{HOSTILE}", DIALOG)
        assert box._border_title is not None
        assert box._border_title.plain == f"Shapes of [red]{SPELLED}"
