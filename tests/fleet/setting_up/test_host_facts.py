import json
from collections.abc import Callable
from typing import Any

import pytest

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up import host_script
from dlbricks_tui.fleet.setting_up.host_facts import facts_from

ANSWER: dict[str, Any] = {
    "format": host_script.FORMAT,
    "schema": host_script.SCHEMA,
    **dict.fromkeys(("python", "implementation", "executable", "operating_system", "machine", "libc", "cpu"), "x"),
    **dict.fromkeys(("vectors", "measuring", "folder", "obstacle", "interpreter", "environment_python"), ""),
    **dict.fromkeys(("dlbricks", "content"), ""),
    **dict.fromkeys(("cores", "busy", "stolen", "free_memory", "free_disk"), 5),
    **dict.fromkeys(("clock_first", "clock_last"), 5),
    **{key: ["a"] for key in ("others", "governors")},
    **dict.fromkeys(("makes_environments", "replaceable"), True),
    "packages": {"onnx": "1.0"},
}


def test_an_answer_becomes_facts() -> None:
    facts = facts_from(json.dumps({**ANSWER, "busy": 0.005, "stolen": None, "free_memory": None}).encode())
    assert (facts.busy, facts.stolen, facts.free_memory) == (0.005, None, None)
    assert (facts.others, facts.packages) == (("a",), {"onnx": "1.0"})


def test_what_the_files_of_a_shell_print_does_no_harm() -> None:
    assert facts_from(b"Welcome!\n{fortune}\n" + json.dumps(ANSWER).encode() + b"\n").cores == 5


def test_control_codes_of_a_host_never_reach_the_terminal() -> None:
    facts = facts_from(json.dumps({**ANSWER, "cpu": "\x1b[2J", "packages": {"onnx": "\x07"}}).encode())
    assert (facts.cpu, facts.packages["onnx"]) == ("\\x1b[2J", "\\x07")


@pytest.mark.parametrize(
    "change",
    [
        lambda it: json.dumps(it).encode() + b"\nmore",
        lambda it: json.dumps({**it, "more": 1}).encode(),
        lambda it: json.dumps({**it, "cores": "8"}).encode(),
        lambda it: json.dumps({**it, "cores": True}).encode(),
        lambda it: json.dumps({**it, "cores": 1 << 80}).encode(),
        lambda it: json.dumps({**it, "others": ["a"] * 1000}).encode(),
        lambda it: json.dumps({**it, "others": [["a"]]}).encode(),
        lambda it: json.dumps({**it, "packages": {"onnx": 5}}).encode(),
        lambda it: json.dumps({**it, "cpu": "x" * 10000}).encode(),
        lambda it: json.dumps({**it, "schema": 2}).encode(),
        lambda it: b"[" * 100000,
        lambda it: b"",
    ],
)
def test_any_other_answer_is_refused_in_one_line(change: Callable[[dict[str, Any]], bytes]) -> None:
    with pytest.raises(FleetError, match="its answer to the doctor") as raised:
        facts_from(change(ANSWER))
    assert len(str(raised.value).splitlines()) == 1
