from pathlib import Path

import pytest

from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.load import HostLoad, LoadMeter
from dlbricks_tui.wording.runs import load_in_words


def stat(*cores: tuple[int, int, int]) -> str:
    """Return the kernel's file for cores with so many ticks of work, of rest and stolen ones."""
    lines = [f"cpu{at} {work} 0 0 {rest} 0 0 0 {stolen} 0 0" for at, (work, rest, stolen) in enumerate(cores)]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 17 0"])


class Host:
    """A host whose time and processor times a test sets."""

    def __init__(self, root: Path) -> None:
        self.now = 100.0
        self._file = root / "proc" / "stat"
        self._file.parent.mkdir()
        self.meter = LoadMeter(HostFiles(root), lambda: self.now)

    def after(self, seconds: float, text: str) -> HostLoad | None:
        self.now += seconds
        self._file.write_text(text)
        return self.meter.look()


def test_the_load_is_that_between_two_looks(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert host.after(0, stat((100, 900, 0), (0, 1000, 0))) is None
    found = host.after(1, stat((190, 910, 0), (10, 1070, 20)))
    assert found == HostLoad((0.9, 0.1), (0.0, 0.2)) and (found.cores, found.busy_cores) == (2, 1.0)
    assert load_in_words(found) == "1.0 of 2 cores busy, 10 % taken by other guests"


def test_the_host_is_looked_at_once_in_a_second(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.after(0, stat((0, 0, 0)))
    first = host.after(1, stat((50, 50, 0)))
    assert host.after(0.9, stat((150, 50, 0))) is first
    assert host.after(0.1, stat((150, 50, 0))) == HostLoad((1.0,), (0.0,))


def test_a_core_that_was_switched_on_counts_from_the_next_look_on(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.after(0, stat((0, 100, 0)))
    found = host.after(1, stat((50, 150, 0), (5, 5, 0)))
    assert found == HostLoad((0.5,), (0.0,)) and load_in_words(found) == "0.5 of 1 core busy"


@pytest.mark.parametrize("text", ["", "cpu0 1 2", "cpu0 a b c d e f g h", "intr 1"])
def test_a_host_that_does_not_tell_has_no_load(tmp_path: Path, text: str) -> None:
    host = Host(tmp_path)
    host.after(0, text)
    assert host.after(1, text) is None
