from dataclasses import replace

from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.variants import variant_remarks
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.wording.answers import engine_remarks
from tests.analysis.executions import RUNTIME, executed
from tests.bricks.graphs import chain
from tests.estimate.test_curve import point

REMARK = "end to end with MXNET_ENGINE_TYPE=NaiveEngine; MXNet's default can be slower"


def timed(
    runtime: Runtime = RUNTIME, threads: int = 2, method: Method = Method.INSIDE, *, whole: bool = True
) -> SystemEstimate:
    end_to_end = Latency(1.0, 0.9, 1.1) if whole else None
    found = executed(chain("conv"), runtime=runtime, threads=threads, end_to_end=end_to_end).found
    return replace(found, way=found.way._replace(protocol=method.id))


def test_one_line_says_with_which_engine_end_to_end_latencies_on_several_threads_hold() -> None:
    assert engine_remarks([timed(), timed(threads=4), timed(threads=1)]) == [REMARK]
    assert len(REMARK) <= 80
    assert Sentence(REMARK) in variant_remarks([replace(point(1, 10.0), found=timed())])


def test_other_latencies_need_no_remark_on_the_engine() -> None:
    by_default = RUNTIME.with_default_engine()
    assert by_default is not None
    others = [
        timed(threads=1),
        timed(whole=False),
        timed(by_default),
        timed(method=Method.ALONE),
        timed(replace(RUNTIME, framework="onnxruntime")),
    ]
    assert engine_remarks(others) == []
