import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Requirements
from dlbricks_tui.evaluations.matching import (
    Match,
    exact_constraint,
    host_matches,
    keeps_to,
    model_match,
    runtime_matches,
    version_fits,
)
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME, OPENVINO
from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Optimisation, Precision
from tests.store.samples import system

AVX2_HOST = (InstructionSet.SSE41, InstructionSet.AVX, InstructionSet.AVX2)
ORT = Runtime("default-onnx", sys.executable, "onnxruntime", "1.23.2", "3.11.0")


def of_host(wanted: Requirements, disturbances: tuple[str, ...] | None = None, **changes: Any) -> tuple[Match, ...]:
    usual: dict[str, Any] = {
        "cpu": "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz",
        "facts": (("governor", "performance"), ("turbo", True), ("hyper_threading", False)),
    }
    return tuple(host_matches(wanted, system(**{**usual, **changes}), AVX2_HOST, disturbances))


def of_runtime(
    wanted: EvaluatedRuntime, found: Runtime | None = ORT, shell: Mapping[str, str] | None = None
) -> tuple[Match, ...]:
    return tuple(runtime_matches(wanted, ONNX_RUNTIME, found, shell or {}, AVX2_HOST))


@pytest.mark.parametrize(
    ("met", "wanted", "found"),
    [
        ({"cores": "4"}, {"cores": "8"}, "4"),
        ({"cores": ">=2"}, {"cores": "<4"}, "4"),
        ({"memory_gib": "8"}, {"memory_gib": ">=16"}, "8 GiB"),
        ({"cpu": "xeon(r) platinum"}, {"cpu": "EPYC"}, "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz"),
        ({"instance_type": "c5.xlarge"}, {"instance_type": "c5.large"}, "c5.xlarge"),
        ({"instructions": AVX2_HOST[1:2]}, {"instructions": (InstructionSet.AVX512_CORE,)}, "sse41, avx, avx2"),
        ({"governor": "performance"}, {"governor": "powersave"}, "performance"),
        ({"turbo": True}, {"turbo": False}, "on"),
        ({"hyper_threading": False}, {"hyper_threading": True}, "off"),
    ],
)
def test_a_requirement_matches_or_says_what_was_found_and_what_to_do(
    met: dict[str, Any], wanted: dict[str, Any], found: str
) -> None:
    (match,) = of_host(Requirements(**met))
    assert (match.matches, match.cure) == (True, "")
    (match,) = of_host(Requirements(**wanted))
    assert (match.matches, match.found) == (False, found)
    assert match.cure and match.cure in match.line
    assert f"wanted {match.wanted}, found {found}" in match.line


def test_small_memory_differences_and_a_quiet_host_match_and_what_a_host_does_not_tell_never_does() -> None:
    # The memory that the firmware takes is no difference.
    (match,) = of_host(Requirements(memory_gib="8"), memory_bytes=(8 << 30) - (300 << 20))
    assert match.matches
    for disturbances in ((), ("the processors are 40% busy",)):
        (match,) = of_host(Requirements(quiet=True), disturbances)
        assert match.matches == (not disturbances)
    unknown = (("governor", "unknown"), ("turbo", "unknown"))
    found = of_host(Requirements(governor="performance", turbo=False), facts=unknown)
    assert [(it.matches, it.found) for it in found] == [(False, "unknown"), (False, "unknown")]


def test_another_version_can_be_accepted_and_a_runtime_that_is_not_installed_can_measure_nothing() -> None:
    wanted = EvaluatedRuntime(framework="onnxruntime", version="==1.22.0")
    (match,) = of_runtime(wanted)
    assert (match.subject, match.wanted, match.found) == ("ONNX Runtime", "==1.22.0", "1.23.2")
    assert (match.matches, match.needed) == (False, False)
    (match,) = of_runtime(EvaluatedRuntime(framework="onnxruntime"))
    assert (match.matches, match.wanted) == (True, "any version")
    (match,) = of_runtime(wanted, None)
    assert (match.found, match.needed) == ("not installed", True)
    assert "pip install 'onnxruntime==1.22.0'" in match.cure


