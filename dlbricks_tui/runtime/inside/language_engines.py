"""Engines that generate tokens with a whole language model: onnxruntime-genai, openvino-genai, and OpenVINO itself."""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError, imported
from dlbricks_tui.runtime.inside.openvino_decoders import decoder_extensions, with_state
from dlbricks_tui.runtime.inside.openvino_models import DEVICE, ask, compiled, settings
from dlbricks_tui.runtime.inside.ort_session import first_line, lacks_memory
from dlbricks_tui.runtime.protocol import (
    EngineOpened,
    Generate,
    Generated,
    OpenEngine,
    Reason,
    Serve,
    Served,
    ServedAnswer,
)

# Tokens of a prompt lie so far apart in the vocabulary.
_TOKEN_STEP = 7919
_NS_PER_SECOND = 1e9


def load_genai() -> Any:
    """Import `onnxruntime_genai`, which then tells nobody of its use."""
    genai = imported("onnxruntime_genai", "onnxruntime-genai")
    # Older versions send nothing.
    getattr(genai, "disable_telemetry_events", bool)()
    return genai


class GenaiEngine:
    """A language model in a folder, and the generator that runs it."""

    def __init__(self, genai: Any) -> None:
        self._genai = genai
        self._model: Any = None
        self._vocabulary = self._shortest = 0

    def open(self, request: OpenEngine) -> EngineOpened:
        self._model = None
        began = time.perf_counter()
        with _refusing():
            config = self._genai.Config(request.folder)
            threads = {"intra_op_num_threads": request.threads}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": threads}}}))
            self._model = self._genai.Model(config)
        declared = json.loads((Path(request.folder) / "genai_config.json").read_text(encoding="utf-8"))
        self._vocabulary = declared["model"]["vocab_size"]
        # Caches have to hold a window.
        self._shortest = declared["model"]["decoder"].get("sliding_window", {}).get("window_size", 0)
        return EngineOpened(self._genai.__version__, time.perf_counter() - began)

    def generate(self, request: Generate) -> Generated:
        """Read a prompt and generate tokens.

        The engine computes the prompt when it is given to it, and chooses the first token when it is asked for it.
        """
        prompt, tokens = self._prompt(request.prompt), max(1, request.tokens)
        with _refusing():
            generator = self._generator(len(prompt), tokens)
            processor_ns, began = time.process_time_ns(), time.perf_counter_ns()
            generator.append_tokens(prompt)
            taken = []
            for _ in range(tokens):
                generator.generate_next_token()
                ended = time.perf_counter_ns()
                taken.append(ended - began)
                began = ended
            processor_ns = time.process_time_ns() - processor_ns
        return Generated(taken[0], tuple(taken[1:]), processor_ns, peak_bytes())

    def serve(self, request: Serve) -> Served:
        """Serve users in batches: when one has ended, the requests that wait by then are the next one."""
        pauses = request.pauses_s
        prompt = self._prompt(request.prompt)
        answers: list[ServedAnswer] = []
        # By their times: the user, and the number of the request.
        due = [(int(of[0] * _NS_PER_SECOND), user, 0) for user, of in enumerate(pauses) if of]
        heapify(due)
        began = time.perf_counter_ns()
        while due:
            time.sleep(max(0.0, (due[0][0] + began - time.perf_counter_ns()) / _NS_PER_SECOND))
            now = time.perf_counter_ns() - began
            batch: list[tuple[int, int, int]] = []
            while due and due[0][0] <= now and len(batch) < request.batch:
                batch.append(heappop(due))
            if not batch:
                continue
            with _refusing():
                generator = self._generator(len(prompt), request.tokens, len(batch))
                generator.append_tokens(numpy.tile(prompt, len(batch)))
                generator.generate_next_token()
                first = time.perf_counter_ns() - began
                for _ in range(request.tokens - 1):
                    generator.generate_next_token()
                ended = time.perf_counter_ns() - began
            for asked, user, number in batch:
                answers.append(ServedAnswer(user, asked, first, ended))
                for pause_s in pauses[user][number + 1 : number + 2]:
                    heappush(due, (ended + int(pause_s * _NS_PER_SECOND), user, number + 1))
        return Served(tuple(answers))

    def _prompt(self, tokens: int) -> Any:
        if self._model is None:
            raise RefusalError(Reason.MALFORMED, "no model is loaded into the engine")
        return prompt_of(tokens, self._vocabulary).astype(numpy.int32)

    def _generator(self, prompt: int, tokens: int, batch: int = 1) -> Any:
        total = max(prompt + tokens, self._shortest)
        params = self._genai.GeneratorParams(self._model)
        # The shortest length is the longest one: no token ends the text early.
        params.set_search_options(max_length=total, min_length=total, do_sample=False, batch_size=batch)
        return self._genai.Generator(self._model, params)


def prompt_of(tokens: int, vocabulary: int) -> Any:
    """Return the tokens of a prompt, from all over the vocabulary."""
    return numpy.arange(tokens) * _TOKEN_STEP % vocabulary


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of the engine into refusals."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        reason = Reason.TOO_LARGE if lacks_memory(error) else Reason.UNBUILDABLE
        raise RefusalError(reason, first_line(error)) from error


def forget_peak() -> None:
    """Let the peak of this process begin anew, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_bytes() -> int:
    if sys.platform == "linux":
        # The other interface also counts the process that started this one.
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


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
