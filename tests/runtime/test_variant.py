import sys

import pytest

from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import Precision, stated_precision, stated_threads, without_variant

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
    with pytest.raises(RegistryError, match="runtime here computes in f32 and not in bf16"):
        RUNTIME.with_precision(Precision.BF16)
