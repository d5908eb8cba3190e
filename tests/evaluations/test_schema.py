"""The JSON schema: it is valid, it names what the dataclasses have, and every part of it has words for messages."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dlbricks_tui.evaluations.evaluation import TABLES, Evaluation, schema
from dlbricks_tui.evaluations.validation import allowed
from dlbricks_tui.runtime.runtime import TUNING_PREFIXES
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.loads import ARRIVAL, SERVING
from dlbricks_tui.settings.measuring import END_TO_END, ENOUGH, METHOD
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import PRECISION, VARIANT

# The keywords that have words in messages, or say nothing about values.
KNOWN_KEYWORDS = {
    *("$schema", "title", "description", "patternErrorMessage"),
    *("type", "enum", "const", "anyOf", "pattern", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("items", "minItems", "maxItems"),
    *("properties", "required", "additionalProperties", "propertyNames", "maxProperties"),
}


def parts_of(part: Any) -> Iterator[dict[str, Any]]:
    """Yield each part of the schema that describes a value."""
    yield part
    inner = [*part.get("properties", {}).values(), *part.get("anyOf", ())]
    inner += [
        part[key] for key in ("items", "propertyNames", "additionalProperties") if isinstance(part.get(key), dict)
    ]
    for each in inner:
        yield from parts_of(each)


def test_each_field_of_an_evaluation_has_a_table_with_the_fields_of_its_dataclass() -> None:
    assert {"name", "about", "sha256", *(it.field for it in TABLES.values())} == {it.name for it in fields(Evaluation)}
    for table in TABLES.values():
        assert set(table.keys) == {it.name for it in fields(table.kind)}


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        ("runtime", VARIANT[1:]),
        ("measure", (LEVEL, *CUTTING, METHOD, END_TO_END, *ENOUGH)),
        ("scenario", (*ARRIVAL, *SERVING)),
        ("result", VARIANT[2:]),
    ],
)
def test_a_key_that_is_a_setting_takes_what_the_setting_takes(table: str, settings: tuple[Setting[Any], ...]) -> None:
    for setting in settings:
        key = schema_of(table)["properties"][setting.field]
        told = key["anyOf"][0] if "anyOf" in key else key
        assert key["description"].lower().startswith(setting.about.lower())
        # A model that is quantised in its file has a precision that nobody asks for.
        enum = {"enum": [*setting.kind.schema["enum"], "file"]} if setting is PRECISION else {}
        assert {name: told[name] for name in setting.kind.schema} == {**setting.kind.schema, **enum}


def schema_of(table: str) -> Any:
    part = schema()["properties"][table]
    return part.get("items", part)


def test_an_evaluation_tunes_frameworks_by_all_prefixes_of_the_program() -> None:
    pattern = schema_of("runtime")["properties"]["variables"]["propertyNames"]["pattern"]
    assert all(re.search(pattern, f"{prefix}X") for prefix in TUNING_PREFIXES)
    assert not re.search(pattern, "LD_X") and not re.search(pattern, "ORT_PATH")


def test_the_schema_is_valid_and_takes_no_other_keys_and_describes_each_with_a_limit() -> None:
    assert schema()["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema())
    for part in parts_of(schema()):
        if "properties" in part:
            assert part["additionalProperties"] is False
            for key in part["properties"].values():
                assert key["description"]
        if part.get("type") == "object":
            assert "properties" in part or "maxProperties" in part
        # Every list and text has a limit, and every part words for messages.
        if part.get("type") == "array":
            assert "maxItems" in part
        if part.get("type") == "string":
            assert "maxLength" in part or part["pattern"].endswith("}$") or part["pattern"].startswith("^(==")
        assert set(part) <= KNOWN_KEYWORDS
        if "pattern" in part:
            assert part["pattern"].startswith("^") and part["pattern"].endswith("$")
            assert part["patternErrorMessage"]
        elif "propertyNames" not in part:
            assert allowed(part)
