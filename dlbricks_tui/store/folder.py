"""Which files of a store folder make up the store.

`results-N.json` is the TinyDB file that a compaction left, `journal-N.jsonl` what came after it; a store that was never
compacted has journal 0 alone. The generation with the highest number counts, the one before it is kept.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.store.errors import cannot_read

_NUMBERED = re.compile(r"(results|journal)-(\d+)\.jsonl?")


def base_name(number: int) -> str:
    """The TinyDB file of a generation."""
    return f"results-{number}.json"


def journal_name(number: int) -> str:
    """What came after the TinyDB file of a generation."""
    return f"journal-{number}.jsonl"


@dataclass(frozen=True, slots=True)
class Layout:
    """The numbers of the generations that have a TinyDB file, and of those that have a journal."""

    bases: frozenset[int]
    journals: frozenset[int]

    @property
    def newest(self) -> int:
        """The number of the generation that counts."""
        return max(self.bases | self.journals, default=0)

    @property
    def files(self) -> tuple[str, ...]:
        """What to read, in this order; the last one, which need not exist yet, takes new records.

        A journal never comes before its base, so that one without is what is left of a generation: the generations
        before it are read in its place.
        """
        base = max(self.bases, default=0)
        names = [base_name(base)] if self.bases else []
        return (*names, *map(journal_name, sorted({*(each for each in self.journals if each >= base), self.newest})))

    @property
    def files_before(self) -> tuple[str, ...]:
        """What held the same as the newest TinyDB file, before it was compacted."""
        newest = max(self.bases, default=0)
        older = Layout(
            frozenset(each for each in self.bases if each < newest),
            frozenset(each for each in self.journals if each < newest),
        )
        return older.files if older.bases or older.journals else ()

    @property
    def missing(self) -> str | None:
        """The TinyDB file that once was there and without which results are lost."""
        if self.bases or not self.journals or 0 in self.journals:
            return None
        return base_name(min(self.journals))


def layout_of(folder: Path) -> Layout:
    """What the folder holds; nothing where it does not exist."""
    found: dict[str, set[int]] = {"results": set(), "journal": set()}
    try:
        names = os.listdir(folder)  # noqa: PTH208 - asked at every look-up: names are all that is needed
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise cannot_read(folder, error) from error
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            found[match[1]].add(int(match[2]))
    return Layout(frozenset(found["results"]), frozenset(found["journal"]))
