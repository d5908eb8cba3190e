"""One snapshot per question: its documents as text, with the styles that are not usual behind each line.

`UPDATE_SNAPSHOTS=1 make test` writes the snapshots anew.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line
from dlbricks_tui.documents.look import TEXT
from dlbricks_tui.documents.parts import Part

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"


def check(name: str, cases: Mapping[str, Iterable[Part]], width: int = 100) -> None:
    """Compare documents, each below the name of its case, with the snapshot of that name."""
    shown = [line for title, parts in cases.items() for line in (f"## {title}", *_lines(parts, width), "")]
    path, seen = FOLDER / f"{name}.txt", "\n".join(shown)
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    assert seen.split("\n") == path.read_text(encoding="utf-8").split("\n"), f"another {path.name}; {UPDATE}=1 keeps it"


def _lines(parts: Iterable[Part], width: int) -> list[str]:
    return [_shown(line) for line in laid_out(parts, width, TEXT)]


def _shown(line: Line) -> str:
    text = "".join(span.text for span in line).rstrip()
    styles = dict.fromkeys(span.style for span in line if span.text.strip() and span.style != "text")
    return f"{text}  <{' '.join(styles)}>" if styles else text
