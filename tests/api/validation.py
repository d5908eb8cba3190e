"""Checks a document against its schema."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator


def faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    """Return the places at which a value breaks the schema, whose definitions are in the root."""
    errors = Draft202012Validator({**root, **schema}).iter_errors(value)
    return [f"{it.json_path}: {it.message}" for it in errors]
