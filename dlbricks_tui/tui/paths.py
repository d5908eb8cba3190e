"""Paths as a person types them: completed like a shell does, as far as they lead to what is wanted."""

import os
from pathlib import Path

from dlbricks_tui.models.library import MODEL_SUFFIXES

MODELS = MODEL_SUFFIXES
# Whatever a file is called, its name ends in nothing.
ANY_FILE = ("",)


def completions(typed: str, endings: tuple[str, ...] = MODELS) -> tuple[str, ...]:
    """What the typed beginning may become: folders, with a slash at their end, then files whose names end so."""
    folder, _, beginning = typed.rpartition("/")
    where = Path(f"{folder}/" if "/" in typed else ".").expanduser()
    head = typed[: len(typed) - len(beginning)]
    folders, files = list[str](), list[str]()
    try:
        with os.scandir(where) as found:
            for entry in found:
                if not entry.name.startswith(beginning) or (entry.name.startswith(".") and not beginning):
                    continue
                if entry.is_dir():
                    folders.append(f"{head}{entry.name}/")
                elif entry.name.endswith(endings):
                    files.append(f"{head}{entry.name}")
    except OSError:
        # While one types, most paths lead nowhere yet.
        return ()
    return (*sorted(folders), *sorted(files))


def common_beginning(offered: tuple[str, ...]) -> str:
    """As much as all of them have in common."""
    first, last = min(offered, default=""), max(offered, default="")
    return next((first[:place] for place, sign in enumerate(first) if last[place : place + 1] != sign), first)
