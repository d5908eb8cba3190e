"""The lines of oneDNN about what it executes, of several versions."""

import pytest

from dlbricks_tui.analysis.kernels import RanPrimitive, ran_primitive

_REST = (
    "cpu,convolution,jit_1x1:avx2,forward_inference,src_f32::blocked:aBcd8b:f0 wei_f32::blocked:ABcd8b8a:f0 "
    "bia_undef::undef::f0 dst_f32::blocked:acdb:f0,,alg:convolution_direct,mb1_ic96oc24,0.139893"
)
_RAN = RanPrimitive("convolution", "jit_1x1:avx2", ("aBcd8b", "acdb"), "mb1_ic96oc24", 0.139893)
_AT_NS = 1_700_000_000_123_456_000


@pytest.mark.parametrize("beginning", ["dnnl_verbose,exec", "mkldnn_verbose,exec", "onednn_verbose,v1,primitive,exec"])
def test_a_line_tells_the_primitive_its_kernel_and_its_time(beginning: str) -> None:
    assert ran_primitive(f"{beginning},{_REST}") == _RAN


@pytest.mark.parametrize(
    "beginning",
    ["dnnl_verbose,1700000000123.456055,exec", "onednn_verbose,v1,1700000000123.456055,primitive,exec"],
)
def test_a_line_with_a_time_tells_when_the_primitive_started(beginning: str) -> None:
    found = ran_primitive(f"{beginning},{_REST}")
    assert found is not None
    assert found.host_ns == pytest.approx(_AT_NS, abs=1000)


@pytest.mark.parametrize(
    "line",
    [
        "dnnl_verbose,info,oneDNN v2.4.0 (commit N/A)",
        "dnnl_verbose,create:cache_miss,cpu,convolution,jit:avx2,forward,,,mb1,0.5",
        "dnnl_verbose,exec,cpu",
        f"dnnl_verbose,exec,{_REST.rpartition(',')[0]},soon",
        "",
    ],
)
def test_other_lines_tell_of_no_primitive(line: str) -> None:
    assert ran_primitive(line) is None
