"""Changes one setting in the config file and leaves the rest of it as the person wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.config.document import line_of, statements
from dlbricks_tui.config.errors import ConfigError
from dlbricks_tui.config.option import Value
from dlbricks_tui.config.options import shown


def change(file: Path, name: str, value: Value) -> None:
    """Gives a setting another value in the file; None takes it out, so that the default counts."""
    try:
        with in_turn(file):
            before = file.read_text(encoding="utf-8") if file.exists() else ""
            write_atomically(file, changed(before, name, value, str(file)))
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text: put it right first") from None


def changed(text: str, name: str, value: Value, path: str) -> str:
    """The text of the file with another value; raises where it is written so that only a person can change it."""
    lines = text.splitlines()
    section, _, key = name.rpartition(".")
    here, head = line_of(name, text), line_of(section, text)
    if here is not None:
        lines[here - 1 : here] = [_line(lines[here - 1], value)] if value is not None else []
    elif value is not None and head is not None:
        lines.insert(head, f"{key} = {shown(value)}")
    elif value is not None:
        lines += (
            ["", f"[{section}]", f"{key} = {shown(value)}"] if lines else [f"[{section}]", f"{key} = {shown(value)}"]
        )
    result = "".join(f"{line}\n" for line in lines)
    wanted = {each: said for each, said in _values(text, path).items() if each != name}
    if value is not None:
        wanted[name] = value
    # TOML can say the same in many ways: what came of it is what counts.
    if not _says(result, wanted, path):
        raise ConfigError(f"{path}: {name} is written in a way that only you can change: {_advice(key, value)}")
    return result


def _says(text: str, wanted: Mapping[str, object], path: str) -> bool:
    try:
        return _values(text, path) == wanted
    except ConfigError:
        return False


def _advice(key: str, value: Value) -> str:
    return "take it out" if value is None else f"write `{key} = {shown(value)}`"


def _line(before: str, value: Value) -> str:
    beginning = before[: before.index("=") + 1]
    return f"{beginning} {shown(value)}{_comment(before)}"


def _comment(line: str) -> str:
    """The comment at the end of a line, with the blanks before it."""
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            return line[len(line[:place].rstrip()) :]
    return ""


def _values(text: str, path: str) -> dict[str, object]:
    return {said.name: said.value for said in statements(text, path) if said.value != {}}
