import sys
from dataclasses import replace

import pytest

from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.runtime import PRECISION_VARIABLE, Runtime
from dlbricks_tui.runtime.variant import (
    Precision,
    Variant,
    stated_precision,
    stated_threads,
    variant_in_words,
    without_variant,
)

RUNTIME = Runtime("here", sys.executable, "onnxruntime", "1.32.0", "3.11.9")


def test_the_usual_precision_is_no_part_of_an_identity() -> None:
    assert RUNTIME.with_threads(2).identity == "onnxruntime-1.32.0 python-3.11 threads-2"
    assert RUNTIME.with_precision(Precision.F32) == RUNTIME


def test_an_identity_tells_threads_and_precision() -> None:
    assert stated_threads(RUNTIME.with_threads(12).identity) == 12
    assert stated_threads(RUNTIME.identity) is None
    assert stated_precision(RUNTIME.identity) is Precision.F32
    assert stated_precision("openvino-2026.4 python-3.11 threads-2 precision-bf16 OV_A=1") is Precision.BF16


def test_all_variants_of_a_runtime_have_one_identity_without_the_variant() -> None:
    assert {without_variant(it.identity) for it in (RUNTIME, RUNTIME.with_threads(2))} == {
        "onnxruntime-1.32.0 python-3.11"
    }
    assert without_variant("openvino-2026.4 threads-2 precision-bf16 OV_A=1") == "openvino-2026.4 OV_A=1"


def test_a_precision_that_the_runtime_lacks_is_refused_in_one_line() -> None:
    with pytest.raises(RegistryError, match="runtime here computes in f32, int8 and not in bf16"):
        RUNTIME.with_precision(Precision.BF16)


def test_a_runtime_has_the_variant_of_each_of_its_identities() -> None:
    wanted = RUNTIME.with_threads(2).with_precision(Precision.INT8)
    assert RUNTIME.with_identity(wanted.identity) == wanted
    assert RUNTIME.with_identity(wanted.identity.replace("1.32.0", "1.31.0")) is None
    assert RUNTIME.with_identity(f"{RUNTIME.identity} precision-bf16") is None


def test_only_bf16_reaches_the_worker_as_a_setting() -> None:
    inherited = {PRECISION_VARIABLE: "bf16"}
    assert RUNTIME.environment(inherited)[PRECISION_VARIABLE] == "f32"
    assert RUNTIME.with_precision(Precision.INT8).environment({})[PRECISION_VARIABLE] == "f32"
    openvino = replace(RUNTIME, framework="openvino").with_precision(Precision.BF16)
    assert openvino.environment({})[PRECISION_VARIABLE] == "bf16"


def test_figures_of_changed_models_say_that_accuracy_was_not_checked() -> None:
    for precision in Precision:
        is_changed = precision in (Precision.INT8, Precision.BF16)
        assert ("accuracy was not checked" in precision.remark) is is_changed
        assert ("accuracy not checked" in variant_in_words(Variant(precision=precision))) is is_changed
