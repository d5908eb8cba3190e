"""Settings: the kinds of their values, unique where they share a command, and all that follows from one of them."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.cli.options import values_of
from dlbricks_tui.cli.parser import Parser, UsageError
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.evaluation import FileTable, of_settings
from dlbricks_tui.evaluations.file import loaded
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings import analysing, cutting, language, loads, measuring, variant, workbench
from dlbricks_tui.settings.cutting import CUTTING
from dlbricks_tui.settings.measuring import ENOUGH
from dlbricks_tui.settings.setting import (
    Setting,
    ValueKind,
    ValueRefusedError,
    fields_of,
    flag,
    name,
    next_of,
    number,
    one_of,
    options_in_words,
    plain,
    require_allowed,
    several,
    share,
    whole,
    with_own,
)
from dlbricks_tui.settings.variant import BATCH, PRECISION, RUNTIME, USUAL_EXECUTION, VARIANT
from dlbricks_tui.tui.widgets.form import FormRow
from docs.generators.commands import section
from docs.generators.evaluation_file import key_table
from docs.generators.parsers import page_of
from tests.store.processes import run_python

MODULES = (analysing, cutting, language, loads, measuring, variant, workbench)
DECLARED = [it for module in MODULES for it in vars(module).values() if isinstance(it, Setting)]


def test_declarations_are_whole_and_those_of_the_config_file_have_names_of_their_own() -> None:
    for setting in DECLARED:
        assert setting.about and not setting.about.endswith(".")
        assert setting.kind.allowed
        for value in {*setting.kind.offered, setting.default} - {None}:
            assert setting.kind.checked(value) == setting.kind.checked(plain(value)) == value, setting.option
            assert setting.kind.read(setting.kind.text(value)) == value, setting.option
        assert setting.default is None or setting.usual != "usual" or setting.config or setting.kind.is_flag
    names = [it.config for it in {id(it): it for it in DECLARED}.values() if it.config]
    assert len(names) == len(set(names)) == 12


def test_a_load_takes_the_precisions_that_its_help_names() -> None:
    named = re.findall(r"\w+", loads.ANY_PRECISION.about)
    assert [it.value for it in WeightPrecision if it.value in named] == ["int4", "int8", "f32", "bf16"]
    assert all(loads.ANY_PRECISION.kind.read(it.value) for it in WeightPrecision if it.value in named)


def test_a_host_with_more_cores_than_a_setting_allows_offers_what_is_allowed() -> None:
    code = """import os
