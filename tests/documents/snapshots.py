"""One snapshot per question: its documents as text, with the styles that are not usual behind each line.

Of a picture its data is shown: its title, its sentence, its axes, and a line for each of its series, levels and rows.

`UPDATE_SNAPSHOTS=1 make test` writes the snapshots anew.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import astuple, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.documents.lines import Line
from dlbricks_tui.documents.parts import Part, Sentence
from dlbricks_tui.documents.pictures import Picture, Plot

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"


Case: TypeAlias = Iterable[Part | str] | Picture | str | None


def check(name: str, cases: Mapping[str, Case], width: int = 100) -> None:
    """Compare documents and texts, each below the name of its case, with the snapshot of that name."""
    shown = [line for title, parts in cases.items() for line in (f"## {title}", *_lines(parts, width), "")]
    path, seen = FOLDER / f"{name}.txt", "\n".join(shown)
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    assert seen.split("\n") == path.read_text(encoding="utf-8").split("\n"), f"another {path.name}; {UPDATE}=1 keeps it"


def _lines(case: Case, width: int) -> list[str]:
    if case is None:
        return ["no picture"]
    if isinstance(case, Picture):
        return _described(case)
    if isinstance(case, str):
        return [case]
    parts = [Sentence(it) if isinstance(it, str) else it for it in case]
    return [_shown(line) for line in laid_out(parts, width, TEXT)]


def _described(picture: Picture) -> list[str]:
    head = [picture.title, picture.says, f"across {_told(picture.across)}"]
    if isinstance(picture, Plot):
        signs = (*picture.series, *picture.levels, *picture.uprights)
        return [*head, f"up {_told(picture.up)}", *map(_told, signs), f"legend {_told(picture.legend)}"]
    return [*head, *map(_told, (*picture.rows, *picture.legend)), f"upright {_told(picture.upright)}"]


def _told(value: Any) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}{_told(astuple(value))}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_told, value))})"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _shown(line: Line) -> str:
    text = "".join(span.text for span in line).rstrip()
    styles = dict.fromkeys(span.style for span in line if span.text.strip() and span.style != "text")
    return f"{text}  <{' '.join(styles)}>" if styles else text
