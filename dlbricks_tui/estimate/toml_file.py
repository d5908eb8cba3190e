"""Reading of TOML files that users write, with messages about mistakes."""

import sys
from pathlib import Path
from typing import Any

from dlbricks_tui import regular_files
from dlbricks_tui.estimate.errors import EstimateError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_text(path: Path, what: str) -> str:
    """Return the text of a file; `what` names the file in error messages."""
    try:
        return regular_files.read_text(path)
    except OSError as error:
        raise EstimateError(f"{what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise EstimateError(f"{what} {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EstimateError(f"{where} is not TOML: {error}") from None
