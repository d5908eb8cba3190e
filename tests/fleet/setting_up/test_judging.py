"""Tests of the findings about a host, each with its cure, and of answers that make no sense."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up import host_script
from dlbricks_tui.fleet.setting_up.doctor import FindingVerdict, HostFacts, facts_from, judged
from tests.fleet.facts import BARE, HOST, READY, WANTED, found

FINE, NOTE, LACKS = FindingVerdict.FINE, FindingVerdict.NOTE, FindingVerdict.LACKS
OTHERS = ("python3.10", "python3.12", "python3.13")
WRITE_311 = 'write python = "python3.11" for it in the hosts file'


def test_a_host_with_everything_lacks_nothing_and_unknown_facts_are_no_faults() -> None:
    findings = judged(HOST, READY, 0.0, WANTED)
    assert {it.verdict for it in findings} == {FINE}
    assert {"Python", "environment", "dlbricks", "onnxruntime", "clock", "disk", "processor"} <= {
        it.subject for it in findings
    }
    unknown = replace(READY, governors=(), busy=None, stolen=None, free_memory=None, cpu="", vectors="")
    assert {it.verdict for it in judged(HOST, unknown, 0.0, WANTED)} == {FINE}


def test_a_bare_host_lacks_what_install_makes() -> None:
    lacking = [it for it in judged(HOST, BARE, 0.0, WANTED) if it.verdict is LACKS]
    assert [(it.subject, it.installable) for it in lacking] == [("environment", True)]
    assert lacking[0].cure == "dlbricks fleet doctor --hosts FILE --install"


@pytest.mark.parametrize(
    ("facts", "subject", "changes", "verdict", "words"),
    [
        (
            BARE,
            "Python",
            {"python": "3.9.18", "others": OTHERS},
            LACKS,
            "3.9.18 (/usr/bin/python3), and Python",
        ),
        # ONNX Runtime needs 3.11 here, and MXNet 3.12 or older.
        (BARE, "Python", {"python": "3.9.18", "others": OTHERS}, LACKS, WRITE_311.replace("11", "12")),
        (BARE, "Python", {"python": "3.9.18", "others": ()}, LACKS, "sudo apt install python3.11"),
        (BARE, "Python", {"python": "3.13.1"}, LACKS, "mxnet 1.9.1"),
        (BARE, "Python", {"python": "3.10.4"}, LACKS, "onnxruntime 1.32.0"),
        (BARE, "Python", {"python": "3.10.4"}, LACKS, WRITE_311),
        (BARE, "Python", {"python": "new"}, LACKS, ""),
        # A build between versions counts as its version; another minor version than here is a note.
        (BARE, "Python", {"python": "3.11.9+"}, FINE, ""),
        (BARE, "Python", {"python": "3.12.1", "others": ("python3.11",)}, NOTE, WRITE_311),
        # The interpreter of a ready environment counts, and not the other one.
        (READY, "Python", {"python": "3.9.18", "makes_environments": False}, FINE, "3.11.2"),
        (BARE, "C library", {"libc": "musl 1.2"}, LACKS, ""),
        (BARE, "ensurepip", {"makes_environments": False}, LACKS, "sudo apt install python3.11-venv"),
        (BARE, "disk", {"free_disk": 1 << 30}, LACKS, ""),
        (READY, "disk", {"free_disk": 1 << 30}, FINE, ""),
        (READY, "governor", {"governors": ("powersave",)}, NOTE, ""),
        (READY, "load", {"busy": 0.5}, NOTE, ""),
        (READY, "load", {"stolen": 0.1}, NOTE, ""),
        (READY, "memory", {"free_memory": 1 << 20}, NOTE, ""),
        (READY, "measuring", {"measuring": "run 7 of ann (process 12)"}, NOTE, ""),
    ],
)
def test_each_finding_says_what_it_is_and_how_to_cure_it(
    facts: HostFacts, subject: str, changes: dict[str, object], verdict: FindingVerdict, words: str
) -> None:
    finding = found(facts, subject, **changes)
    assert (finding.verdict, finding.blocks_installing) == (verdict, verdict is LACKS)
    assert words in f"{finding.state}; {finding.cure}"
    assert finding.cure or verdict is FINE


@pytest.mark.parametrize(
    ("subject", "changes", "state"),
    [
        ("dlbricks", {"dlbricks": "0.1.0"}, "0.1.0, and 0.2.0 here"),
        ("dlbricks", {"content": "d" * 64}, "0.2.0 with other files than here"),
        ("dlbricks", {"dlbricks": "", "content": ""}, "not installed"),
        ("onnxruntime", {"packages": {**READY.packages, "onnxruntime": "1.31.0"}}, "1.31.0, and 1.32.0 here"),
    ],
)
def test_another_version_or_content_is_replaced_by_install(subject: str, changes: dict[str, Any], state: str) -> None:
    other = found(READY, subject, **changes)
    assert (other.verdict, other.state, other.installable) == (LACKS, state, True)


def test_an_environment_of_someone_else_is_never_replaced_and_a_full_disk_keeps_from_measuring() -> None:
    findings = judged(HOST, replace(READY, dlbricks="0.1.0", replaceable=False), 0.0, WANTED)
    blocking = [it for it in findings if it.blocks_installing]
    assert [it.subject for it in blocking] == ["environment"] and "move it away" in blocking[0].cure
    full = found(READY, "disk", free_disk=1 << 20)
    assert full.verdict is LACKS and "256 MiB" in full.cure


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, FINE), (-30.0, NOTE), (4000.0, LACKS)])
def test_a_wrong_clock_is_a_note_and_refused_when_certificates_suffer(seconds: float, verdict: FindingVerdict) -> None:
    (clock,) = [it for it in judged(HOST, READY, seconds, WANTED) if it.subject == "clock"]
    assert clock.verdict is verdict


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


def test_an_answer_becomes_facts_without_what_a_shell_prints_before_and_without_control_codes() -> None:
    told = {
        **ANSWER,
        "busy": 0.005,
        "stolen": None,
        "free_memory": None,
        "cpu": "\x1b[2J",
        "packages": {"onnx": "\x07"},
    }
    facts = facts_from(b"Welcome!\n{fortune}\n" + json.dumps(told).encode() + b"\n")
    assert (facts.busy, facts.stolen, facts.cores) == (0.005, None, 5)
    assert (facts.others, facts.packages, facts.cpu) == (("a",), {"onnx": "\\x07"}, "\\x1b[2J")


@pytest.mark.parametrize(
    "change",
    [
        lambda it: json.dumps(it).encode() + b"\nmore",
        *(
            lambda it, changed=changed: json.dumps({**it, **changed}).encode()
            for changed in (
                {"more": 1},
                {"cores": "8"},
                {"cores": True},
                {"cores": 1 << 80},
                {"others": ["a"] * 1000},
                {"others": [["a"]]},
                {"packages": {"onnx": 5}},
                {"cpu": "x" * 10000},
                {"schema": 2},
            )
        ),
        lambda it: b"[" * 100000,
        lambda it: b"",
    ],
)
def test_any_other_answer_is_refused_in_one_line(change: Callable[[dict[str, Any]], bytes]) -> None:
    with pytest.raises(FleetError, match="its answer to the doctor") as raised:
        facts_from(change(ANSWER))
    assert len(str(raised.value).splitlines()) == 1
