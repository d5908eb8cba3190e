"""The JSON schema: it is valid, it names what the dataclasses have, and every part of it has words for messages."""

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.evaluations.evaluation import (
    FORMAT,
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.evaluations.faults import allowed
from dlbricks_tui.evaluations.schema import resolved, schema
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.runtime import MOST_THREADS, TUNING_PREFIXES
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import MOST_IN_A_BATCH, InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind

DEFINITIONS = schema()["$defs"]
SECTIONS = {
    "model": EvaluatedModel,
    "runtime": EvaluatedRuntime,
    "measure": Measuring,
    "scenario": EvaluatedScenario,
    "system": Requirements,
    "result": RecordedResult,
}
# The keywords that have words in messages, or say nothing about values.
KNOWN_KEYWORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "patternErrorMessage"),
    *("type", "enum", "const", "anyOf", "pattern", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("items", "minItems", "maxItems"),
    *("properties", "required", "additionalProperties", "propertyNames", "maxProperties"),
}


def parts_of(part: Any) -> Iterator[dict[str, Any]]:
    """Yield each part of the schema that describes a value."""
    yield part
    inner = [*part.get("properties", {}).values(), *part.get("$defs", {}).values(), *part.get("anyOf", ())]
    inner += [
        part[key] for key in ("items", "propertyNames", "additionalProperties") if isinstance(part.get(key), dict)
    ]
    for each in inner:
        yield from parts_of(each)


def test_the_schema_is_one_of_draft_2020_12() -> None:
    assert schema()["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(("name", "kind"), SECTIONS.items(), ids=SECTIONS)
def test_a_table_has_the_fields_of_its_dataclass(name: str, kind: Any) -> None:
    assert list(DEFINITIONS[name]["properties"]) == [each.name for each in fields(kind)]


def test_the_file_has_a_table_for_each_field_of_an_evaluation() -> None:
    of_file = [key for key in schema()["properties"] if key != "format"]
    tables = dict(zip(of_file, (each.name for each in fields(Evaluation) if each.name != "sha256"), strict=True))
    assert tables == {
        "name": "name",
        "about": "about",
        "model": "models",
        "runtime": "runtimes",
        "measure": "measuring",
        "scenario": "scenarios",
        "system": "system",
        "result": "results",
    }
    assert schema()["properties"]["format"]["const"] == FORMAT


@pytest.mark.parametrize(
    ("table", "key", "words"),
    [
        ("measure", "level", Level),
        ("measure", "cut", Cut),
        ("measure", "order", LayerOrder),
        ("measure", "method", Method),
        ("scenario", "kind", ScenarioKind),
        ("result", "precision", Precision),
        ("result", "instructions", InstructionSet),
        ("result", "optimisation", Optimisation),
    ],
)
def test_an_enumeration_has_the_words_of_the_program(table: str, key: str, words: type[Enum]) -> None:
    assert set(resolved(DEFINITIONS[table]["properties"][key])["enum"]) == {each.value for each in words}


def test_processors_have_every_instruction_set_but_the_word_for_all() -> None:
    words = {each.value for each in InstructionSet if each is not InstructionSet.ALL}
    assert set(DEFINITIONS["processor_instructions"]["enum"]) == words


def test_the_frameworks_and_limits_are_those_of_the_program() -> None:
    assert DEFINITIONS["framework"]["enum"] == list(TRAITS)
    assert DEFINITIONS["threads"]["maximum"] == MOST_THREADS
    assert DEFINITIONS["batch"]["maximum"] == MOST_IN_A_BATCH
    pattern = DEFINITIONS["variables"]["propertyNames"]["pattern"]
    assert set(pattern.split(")(")[1].split(")")[0].split("|")) == set(TUNING_PREFIXES)


def test_no_table_of_the_format_takes_other_keys_and_every_key_is_described() -> None:
    for part in parts_of(schema()):
        if "properties" in part:
            assert part["additionalProperties"] is False
            for key in part["properties"].values():
                assert resolved(key).get("description") or "enum" in resolved(key) or "maximum" in resolved(key)
        if part.get("type") == "object":
            assert "properties" in part or "maxProperties" in part


def test_every_list_and_text_has_a_limit() -> None:
    for part in parts_of(schema()):
        if part.get("type") == "array":
            assert "maxItems" in part
        if part.get("type") == "string":
            assert "maxLength" in part or part["pattern"].endswith("}$") or part["pattern"].startswith("^(==")


def test_every_part_has_words_for_messages() -> None:
    for part in parts_of(schema()):
        assert set(part) <= KNOWN_KEYWORDS
        if "pattern" in part:
            assert part["pattern"].startswith("^") and part["pattern"].endswith("$")
            assert part["patternErrorMessage"]
        elif "propertyNames" not in part:
            assert allowed(part)
