"""Spell out control codes and line breaks in names from files, which could control a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def printable(text: str) -> str:
    """Return the text as one line: characters that are not printable are spelled out, ESC as `\\x1b`."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def printable_lines(text: str) -> str:
    """Return the text with its line breaks kept and all other unprintable characters spelled out."""
    return "\n".join(printable(line) for line in text.split("\n"))


def shell_words(words: Iterable[str]) -> str:
    """Return words as a shell reads them back, in printable characters: `$'a\\xff'` for a name that is not UTF-8."""
    return " ".join(shlex.quote(it) if it.isprintable() else f"$'{''.join(map(_for_shell, it))}'" for it in words)


def _for_shell(char: str) -> str:
    if char.isprintable():
        return f"\\{char}" if char in "\\'" else char
    errors = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors=errors))
