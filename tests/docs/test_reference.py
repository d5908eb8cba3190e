"""Pages of reference are what their generators write, and their examples are taken and printed by the commands."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import CheckOptions, LanguageOptions, LayerGraph
from dlbricks_tui.api.demonstration import Demonstration, open_demonstration
from dlbricks_tui.cli.main import command_parser
from dlbricks_tui.cli.parser import with_hyphens_joined
from dlbricks_tui.store.columns import COLUMNS
from docs.generators.__main__ import PAGES
from docs.generators.documents import RECORDED, command_of, examples, printed
from docs.generators.examples import EXAMPLES as COMMAND_LINES
from docs.generators.fields import fields_of
from docs.generators.json_documents import LIKE
from docs.generators.markdown import MARK, REFERENCE, table
from docs.generators.parsers import commands
from tests.api.validation import faults


def test_every_command_has_an_example() -> None:
    # These print their help without an action.
    runnable = {it.name for it in commands()} - {"dlbricks results", "dlbricks suite"}
    assert set(COMMAND_LINES) == runnable


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_takes_its_example(name: str) -> None:
    program, *words = shlex.split(COMMAND_LINES[name])
    assert COMMAND_LINES[name].startswith(name)
    assert program == "dlbricks"
    assert callable(command_parser().parse_args(with_hyphens_joined(words)).handler)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_generator_writes(name: str) -> None:
    text = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    assert text == PAGES[name](), "make reference writes it anew"
    assert text.startswith(MARK)


def test_defaults_are_numbers_texts_and_names() -> None:
    shown = {it.name: it.default for kind in (LayerGraph, LanguageOptions, CheckOptions) for it in fields_of(kind)}
    assert shown.items() >= {"traits": "MXNET", "precisions": "(WeightPrecision.INT4,)", "processes": "3"}.items()


def test_options_say_percent_as_their_help_does() -> None:
    assert "such as 5%" in PAGES["commands"]() and "%%" not in PAGES["commands"]()


def test_cells_keep_bars_and_stay_on_one_line() -> None:
    assert table(("key", "action"), [("`|`", "open\n  it")]) == "| key | action |\n|---|---|\n| `\\|` | open it |\n"


EXAMPLES = examples()
COMMANDS = {it.name: it for it in commands() if it.has_json}
WITH_SCHEMA = {name: kind for name in EXAMPLES if (kind := COMMANDS[command_of(name)].document)}
# The keys of the others are compared with those of a call, on the same recorded results.
CALLED = [name for name in RECORDED if name not in WITH_SCHEMA]
# `models list` prints what `models` prints, and so on.
LISTS = {f"dlbricks {it} list" for it in ("models", "jobs", "runs", "systems", "fleet", "runtimes", "config")}


@pytest.fixture(scope="module")
def demonstration() -> Iterator[Demonstration]:
    with open_demonstration() as found:
        yield found


def form(value: Any) -> Any:
    """Return the keys of a document, and those inside; items of a list have the keys of any of them."""
    if isinstance(value, dict):
        return {name: form(it) for name, it in value.items()}
    if isinstance(value, list):
        forms = [form(it) for it in value if isinstance(it, dict | list)]
        return forms[:1]
    return None


def differences(shown: Any, found: Any, where: str = "$") -> list[str]:
    """Return the keys that only one of two forms has; a list may be empty, and a value null."""
    if isinstance(shown, dict) and isinstance(found, dict):
        common = shown.keys() & found.keys()
        inside = (differences(shown[name], found[name], f"{where}.{name}") for name in common)
        return [*(f"{where}.{name}" for name in shown.keys() ^ found.keys()), *(it for each in inside for it in each)]
    if isinstance(shown, list) and isinstance(found, list) and shown and found:
        return differences(shown[0], found[0], f"{where}[]")
    return []


def test_every_command_with_a_document_has_an_example() -> None:
    assert set(COMMANDS) == {*map(command_of, EXAMPLES), *LIKE, *LISTS}


@pytest.mark.parametrize("name", WITH_SCHEMA)
def test_an_example_conforms_to_the_schema_of_its_command(name: str) -> None:
    schema = WITH_SCHEMA[name].schema()
    assert faults(EXAMPLES[name].document, schema, schema) == []


@pytest.mark.parametrize("name", CALLED)
def test_an_example_has_the_keys_of_a_call(
    name: str, demonstration: Demonstration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = printed(demonstration.data.path, RECORDED[name])
    assert differences(form(EXAMPLES[name].document), form(found)) == []


def test_keys_that_only_one_document_has_are_found() -> None:
    shown, found = {"a": 1, "b": [{"c": 1}]}, {"a": {}, "b": [{"d": 1}]}
    assert sorted(differences(form(shown), form(found))) == ["$.b[].c", "$.b[].d"]
    assert differences(form({"b": [{"c": 1}]}), form({"b": []})) == []


def test_the_page_names_every_column() -> None:
    page = (REFERENCE / "results.md").read_text(encoding="utf-8")
    assert [it for it in COLUMNS if f"`{it}`" not in page] == []