os.sched_getaffinity = lambda _: range(2000)
from dlbricks_tui.settings.loads import INSTANCES
from dlbricks_tui.settings.variant import THREADS
print(*(it.kind.offered[-1] for it in (INSTANCES, THREADS)), THREADS.several_offered[0][-1])"""
    assert run_python(code).stdout.split() == ["256", "1024", "1024"]


# All that a new setting needs: its declaration, and the field of the options class that it decides.
STREAMS = Setting(
    name="copy streams",
    kind=whole(1, 16, 1, 2, 4),
    about="streams that copy the inputs of a model",
    meaning="that copy inputs",
    default=1,
    usual="1",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    copy_streams: int = 1

    def __post_init__(self) -> None:
        require_allowed(self, (STREAMS,), UserError)


def parser_of_example() -> Parser:
    parser = Parser(prog="dlbricks example")
    parser.add_settings(STREAMS)
    return parser


def parsed(*words: str) -> argparse.Namespace:
    found: argparse.Namespace = parser_of_example().parse_args(words)
    return found


def test_everything_follows_from_the_declaration_of_a_new_setting(capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(**values_of(parsed("--copy-streams", "4"), (STREAMS,)))
    assert options == Options(copy_streams=4) and Options(**values_of(parsed(), (STREAMS,))) == Options()
    with pytest.raises(UsageError, match=r"argument --copy-streams: '99': give a whole number from 1 to 16"):
        parsed("--copy-streams", "99")
    with pytest.raises(UserError, match=r"^copy_streams 99: give a whole number from 1 to 16$"):
        Options(copy_streams=99)
    with pytest.raises(SystemExit):
        parsed("--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "--copy-streams N streams that copy the inputs of a model (default: 1)" in shown
    page = section(page_of(parser_of_example(), "copy"))
    assert "| `--copy-streams N` | streams that copy the inputs of a model | 1 |" in page
    row = FormRow(setting=STREAMS)
    assert (row.name, row.shown(options), row.stepped(options, 1)) == ("copy streams", "4", Options())
    assert row.written(options, "3") == Options(copy_streams=3)
    assert [*options_in_words([(STREAMS, 4)])] == ["--copy-streams", "4"] and not [*options_in_words([(STREAMS, 1)])]


def test_the_file_of_an_evaluation_and_its_page_follow_from_the_declaration_too() -> None:
    example = FileTable(kind=Options, field="example", about="An example.", keys=of_settings(STREAMS))
    assert loaded(example, {"copy_streams": 4}) == Options(copy_streams=4) and loaded(example, {}) == Options()
    about = "Streams that copy the inputs of a model. Without it: 1."
    limits = {"type": "integer", "minimum": 1, "maximum": 16}
    assert example.schema["properties"] == {"copy_streams": {"description": about, **limits}}
    assert f"| `copy_streams` | {about} | a whole number |" in key_table(example.schema)
    # A group of settings that a file has already takes a new one.
    grouped = of_settings(*ENOUGH, STREAMS, many=True)
    assert grouped["copy_streams"].read([4, 4, 2]) == (4, 2) and grouped["fixed_runs"].read(9) == (9,)


def test_usual_values_need_no_option() -> None:
    given: list[tuple[Setting[Any], Any]] = [
        (RUNTIME, "default-onnx"),
        (BATCH, None),
        (PRECISION, Precision.F32),
        *((it, it.default) for it in CUTTING),
    ]
    assert [*options_in_words(given, USUAL_EXECUTION)] == ["--runtime", "default-onnx"]
    assert [*options_in_words([(PRECISION, Precision.INT8)], USUAL_EXECUTION)] == ["--precision", "int8"]


def test_options_go_from_one_class_to_another_by_their_fields() -> None:
    @dataclass
    class One:
        runtime: str = "mxnet"
        threads: int | None = None
        batch: Sequence[int] = (1, 8)
        precision: None = None
        instructions: None = None
        optimisation: None = None

    assert list(fields_of(One(), VARIANT).values()) == ["mxnet", None, (1, 8), None, None, None]


def test_a_flag_without_default_can_be_refused_and_one_with_default_is_only_said() -> None:
    parser = Parser(prog="dlbricks example")
    parser.add_settings(measuring.END_TO_END, measuring.AGAIN)
    parser.add_setting(BATCH, many=True, usual="all")
    found = vars(parser.parse_args(["--no-end-to-end", "--again", "--batch", "1,8"]))
    assert (found["end_to_end"], found["again"], found["batch"]) == (False, True, (1, 8))
    with pytest.raises(UsageError):
        parser.parse_args(["--no-again"])


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


KINDS: dict[str, tuple[ValueKind[Any], Any]] = {
    "whole": (whole(1, 64), 7),
    "number": (number(1e7), 1234567.25),
    "share": (share(), 0.005),
    "words": (one_of(*Colour), Colour.BLUE),
    "name": (name("the name of a theme"), "dark"),
    "flag": (flag("run again", "leave out"), True),
    "several": (several(one_of(*Colour)), (Colour.BLUE, Colour.RED)),
}


@pytest.mark.parametrize(("kind", "value"), KINDS.values(), ids=KINDS)
def test_a_kind_reads_what_it_writes(kind: ValueKind[Any], value: Any) -> None:
    assert kind.read(kind.text(value)) == kind.checked(value) == value


@pytest.mark.parametrize(("kind", "_"), KINDS.values(), ids=KINDS)
@given(text=st.text())
def test_a_text_is_a_value_or_refused_with_what_to_give(kind: ValueKind[Any], _: Any, text: str) -> None:
    try:
        value = kind.read(text)
    except ValueRefusedError as refusal:
        assert str(refusal) == f"give {kind.allowed}"
    else:
        assert kind.accepts(value)


def test_a_value_of_a_file_has_the_type_of_its_kind() -> None:
    for value in (True, 1.5, 0, 65, "7", None, [7]):
        with pytest.raises(ValueRefusedError, match=r"^give a whole number from 1 to 64$"):
            whole(1, 64).checked(value)


def test_several_values_count_once_and_are_offered_alone_and_together() -> None:
    kind = several(whole(1, 64, 1, 2, 4), (1, 2))
    assert kind.read("4, 1,4") == (4, 1)
    assert kind.offered == ((1,), (2,), (4,), (1, 2))
    assert several(one_of(*Colour)).read("red, blue") == (Colour.RED, Colour.BLUE)
    # The identity of a runtime has commas and spaces.
    assert several(name("a runtime")).read("mxnet 1.9.1, python 3.11") == ("mxnet 1.9.1, python 3.11",)


def test_steps_go_around_and_the_own_value_is_among_them() -> None:
    assert with_own((1, 2, 8), 4) == (1, 2, 4, 8) and with_own(("b", "a"), "own") == ("b", "a", "own")
    assert with_own((1, 2), None) == with_own((1, 2), 2) == (1, 2)
    assert [next_of((1, 2, 4), value, 1) for value in (1, 4, 9)] == [2, 1, 1] and next_of((1, 2, 4), 1, -1) == 4
