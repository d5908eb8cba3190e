from dataclasses import replace

import pytest

from dlbricks_tui.fleet.setting_up.judging import FindingVerdict, judged
from tests.fleet.facts import BARE, HOST, READY, WANTED, found


def test_a_host_with_everything_lacks_nothing() -> None:
    findings = judged(HOST, READY, 0.0, WANTED)
    assert {it.verdict for it in findings} == {FindingVerdict.FINE}
    assert {"Python", "environment", "dlbricks", "onnxruntime", "clock", "disk", "processor"} <= {
        it.subject for it in findings
    }


def test_a_bare_host_lacks_what_install_makes() -> None:
    lacking = [it for it in judged(HOST, BARE, 0.0, WANTED) if it.verdict is FindingVerdict.LACKS]
    assert [(it.subject, it.installable) for it in lacking] == [("environment", True)]
    assert lacking[0].cure == "dlbricks fleet doctor --hosts FILE --install"


def test_an_old_python_is_refused_with_the_name_of_one_that_fits() -> None:
    old = found(BARE, "Python", python="3.9.18", others=("python3.10", "python3.12", "python3.13"))
    assert old.verdict is FindingVerdict.LACKS and old.blocks_installing
    assert old.state.startswith("3.9.18 (/usr/bin/python3), and Python 3.10 to 3.14 are needed")
    # ONNX Runtime needs 3.11 here, and MXNet 3.12 or older.
    assert old.cure == 'write python = "python3.12" for it in the hosts file'


def test_without_another_python_the_cure_is_to_install_one() -> None:
    assert "sudo apt install python3.11" in found(BARE, "Python", python="3.9.18", others=()).cure


@pytest.mark.parametrize(
    ("python", "package"), [("3.13.1", "mxnet 1.9.1"), ("3.10.4", "onnxruntime 1.32.0")], ids=["too new", "too old"]
)
def test_a_python_that_a_framework_is_not_made_for_is_refused(python: str, package: str) -> None:
    misfit = found(BARE, "Python", python=python)
    assert misfit.verdict is FindingVerdict.LACKS
    assert package in misfit.state and misfit.cure == 'write python = "python3.11" for it in the hosts file'


def test_a_build_between_versions_counts_as_its_version() -> None:
    assert found(BARE, "Python", python="3.11.9+").verdict is FindingVerdict.FINE


def test_a_host_without_glibc_is_refused() -> None:
    assert found(BARE, "C library", libc="musl 1.2").blocks_installing


def test_a_python_that_no_version_of_python_is_called_like_is_refused() -> None:
    assert found(BARE, "Python", python="new").verdict is FindingVerdict.LACKS


def test_another_minor_version_than_here_is_a_note() -> None:
    other = found(BARE, "Python", python="3.12.1", others=("python3.11", "python3.12"))
    assert other.verdict is FindingVerdict.NOTE and 'python = "python3.11"' in other.cure


def test_the_interpreter_of_a_ready_environment_counts_and_not_the_other_one() -> None:
    python = found(READY, "Python", python="3.9.18", executable="/usr/bin/python3", makes_environments=False)
    assert python.verdict is FindingVerdict.FINE and "3.11.2" in python.state


def test_a_host_without_ensurepip_is_told_which_package_has_it() -> None:
    missing = found(BARE, "ensurepip", makes_environments=False)
    assert missing.blocks_installing and "sudo apt install python3.11-venv" in missing.cure


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"dlbricks": "0.1.0"}, "0.1.0, and 0.2.0 here"),
        ({"content": "d" * 64}, "0.2.0 with other files than here"),
        ({"dlbricks": "", "content": ""}, "not installed"),
    ],
    ids=["other version", "other content", "none"],
)
def test_another_dlbricks_is_replaced_by_install(changes: dict[str, str], state: str) -> None:
    other = found(READY, "dlbricks", **changes)
    assert (other.verdict, other.state, other.installable) == (FindingVerdict.LACKS, state, True)


def test_another_version_of_a_framework_is_replaced_by_install() -> None:
    packages = {**READY.packages, "onnxruntime": "1.31.0"}
    other = found(READY, "onnxruntime", packages=packages)
    assert (other.verdict, other.state) == (FindingVerdict.LACKS, "1.31.0, and 1.32.0 here") and other.installable


def test_an_environment_of_someone_else_is_never_replaced() -> None:
    findings = judged(HOST, replace(READY, dlbricks="0.1.0", replaceable=False), 0.0, WANTED)
    blocking = [it for it in findings if it.blocks_installing]
    assert [it.subject for it in blocking] == ["environment"] and "move it away" in blocking[0].cure


def test_a_small_disk_keeps_from_installing_and_a_full_one_from_measuring() -> None:
    assert found(BARE, "disk", free_disk=1 << 30).blocks_installing
    assert found(READY, "disk", free_disk=1 << 30).verdict is FindingVerdict.FINE
    full = found(READY, "disk", free_disk=1 << 20)
    assert full.verdict is FindingVerdict.LACKS and "256 MiB" in full.cure


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(1.0, FindingVerdict.FINE), (-30.0, FindingVerdict.NOTE), (4000.0, FindingVerdict.LACKS)]
)
def test_a_wrong_clock_is_a_note_and_refused_when_certificates_suffer(seconds: float, verdict: FindingVerdict) -> None:
    (clock,) = [it for it in judged(HOST, READY, seconds, WANTED) if it.subject == "clock"]
    assert clock.verdict is verdict


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        ("governor", {"governors": ("powersave",)}),
        ("load", {"busy": 0.5}),
        ("load", {"stolen": 0.1}),
        ("memory", {"free_memory": 1 << 20}),
        ("measuring", {"measuring": "run 7 of ann (process 12)"}),
    ],
)
def test_noise_is_noted_and_keeps_no_host_from_measuring(subject: str, changes: dict[str, object]) -> None:
    noted = found(READY, subject, **changes)
    assert noted.verdict is FindingVerdict.NOTE and noted.cure


def test_unknown_facts_are_no_faults() -> None:
    unknown = replace(READY, governors=(), busy=None, stolen=None, free_memory=None, cpu="", vectors="")
    assert {it.verdict for it in judged(HOST, unknown, 0.0, WANTED)} == {FindingVerdict.FINE}
