"""Over SSH the workbench writes less, and less often."""

import os

import pytest

from dlbricks_tui.config.reading import Sources
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui import door
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.diff_driver import DiffDriver
from dlbricks_tui.tui.door import Connection
from dlbricks_tui.tui.session import Session

SSH = {"SSH_TTY": "/dev/pts/9"}
REMOTE = Connection(mouse=False, is_slow=True, repaints_per_second=15, poll_factor=4.0)


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_TTY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    # Set first, so that monkeypatch removes it afterwards in every case.
    monkeypatch.setitem(os.environ, "TEXTUAL_FPS", "")
    monkeypatch.delitem(os.environ, "TEXTUAL_FPS")


class Recorded:
    """Replaces the application, and records how it was opened."""

    fault = None
    return_code = 7
    opened: "list[Recorded]"

    def __init__(self, session: Session, *, sources: Sources, connection: Connection, **_: object) -> None:
        self.sources = sources
        self.connection = connection
        self.mouse: bool | None = None
        self.repaints = os.environ.get("TEXTUAL_FPS")

    def run(self, *, mouse: bool) -> None:
        self.mouse = mouse
        self.opened.append(self)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, Connection()), (SSH, REMOTE), ({**SSH, "DLBRICKS_WORKBENCH_REMOTE": "off"}, Connection())],
    ids=["here", "there", "there, but asked not to"],
)
def test_the_workbench_opens_with_the_settings_of_the_connection(
    environment: dict[str, str], expected: Connection, new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.tui.app.DlbricksApp", Recorded)
    monkeypatch.setattr(Recorded, "opened", [], raising=False)
    sources = Sources(new.config, environment)
    assert door.open_workbench(new, sources) == Recorded.return_code
    (opened,) = Recorded.opened
    assert (opened.connection, opened.mouse, opened.sources) == (expected, expected.mouse, sources)
    assert opened.repaints == str(expected.repaints_per_second)


def test_a_given_repaint_rate_is_kept(new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.tui.app.DlbricksApp", Recorded)
    monkeypatch.setattr(Recorded, "opened", [], raising=False)
    monkeypatch.setitem(os.environ, "TEXTUAL_FPS", "30")
    door.open_workbench(new, Sources(new.config, SSH))
    assert Recorded.opened[0].repaints == "30"


def test_a_slow_connection_writes_only_changes_and_polls_less_often(new: DataFolder) -> None:
    here, there = (DlbricksApp(Session(new), connection=connection) for connection in (Connection(), REMOTE))
    assert (here.driver_class is DiffDriver, there.driver_class is DiffDriver) == (False, True)
    assert (here.has_class("-slow-link"), there.has_class("-slow-link")) == (False, True)
    # There are no animations on any connection.
    assert (here.animation_level, there.animation_level) == ("none", "none")
    assert (here._runs.watch.poll_factor, there._runs.watch.poll_factor) == (1.0, 4.0)