def test_variables_that_the_file_does_not_state_or_that_differ_are_mismatches() -> None:
    tuned = Settings(None, (("OMP_WAIT_POLICY", "active"), ("OMP_DYNAMIC", "true")))
    found = Runtime("default-onnx", sys.executable, "onnxruntime", "1.23.2", "3.11.0", tuned)
    wanted = EvaluatedRuntime(framework="onnxruntime", variables={"OMP_DYNAMIC": "false", "MALLOC_ARENA_MAX": "1"})
    _, arena, dynamic, policy = of_runtime(wanted, found, {"OMP_DYNAMIC": "true"})
    assert (arena.matches, arena.found) == (True, "1 (set by the evaluation)")
    assert (dynamic.matches, dynamic.wanted, dynamic.found) == (False, "false", "true")
    assert dynamic.cure.startswith("unset OMP_DYNAMIC")
    assert (policy.matches, policy.wanted, policy.found) == (False, "not set", "active")
    # It comes from the registration of the interpreter, and not from the shell.
    assert "register the interpreter again" in policy.cure


def test_variables_of_threads_and_kernels_count_only_where_no_variant_states_them() -> None:
    limited = ORT.with_threads(3).with_kernels(Kernels(optimisation=Optimisation.BASIC))
    subjects = [it.subject for it in of_runtime(EvaluatedRuntime(framework="onnxruntime"), limited) if not it.matches]
    assert subjects == ["ONNX Runtime variable OMP_NUM_THREADS", "ONNX Runtime variable ORT_OPTIMISATION"]
    stated = EvaluatedRuntime(framework="onnxruntime", threads=(1, 2), optimisation=(Optimisation.ALL,))
    assert all(it.matches for it in of_runtime(stated, limited))


def test_values_of_variants_that_are_impossible_here_are_mismatches() -> None:
    wanted = EvaluatedRuntime(framework="onnxruntime", precision=(Precision.F32, Precision.BF16, Precision.FILE))
    _, f32, bf16, file = of_runtime(wanted)
    assert (f32.matches, bf16.matches, file.matches) == (True, False, True)
    assert (bf16.found, bf16.needed) == ("f32, int8", True)
    limited = EvaluatedRuntime(
        framework="openvino", instructions=(InstructionSet.AVX2, InstructionSet.AVX512_CORE, InstructionSet.ALL)
    )
    found = Runtime("default-openvino", sys.executable, "openvino", "2026.4.0", "3.11.0")
    _, avx2, avx512, every = runtime_matches(limited, OPENVINO, found, {}, AVX2_HOST)
    assert (avx2.matches, avx512.matches, every.matches) == (True, False, True)


def test_a_model_matches_by_its_content() -> None:
    wanted = EvaluatedModel(name="net", sha256="ab" * 32, path="net.onnx")
    assert model_match(wanted, Path("net.onnx"), "ab" * 32).matches
    other = model_match(wanted, Path("net.onnx"), "cd" * 32)
    assert (other.matches, other.needed) == (False, False)
    missing = model_match(wanted, None)
    assert (missing.matches, missing.needed, missing.found) == (False, True, "no file")
    assert "put it at net.onnx" in missing.cure
    assert model_match(EvaluatedModel(name="net"), Path("net.onnx"), "cd" * 32).matches


LONG_VERSION = "2026.4.0-20000-abcdef-releases/2026/4"


@pytest.mark.parametrize(
    ("constraint", "fitting", "others"),
    [
        ("", ("1.9.1", "no version"), ()),
        ("==1.9.1", ("1.9.1",), ("1.9.2",)),
        (">=1.20,<2", ("1.23.2",), ("2.0",)),
        (">=2026,<2027", ("2026.4.0rc1", LONG_VERSION), ()),
        (">=1", (), ("no version",)),
        *((exact_constraint(it), (it,), ("3.0.0",)) for it in ("1.9.1", "2026.4.0", LONG_VERSION, "1.23.2+cpu")),
    ],
)
def test_version_constraints_are_those_of_python_packages(
    constraint: str, fitting: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert [version_fits(constraint, it) for it in (*fitting, *others)] == [True] * len(fitting) + [False] * len(others)


@pytest.mark.parametrize(
    ("limit", "value", "keeps"),
    [("4", 4, True), ("4", 5, False), ("== 4", 4, True), (">=4", 4, True), (">4", 4, False), ("<=4", 4, True)],
)
def test_limits_of_numbers(limit: str, value: float, keeps: bool) -> None:
    assert keeps_to(limit, value) is keeps
    for text in ("", "many", ">=", "4 or more", "~=4"):
        with pytest.raises(ValueError, match="neither a number nor a limit"):
            keeps_to(text, 4)
