"""The ONNX samples: the name, the task, the usual inputs and the builder of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dlbricks_tui.models.graph import Shape
from sample_models.builders.onnx.detector import yolov8n
from sample_models.builders.onnx.quantised import mobilenetv2_int8
from sample_models.builders.onnx.recogniser import crnn
from sample_models.builders.onnx.tabular import boosted_trees, tabular_network
from sample_models.builders.onnx.transformers import gpt2_step, minilm
from sample_models.builders.onnx.voice_activity import silero_vad


@dataclass(frozen=True, slots=True)
class OnnxSample:
    """A network, with the input shapes that stand for its open axes."""

    name: str
    task: str
    build: Callable[[], bytes]
    inputs: Mapping[str, Shape]
    classes: int | None = None
    # The inputs whose values choose what is computed.
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file below `sample_models/`."""
        return f"onnx/{self.name}.onnx"


_SENTENCE, _PAST = (1, 128), 128
_CACHE: Mapping[str, Shape] = {
    f"past_key_values.{layer}.{what}": (1, 6, _PAST, 64) for layer in range(6) for what in ("key", "value")
}
_STEP: Mapping[str, Shape] = {"input_ids": (1, 1), "attention_mask": (1, _PAST + 1), "position_ids": (1, 1)}

SAMPLES = (
    OnnxSample("yolov8n", "OD", yolov8n, {"images": (1, 3, 640, 640)}, classes=80),
    OnnxSample("crnn", "TR", crnn, {"image": (1, 1, 32, 100)}, classes=37),
    OnnxSample("minilm", "TE", minilm, dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), _SENTENCE)),
    OnnxSample("gpt2_step", "TG", gpt2_step, {**_STEP, **_CACHE}),
    OnnxSample(
        "silero_vad", "VA", silero_vad, {"input": (1, 512), "state": (2, 1, 128), "sr": ()}, values={"sr": 16000}
    ),
    OnnxSample("tabular_network", "TD", tabular_network, {"categories": (1, 10), "numbers": (1, 13)}, classes=2),
    OnnxSample("boosted_trees", "TD", boosted_trees, {"numbers": (1, 13), "kind": (1, 1)}, classes=2),
    OnnxSample("mobilenetv2_int8", "IC", mobilenetv2_int8, {"input": (1, 3, 224, 224)}, classes=1000),
)
