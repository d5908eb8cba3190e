"""Models of the sorts that real files are made of, read, cut and run by the real OpenVINO at both levels."""

from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Profile
from tests.models.onnx_models import saved
from tests.runtime.onnx_cases import CASES, cases
from tests.runtime.test_openvino import SECONDS

pytestmark = pytest.mark.openvino

# An operator of each model that OpenVINO cannot read.
LACKED = {
    "quantised operators": "com.microsoft.QGemm",
    "lookup and attention": "com.microsoft.EmbedLayerNormalization",
    "saved in blocks": "com.microsoft.nchwc.Conv",
    "tree regressor": "ai.onnx.ml.TreeEnsembleRegressor",
    "tree classifier": "ai.onnx.ml.TreeEnsembleClassifier",
    "tree classifier of texts": "ai.onnx.ml.TreeEnsembleClassifier",
    "texts": "ai.onnx.ml.LabelEncoder",
    "other learned operators": "ai.onnx.ml.Imputer",
}
# A model that only runs as a whole: its layers pass on a sequence.
WHOLE_ONLY = "sequences"
# A model whose file has functions, which OpenVINO does not know. Its layers are those of the functions.
OF_FUNCTIONS = "function"
USUAL = ("quantised pairs", "brain floats", "If by data", "no batch axis", OF_FUNCTIONS, "NonZero", "opset 7")


@pytest.mark.parametrize("case", cases(USUAL, *LACKED, WHOLE_ONLY))
def test_a_model_its_file_and_each_of_its_written_bricks_run(
    case: str, openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    for level in Level:
        graph = openvino_loader.load(source_of(path), level)
        assert [layer.op for layer in graph.layers if layer.unmeasurable] == []
        openvino_worker.ask(Load("model", model_program(graph)), SECONDS)
        (times,) = openvino_worker.ask(Profile("model", 1, 1), SECONDS).durations_ns
        assert level is Level.WRITTEN or times
        if case != OF_FUNCTIONS:
            openvino_worker.ask(Load("file", file_program(graph, path)), SECONDS)
        for occurrence in decompose(graph).occurrences if level is Level.WRITTEN else ():
            openvino_worker.ask(Load("brick", sequence_program(graph, occurrence.sequence.layers)), SECONDS)


@pytest.mark.parametrize("case", cases(["saved in blocks", "texts"], *(it for it in CASES if it not in LACKED)))
def test_a_model_that_openvino_cannot_read_names_an_operator_in_one_line(
    case: str, openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    graph = openvino_loader.load(source_of(path))
    with pytest.raises(FusionRefusedError) as refused:
        openvino_loader.load(source_of(path), Level.FUSED)
    with pytest.raises(WorkerRefusedError) as not_run:
        openvino_worker.ask(Load("model", model_program(graph)), SECONDS)
    for message in (refused.value, not_run.value, *filter(None, (layer.unmeasurable for layer in graph.layers))):
        assert LACKED[case] in str(message)
        assert "\n" not in str(message)


def test_a_model_whose_layers_pass_on_a_sequence_runs_as_a_whole(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[WHOLE_ONLY]())
    with pytest.raises(FusionRefusedError, match="reads a sequence or a map"):
        openvino_loader.load(source_of(path), Level.FUSED)
    openvino_worker.ask(Load("file", file_program(openvino_loader.load(source_of(path)), path)), SECONDS)


def test_a_file_with_functions_names_them(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    path = saved(tmp_path, CASES[OF_FUNCTIONS]())
    with pytest.raises(WorkerRefusedError, match=r"OpenVINO lacks mine\.Twice"):
        openvino_worker.ask(Load("file", file_program(openvino_loader.load(source_of(path)), path)), SECONDS)
