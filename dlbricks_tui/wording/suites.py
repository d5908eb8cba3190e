"""Suites and their results in words, for the command line and the TUI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.share.suites.exporting import Assembled, OmittedBrick
    from dlbricks_tui.share.suites.results_file import SuiteImport


def suite_contents(assembled: Assembled, decoys: int) -> str:
    """Return the numbers of bricks in a suite: `28 bricks of yours among 67 of 3 decoys`."""
    mine, others = len(assembled.key.meanings), len(assembled.key.decoys)
    return f"{counted(mine, 'brick')} of yours among {others} of {counted(decoys, 'decoy')}"


def untravelled(bricks: Iterable[OmittedBrick]) -> list[str]:
    """Return a line for each brick that a suite cannot hold."""
    return [f"cannot travel: {it.label}: it {it.reason}" for it in bricks]


def import_outcome(found: SuiteImport) -> str:
    """Return what an import has brought: `28 new bricks of yours, 0 known; 0 failed there, 0 not measured`."""
    told = f"{counted(found.new, 'new brick')} of yours, {found.known} known"
    return f"{told}; {found.failed} failed there, {found.missing} not measured"
