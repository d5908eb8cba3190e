"""JSON documents of dataclasses, with their schema, for programs; the room `documents` lays answers out for people."""

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", Path: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
# The metadata of a field that documents leave out where it is None.
OMIT_NONE = {"omit none": True}
Kind = TypeVar("Kind")


def document(value: Any) -> Any:
    """Return a dataclass, and all that is in it, as a JSON document."""
    if is_dataclass(value) and not isinstance(value, type):
        values = {each: getattr(value, each.name) for each in told_fields(type(value))}
        return {each.name: document(it) for each, it in values.items() if it is not None or not _is_optional(each)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [document(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): document(each) for name, each in value.items()}
    return value


def taken(kind: type[Kind], /, *sources: object, **others: Any) -> Kind:
    """Return a dataclass with these values, and else with attributes of the sources: the first that has one counts."""
    known = [it.name for it in fields(kind) if it.name not in others]  # type: ignore[arg-type]
    held = {name: [it for it in sources if hasattr(it, name)] for name in known}
    return kind(**{name: getattr(it[0], name) for name, it in held.items() if it}, **others)


def attributes_of(source: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object by their names."""
    return {name: getattr(source, name) for name in names}


@cache
def told_fields(kind: type) -> "list[Field[Any]]":
    """Return the fields of a dataclass in the order of documents: those of classes of other rooms come last."""
    others = [it for it in kind.__bases__ if is_dataclass(it) and not it.__module__.startswith(__package__)]
    shared = {it.name for base in others for it in fields(base)}
    return sorted(fields(kind), key=lambda it: it.name in shared)


def schema_of(kind: Any, *, many: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a dataclass's documents, or of lists of them."""
    definitions: dict[str, Any] = {}
    reference = _schema(kind, definitions)
    root = {"type": "array", "items": reference} if many else reference
    return {"$schema": _DIALECT, **root, "$defs": definitions}


def _is_optional(each: "Field[Any]") -> bool:
    return each.metadata == OMIT_NONE


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(each, definitions) for each in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is tuple:
        items = [_schema(each, definitions) for each in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            hints = get_type_hints(kind)
            definitions[kind.__name__] = {
                "type": "object",
                "description": (kind.__doc__ or "").strip().partition("\n")[0],
                "properties": {each.name: _schema(hints[each.name], definitions) for each in told_fields(kind)},
                "required": [each.name for each in told_fields(kind) if not _is_optional(each)],
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {"type": _PLAIN[kind]}
