import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
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
from tests.documents.snapshots import check
from tests.store.samples import system

AVX2_HOST = (InstructionSet.SSE41, InstructionSet.AVX, InstructionSet.AVX2)
ORT = Runtime("default-onnx", sys.executable, "onnxruntime", "1.23.2", "3.11.0")


def told(found: Iterable[Match]) -> list[str]:
    """The requirements, whether they are met, and whether anything can be measured without."""
    return [f"{'met' if it.matches else 'needed' if it.needed else 'not met'}: {it.line}" for it in found]


def of_host(wanted: Requirements, disturbances: tuple[str, ...] | None = None, **changes: Any) -> list[str]:
    usual: dict[str, Any] = {
        "cpu": "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz",
        "facts": (("governor", "performance"), ("turbo", True), ("hyper_threading", False)),
    }
    return told(host_matches(wanted, system(**{**usual, **changes}), AVX2_HOST, disturbances))


def of_runtime(found: Runtime | None = ORT, shell: Mapping[str, str] | None = None, **wanted: Any) -> list[str]:
    asked = EvaluatedRuntime(framework="onnxruntime", **wanted)
    return told(runtime_matches(asked, ONNX_RUNTIME, found, shell or {}, AVX2_HOST))


def test_a_requirement_is_met_or_says_what_was_found_and_what_to_do() -> None:
    met = Requirements(
        cores=">=2",
        memory_gib="8",
        cpu="xeon(r) platinum",
        instance_type="c5.xlarge",
        instructions=AVX2_HOST[1:2],
        governor="performance",
        turbo=True,
        hyper_threading=False,
        quiet=True,
    )
    others = Requirements(
        cores="<4",
        memory_gib=">=16",
        cpu="EPYC",
        instance_type="c5.large",
        instructions=(InstructionSet.AVX512_CORE,),
        governor="powersave",
        turbo=False,
        hyper_threading=True,
        quiet=True,
    )
    tuned = replace(ORT, settings=Settings(None, (("OMP_WAIT_POLICY", "active"), ("OMP_DYNAMIC", "true"))))
    limited = ORT.with_threads(3).with_kernels(Kernels(optimisation=Optimisation.BASIC))
    openvino = Runtime("default-openvino", sys.executable, "openvino", "2026.4.0", "3.11.0")
    sets = (InstructionSet.AVX2, InstructionSet.AVX512_CORE, InstructionSet.ALL)
    by_openvino = EvaluatedRuntime(framework="openvino", instructions=sets)
    unknown = (("governor", "unknown"), ("turbo", "unknown"))
    net, here = EvaluatedModel(name="net", sha256="ab" * 32, path="net.onnx"), Path("net.onnx")
    check(
        "matches",
        {
            # The memory that the firmware takes is no difference.
            "a host that meets all": of_host(met, (), memory_bytes=(8 << 30) - (300 << 20)),
            "a host that meets none": of_host(others, ("the processors are 40% busy",)),
            "a host that tells little": of_host(Requirements(governor="performance", turbo=False), facts=unknown),
            "any version": of_runtime(),
            "another version": of_runtime(version="==1.22.0"),
            "a runtime that is not installed": of_runtime(None, version="==1.22.0"),
            # The policy comes from the registration of the interpreter, and not from the shell.
            "variables": of_runtime(
                tuned, {"OMP_DYNAMIC": "true"}, variables={"OMP_DYNAMIC": "false", "MALLOC_ARENA_MAX": "1"}
            ),
            "variables of threads and kernels": of_runtime(limited),
            "which variants state": of_runtime(limited, threads=(1, 2), optimisation=(Optimisation.ALL,)),
            "precisions": of_runtime(precision=(Precision.F32, Precision.BF16, Precision.FILE)),
            "instruction sets": told(runtime_matches(by_openvino, OPENVINO, openvino, {}, AVX2_HOST)),
            "models": told(
                [
                    model_match(net, here, "ab" * 32),
                    model_match(net, here, "cd" * 32),
                    model_match(net, None),
                    model_match(replace(net, sha256=""), here, "cd" * 32),
                ]
            ),
        },
        width=240,
    )


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
