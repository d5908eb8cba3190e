"""Change one setting in the config file; comments and order stay as the user wrote them."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.config.config import ConfigError
from dlbricks_tui.regular_files import read_text
from dlbricks_tui.settings.setting import plain


def change(file: Path, name: str, value: Any) -> None:
    """Set a setting in the file; None removes it, so that the default applies."""
    try:
        with in_turn(file):
            before = read_text(file) if file.exists() else ""
            write_atomically(file, changed(before, name, value, str(file)))
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text: correct it first") from None


def changed(text: str, name: str, value: Any, path: str) -> str:
    """Return the text of the file with another value for a setting."""
    # Loaded here: only a change needs it.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    section, _, key = name.rpartition(".")
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"{path} is not TOML: {error}; correct it first") from None
    if section not in document:
        if value is None:
            return text
        document[section] = tomlkit.table()
    table = document[section]
    if not isinstance(table, MutableMapping):
        raise ConfigError(f"{path}: {section} is not a section: correct it first")
    if value is None:
        table.pop(key, None)
    else:
        table[key] = plain(value)
    return tomlkit.dumps(document)
