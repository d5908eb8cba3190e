"""The models that a report is about, and how they are called where there is little room."""

import re
from dataclasses import dataclass

from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.printable import printable

LONGEST_LABEL = 40
# What all names of Table 1 end in tells no two of them apart that their numbers do not.
_TRAINED_ON = re.compile(r" Trained on .*")


@dataclass(frozen=True, slots=True)
class Subject:
    """A model by its name; those of Table 1 have its number and their task."""

    name: str
    table1_id: str | None = None
    task: str | None = None

    @property
    def label(self) -> str:
        """Number and short name, as the axes of figures have room for."""
        short = printable(_TRAINED_ON.sub("", self.name))
        text = short if self.table1_id is None else f"{self.table1_id} {short}"
        return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1].rstrip()}…"

    @property
    def mark(self) -> str:
        """What stands where not even a short name fits: the number, or the beginning of the name."""
        return self.table1_id or printable(self.name)[:8]


def subject_of(source: ModelSource) -> Subject:
    """A model of the library as a subject."""
    return Subject(source.name, source.table1_id, source.task)
