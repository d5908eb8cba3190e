"""Spell out control codes and line breaks in names from files, which could control a terminal."""


def printable(text: str) -> str:
    """Return the text as one line: characters that are not printable are spelled out, ESC as `\\x1b`."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def printable_lines(text: str) -> str:
    """Return the text with its line breaks kept and all other unprintable characters spelled out."""
    return "\n".join(printable(line) for line in text.split("\n"))
