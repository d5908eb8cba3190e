"""The JSON schema of evaluations: the one description of the format, for editors and for the checks."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]

_FILE = Path(__file__).with_name("schema.json")


def schema_text() -> str:
    """Return the schema as JSON text, for editors that read TOML files with one."""
    return _FILE.read_text(encoding="utf-8")


@cache
def schema() -> Schema:
    """Return the schema of a file."""
    found: Schema = json.loads(schema_text())
    return found


def resolved(part: Schema) -> Schema:
    """Return a part of the schema with the definition that it refers to."""
    while "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        rest = {key: value for key, value in part.items() if key != "$ref"}
        part = {**schema()["$defs"][name], **rest}
    return part
