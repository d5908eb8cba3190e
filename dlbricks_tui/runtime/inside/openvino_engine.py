"""Whole language models in OpenVINO: by openvino-genai where it is installed, else by OpenVINO itself."""

from __future__ import annotations

import importlib
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.genai_engine import forget_peak, peak_bytes, prompt_of
from dlbricks_tui.runtime.inside.openvino_decoders import decoder_extensions, with_state
from dlbricks_tui.runtime.inside.openvino_models import DEVICE, ask, compiled, settings
from dlbricks_tui.runtime.protocol import EngineOpened, Generate, Generated, OpenEngine, Reason

# openvino-genai looks for this name.
_MODEL = "openvino_model.xml"
_NS_PER_MS = 1e6


def openvino_engine(openvino: Any) -> OpenVinoEngine:
    """Return the engine that people use with OpenVINO, or its stand-in."""
    try:
        return OpenVinoGenaiEngine(openvino, importlib.import_module("openvino_genai"))
    except (ImportError, AttributeError, OSError):
        return OpenVinoEngine(openvino)


class OpenVinoEngine:
    """A whole language model in a folder, which generates tokens with OpenVINO itself."""

    NAME = "openvino"

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        # What runs the model that is open, and the size of its vocabulary.
        self._running: Any = None
        self._vocabulary = 1

    def open(self, request: OpenEngine) -> EngineOpened:
        self._running = None
        began = time.perf_counter()
        self._load(Path(request.folder))
        return EngineOpened(self._version(), time.perf_counter() - began, self.NAME)

    def generate(self, request: Generate) -> Generated:
        """Read a prompt and generate tokens, each the most probable one."""
        if self._running is None:
            raise RefusalError(Reason.MALFORMED, "no model is loaded into the engine")
        tokens, processor_ns = prompt_of(request.prompt, self._vocabulary)[None], time.process_time_ns()
        first, *later = ask(partial(self._taken_ns, tokens, max(1, request.tokens)), Reason.UNBUILDABLE)
        return Generated(first, tuple(later), time.process_time_ns() - processor_ns, peak_bytes())

    def _version(self) -> str:
        return str(self._openvino.__version__.split("-")[0])

    def _load(self, folder: Path) -> None:
        core, model = self._read(folder)
        found = compiled(core, model, Reason.UNBUILDABLE)
        self._running = ask(found.create_infer_request, Reason.UNBUILDABLE)

    def _read(self, folder: Path) -> tuple[Any, Any]:
        """Return a core and the model of a folder, which keeps its caches."""
        core = self._openvino.Core()
        for extension in decoder_extensions(self._openvino):
            core.add_extension(extension)
        path = str(folder / "model.onnx")
        model = ask(lambda: with_state(core.read_model(path), is_whole=True), Reason.UNBUILDABLE)
        self._vocabulary = model.outputs[0].get_partial_shape()[2].get_length()
        return core, model

    def _taken_ns(self, tokens: Any, count: int) -> list[int]:
        """Return the time of the prompt with the first token, and that of each later one."""
        self._running.reset_state()
        began, taken = time.perf_counter_ns(), []
        for total in range(tokens.size, tokens.size + count):
            fed = {"input_ids": tokens, "attention_mask": numpy.ones((1, total), numpy.int64)}
            fed["beam_idx"] = numpy.zeros(1, numpy.int32)
            self._running.infer(fed, share_inputs=True, share_outputs=True)
            tokens = self._running.get_output_tensor(0).data[:, -1:].argmax(-1)
            ended = time.perf_counter_ns()
            taken.append(ended - began)
            began = ended
        return taken


class OpenVinoGenaiEngine(OpenVinoEngine):
    """The same with the pipeline of openvino-genai, which needs no words: prompts are numbers of tokens."""

    NAME = "openvino-genai"

    def __init__(self, openvino: Any, genai: Any) -> None:
        super().__init__(openvino)
        self._genai = genai

    def _version(self) -> str:
        return str(self._genai.__version__.split("-")[0])

    def _load(self, folder: Path) -> None:
        if not (folder / _MODEL).exists():
            _, model = self._read(folder)
            # People have files of 16 bits where the plugin computes with so many.
            is_short = settings()["INFERENCE_PRECISION_HINT"] != "f32"
            ask(lambda: self._openvino.save_model(model, folder / _MODEL, is_short), Reason.UNBUILDABLE)
            del model
            forget_peak()
        # The same attention as in carriers: the usual one has pages of caches, for many users at once.
        given = {**settings(), "ATTENTION_BACKEND": "SDPA"}
        self._running = ask(lambda: self._genai.LLMPipeline(str(folder), DEVICE, **given), Reason.UNBUILDABLE)

    def _taken_ns(self, tokens: Any, count: int) -> list[int]:
        config = self._genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = count
        # No token ends the text early, but the pipeline wants one that could.
        config.ignore_eos, config.eos_token_id, config.stop_token_ids = True, 0, {0}
        found = self._running.generate(self._openvino.Tensor(tokens), config).perf_metrics
        later_ms = numpy.diff(found.raw_metrics.m_new_token_times)
        return [round(it * _NS_PER_MS) for it in (found.get_ttft().mean, *later_ms)]
