"""Checks a document against the part of JSON schema that `schema_of` uses."""

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], where: str = "$") -> list[str]:
    """Return the places at which a value breaks the schema."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return faults(value, root["$defs"][name], root, where)
    if "anyOf" in schema:
        return [] if any(not faults(value, each, root) for each in schema["anyOf"]) else [f"{where}: {value!r}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r}"]
    kinds = _TYPES[schema["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if isinstance(value, list):
        return _faults_in_list(value, schema, root, where)
    if isinstance(value, dict):
        return _faults_in_object(value, schema, root, where)
    return []


def _faults_in_list(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], where: str) -> list[str]:
    items = schema.get("prefixItems", [schema.get("items")] * len(value))
    if len(items) != len(value):
        return [f"{where}: {len(value)} items"]
    each = enumerate(zip(value, items, strict=True))
    return [fault for number, (it, its) in each for fault in faults(it, its, root, f"{where}[{number}]")]


def _faults_in_object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], where: str
) -> list[str]:
    if "properties" not in schema:
        its = schema["additionalProperties"]
        return [fault for name, it in value.items() for fault in faults(it, its, root, f"{where}.{name}")]
    properties = schema["properties"]
    found = [f"{where}.{name} is missing" for name in schema["required"] if name not in value]
    for name, it in value.items():
        found += faults(it, properties[name], root, f"{where}.{name}") if name in properties else [f"{where}.{name}"]
    return found
