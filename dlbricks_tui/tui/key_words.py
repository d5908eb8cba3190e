"""Words that name keys: which keys those are is looked up when the words are shown, as a person may change them."""

import re
from dataclasses import dataclass

from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span

_NAMED = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Hint:
    """A line of text in which `{models.open}` stands for the key of that action."""

    text: str
    style: str = "text"

    @property
    def line(self) -> Line:
        """The line with the keys of now, which stand out."""
        parts = enumerate(_NAMED.split(self.text))
        return tuple(Span(key(part), "accent") if at % 2 else Span(part, self.style) for at, part in parts if part)


def spelled(text: str) -> str:
    """The text with the keys of now in place of the actions that it names, as a hint does."""
    return _NAMED.sub(lambda found: key(found[1]), text)
