"""How fast language models run: from the store, predicted where it lacks bricks, or measured by another process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from dlbricks_tui.answers.language.results import (
    DelayOfPrompt,
    LanguageAnswer,
    LanguageIntervals,
    LanguageOptions,
    PartTime,
    SpeedAtContext,
)
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language.composing import BrickTime, StepTime, known_bricks, step_time, steps_time
from dlbricks_tui.language.decoder import Decoder, Step, decoder, distinct_blocks, steps_for
from dlbricks_tui.language.memory import memory_need
from dlbricks_tui.language.opening import NamedModel, library_models
from dlbricks_tui.language.orders import LanguageMessage, LanguageOrder, LanguageVariant, MeasuredEngine, decode
from dlbricks_tui.language.predicting import BrickPredictor, bytes_read, measured_steps
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.database import ResultsDatabase

if TYPE_CHECKING:
    from dlbricks_tui.answers.child_process import ChildProcess
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.records import System

# The lengths that pictures show, as far as the model goes.
_CONTEXTS = (128, 512, 1024, 2048, 4096, 8192)
_PROMPTS = (16, 128, 512, 1024, 2048)
_EVERY_TOKEN = "every token"
_MS = 1000.0


def stored_answers(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, *, has_curves: bool = True
) -> tuple[LanguageAnswer, ...]:
    """Return an answer for each model in each variant, from the store, and predicted where it lacks bricks."""
    system = fingerprint()
    with ResultsDatabase(data.store) as store:
        asked = [_Asked(store, system, variant, options) for variant in variants_of(options, data)]
        pairs = product(models, asked)
        return tuple([it.answer(it.variant.fitted(model), has_curves=has_curves) for model, it in pairs])


def library_answers(options: LanguageOptions, data: DataFolder) -> tuple[LanguageAnswer, ...]:
    return stored_answers(library_models(), options, data, has_curves=False)


def measure(
    models: Sequence[NamedModel],
    options: LanguageOptions,
    data: DataFolder,
    take: Callable[[LanguageMessage], None],
    *,
    end_to_end: bool = False,
) -> tuple[LanguageAnswer, ...]:
    """Measure what the store lacks, pass on the messages of the process, and return the answers."""
    language_process(models, options, data, end_to_end=end_to_end).run(take)
    return stored_answers(models, options, data)


def language_process(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, *, end_to_end: bool = False
) -> ChildProcess[LanguageMessage]:
    """Return the process that measures language models; it has not started yet."""
    # Loaded here: stored answers need no process.
    from dlbricks_tui.answers.child_process import ChildProcess, JobFolder
    from dlbricks_tui.host.queue import WorkKind
    from dlbricks_tui.runs.control import command_of

    order = LanguageOrder(
        models=tuple(models),
        variants=variants_of(options, data),
        prompt=options.prompt,
        generate=options.generate,
        end_to_end=end_to_end,
    )
    command = command_of("dlbricks_tui.language.measuring", str(data.path))
    return ChildProcess(command, pickle.dumps(order), JobFolder.new(data, WorkKind.LANGUAGE), decode)


def variants_of(options: LanguageOptions, data: DataFolder) -> tuple[LanguageVariant, ...]:
    """Return each runtime with each number of threads and each precision of weights."""
    registry = Registry(data.path)
    named = [registry.find_installed(name) for name in options.runtimes]
    runtimes = named or [registry.runtime_for((Format.ONNX,))]
    counts: Sequence[int | None] = options.threads or (None,)
    return tuple(
        LanguageVariant(runtime.with_threads(threads), precision)
        for runtime, precision, threads in product(runtimes, options.precisions, counts)
    )


def runtimes_here(data: DataFolder) -> tuple[str, ...]:
    """Return the names of the runtimes of this host that run language models."""
    return tuple(it.name for it in Registry(data.path).all() if it.traits.format is Format.ONNX)


class _Asked:
    """A question in one variant, with what the store knows in it."""

    def __init__(
        self, store: ResultsDatabase, system: System, variant: LanguageVariant, options: LanguageOptions
    ) -> None:
        self._store, self._system, self.variant, self._options = store, system, variant, options
        identity = variant.runtime.identity
        self._measured = known_bricks(store, system.id, identity)
        self._predictor = BrickPredictor.of_host(store, system.id, identity, variant.threads)

    def answer(self, model: NamedModel, *, has_curves: bool) -> LanguageAnswer:
        options, sizes = self._options, model.architecture
        prompt, generate = options.prompt, options.generate
        reading, *writing = [self._decoder(model, step) for step in steps_for(prompt, generate)]
        prefill, *decoding = [step_time(it, self._time_of) for it in (reading, *writing)]
        decode = steps_time((0.5, decoding[0]), (0.5, decoding[-1]))
        total = steps_time((1, prefill), (generate - 1, decode))
        memory = memory_need(sizes, self.variant.precision, prompt + generate, prompt)
        bound = fmean(map(bytes_read, writing)) / self._predictor.rates.bytes_per_ms
        return LanguageAnswer(
            model=model.name,
            title=model.title,
            parameters=sizes.parameters,
            active_parameters=sizes.active_parameters,
            system=self._system.id,
            runtime=self.variant.runtime.identity,
            precision=self.variant.precision.value,
            threads=self.variant.threads,
            prompt_tokens=prompt,
            generated_tokens=generate,
            prefill_ms=prefill.ms,
            first_token_ms=prefill.ms,
            prefill_tokens_per_second=_MS * prompt / prefill.ms,
            decode_tokens_per_second=_MS / decode.ms,
            total_ms=total.ms,
            intervals=LanguageIntervals(
                prefill_ms=prefill.bounds_ms,
                first_token_ms=prefill.bounds_ms,
                prefill_tokens_per_second=_rates(prompt, prefill),
                decode_tokens_per_second=_rates(1, decode),
                total_ms=total.bounds_ms,
            ),
            memory_bytes=memory.total,
            memory=memory,
            host_memory_bytes=self._system.memory_bytes,
            fits=memory.total <= self._system.memory_bytes,
            coverage=total.coverage,
            is_measured=self._is_measured(model),
            measured_when=total.when or None,
            bound_tokens_per_second=_MS / bound,
            head=_EVERY_TOKEN,
            parts=tuple(
                PartTime(part.value, prefill.parts_ms.get(part, 0.0), decode.parts_ms.get(part, 0.0))
                for part in dict.fromkeys((*prefill.parts_ms, *decode.parts_ms))
            ),
            contexts=tuple(self._contexts(model)) if has_curves else (),
            prompts=tuple(self._prompts(model)) if has_curves else (),
            measured=self._engine(model),
        )

    def _decoder(self, model: NamedModel, step: Step) -> Decoder:
        sizes, variant = model.architecture, self.variant
        # A second block of a kind differs by its first norm, which counts where bricks were measured.
        blocks = None if self._measured else distinct_blocks(sizes, fewest=True)
        return decoder(sizes, variant.precision, step, variant.runtime.traits, blocks)

    def _time_of(self, graph: LayerGraph, layer: int) -> BrickTime:
        # Without any result no brick has to be told apart.
        found = self._measured.get(brick_of(graph, (layer,)).key) if self._measured else None
        return found or self._predictor.time_of(graph, layer)

    def _engine(self, model: NamedModel) -> MeasuredEngine | None:
        if not self._measured:
            return None
        # Loaded here: it needs what starts processes.
        from dlbricks_tui.language.end_to_end import EngineQuestion, engine_results

        asked = EngineQuestion(model, self.variant, self._options.prompt, self._options.generate)
        return engine_results(self._store, self._system.id, asked)

    def _is_measured(self, model: NamedModel) -> bool:
        """Return true if the store has every brick that a measurement takes."""
        if not self._measured:
            return False
        prompt, generate = self._options.prompt, self._options.generate
        steps = measured_steps(prompt, generate, model.architecture, self.variant, self._predictor)
        return all(key in self._measured for step in steps for key in self._decoder(model, step).keys)

    def _contexts(self, model: NamedModel) -> Iterator[SpeedAtContext]:
        own = {step.past for step in steps_for(self._options.prompt, self._options.generate) if step.past}
        for context in sorted({*own, *_CONTEXTS}):
            if context < model.architecture.positions:
                found = step_time(self._decoder(model, Step.decode(context)), self._time_of)
                low, high = _rates(1, found)
                yield SpeedAtContext(context, _MS / found.ms, low, high, found.coverage < 1.0)

    def _prompts(self, model: NamedModel) -> Iterator[DelayOfPrompt]:
        for prompt in sorted({self._options.prompt, *_PROMPTS}):
            if prompt <= model.architecture.positions:
                found = step_time(self._decoder(model, Step.prefill(prompt)), self._time_of)
                yield DelayOfPrompt(prompt, found.ms, *found.bounds_ms, found.coverage < 1.0)


def _rates(tokens: int, found: StepTime) -> tuple[float, float]:
    low_ms, high_ms = found.bounds_ms
    return _MS * tokens / high_ms, _MS * tokens / low_ms
