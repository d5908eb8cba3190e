"""How fast language models run: from the store, predicted where it lacks bricks, or measured by another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from dlbricks_tui.answers.language.options import LanguageOptions
from dlbricks_tui.answers.language.results import (
    DelayOfPrompt,
    LanguageAnswer,
    LanguageIntervals,
    MeasuredEngine,
    MemoryNeed,
    PartTime,
    SpeedAtContext,
)
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language.composing import StepTime, bytes_read, mean_step, step_time
from dlbricks_tui.language.decoder import Decoder, Step, decoder, distinct_blocks
from dlbricks_tui.language.library import NamedModel, library_models
from dlbricks_tui.language.memory import memory_need
from dlbricks_tui.language.orders import LanguageOrder, LanguageVariant, measured_steps, steps_for
from dlbricks_tui.language.predicting import BrickPredictor
from dlbricks_tui.language.stored import BrickTime, known_bricks
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.database import ResultsDatabase

if TYPE_CHECKING:
    from dlbricks_tui.answers.child_process import ChildProcess
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.language.messages import LanguageMessage
    from dlbricks_tui.store.records import System

# The lengths that pictures show, as far as the model goes.
_CONTEXTS = (128, 512, 1024, 2048, 4096, 8192)
_PROMPTS = (16, 128, 512, 1024, 2048)
_EVERY_TOKEN = "every token"
_MS = 1000.0


def stored_answers(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder
) -> tuple[LanguageAnswer, ...]:
    """Return an answer for each model in each variant, from the store, and predicted where it lacks bricks."""
    return tuple(_answers(models, options, data, has_curves=True))


def library_answers(options: LanguageOptions, data: DataFolder) -> tuple[LanguageAnswer, ...]:
    """Return an answer for each model of the library, without curves."""
    return tuple(_answers(library_models(), options, data, has_curves=False))


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
    from dlbricks_tui.host.queue import Kind
    from dlbricks_tui.language.messages import decode
    from dlbricks_tui.language.process import language_command

    order = LanguageOrder(
        models=tuple(models),
        variants=variants_of(options, data),
        prompt=options.prompt,
        generate=options.generate,
        end_to_end=end_to_end,
    )
    return ChildProcess(language_command(data), order.encoded(), JobFolder.new(data, Kind.LANGUAGE), decode)


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


def _answers(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, *, has_curves: bool
) -> Iterator[LanguageAnswer]:
    system = fingerprint()
    with ResultsDatabase(data.store) as store:
        asked = [_Asked(store, system, variant, options) for variant in variants_of(options, data)]
        for model, variant in product(models, asked):
            yield variant.answer(variant.fitted(model), has_curves=has_curves)


class _Asked:
    """A question in one variant, with what the store knows in it."""

    def __init__(
        self, store: ResultsDatabase, system: System, variant: LanguageVariant, options: LanguageOptions
    ) -> None:
        self._store = store
        self._system = system
        self._variant = variant
        self._options = options
        identity = variant.runtime.identity
        self._measured = known_bricks(store, system.id, identity)
        self._predictor = BrickPredictor.of_host(store, system.id, identity, variant.threads)

    def fitted(self, model: NamedModel) -> NamedModel:
        """Return a model as the runtime of the variant has it."""
        return self._variant.fitted(model)

    def answer(self, model: NamedModel, *, has_curves: bool) -> LanguageAnswer:
        """Return the answer for a model."""
        options, sizes = self._options, model.architecture
        prompt, generate = options.prompt, options.generate
        reading, *writing = [self._decoder(model, step) for step in steps_for(prompt, generate)]
        prefill, *decoding = [step_time(it, self._time_of) for it in (reading, *writing)]
        decode = mean_step(decoding[0], decoding[-1])
        total = _sum(prefill, decode, generate - 1)
        memory = MemoryNeed(*memory_need(sizes, self._variant.precision, prompt + generate, prompt))
        bound = fmean(map(bytes_read, writing)) / self._predictor.rates.bytes_per_ms
        latest = max(prefill.when, decode.when)
        return LanguageAnswer(
            model=model.name,
            title=model.title,
            parameters=sizes.parameters,
            active_parameters=sizes.active_parameters,
            system=self._system.id,
            runtime=self._variant.runtime.identity,
            precision=self._variant.precision.value,
            threads=self._variant.threads,
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
            measured_when=latest or None,
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
        sizes, variant = model.architecture, self._variant
        # A second block of a kind differs by its first norm, which counts where bricks were measured.
        blocks = None if self._measured else distinct_blocks(sizes, fewest=True)
        return decoder(sizes, variant.precision, step, variant.runtime.traits, blocks)

    def _time(self, model: NamedModel, step: Step) -> StepTime:
        return step_time(self._decoder(model, step), self._time_of)

    def _time_of(self, graph: LayerGraph, layer: int) -> BrickTime:
        """Return the latency of a layer: measured, or predicted."""
        # Without any result no brick has to be told apart.
        found = self._measured.get(brick_of(graph, (layer,)).key) if self._measured else None
        return found or self._predictor.time_of(graph, layer)

    def _engine(self, model: NamedModel) -> MeasuredEngine | None:
        """Return the results of the whole model in the engine."""
        if not self._measured:
            return None
        # Loaded here: it needs what starts processes.
        from dlbricks_tui.language.end_to_end import EngineQuestion, engine_results

        asked = EngineQuestion(model, self._variant, self._options.prompt, self._options.generate)
        found = engine_results(self._store, self._system.id, asked)
        if found is None:
            return None
        return MeasuredEngine(
            engine=found.engine,
            prefill_ms=found.prefill_ms,
            decode_tokens_per_second=found.tokens_per_second,
            when=found.when,
        )

    def _is_measured(self, model: NamedModel) -> bool:
        """Return true if the store has every brick that a measurement takes."""
        if not self._measured:
            return False
        options, variant = self._options, self._variant
        steps = measured_steps(options.prompt, options.generate, model.architecture, variant, self._predictor)
        graphs = [self._decoder(model, step).graph for step in steps]
        keys = (brick_of(graph, (layer.index,)).key for graph in graphs for layer in graph.layers)
        return all(key in self._measured for key in keys)

    def _contexts(self, model: NamedModel) -> Iterator[SpeedAtContext]:
        own = {step.past for step in steps_for(self._options.prompt, self._options.generate) if step.past}
        for context in sorted({*own, *_CONTEXTS}):
            if context < model.architecture.positions:
                found = self._time(model, Step.decode(context))
                low, high = _rates(1, found)
                yield SpeedAtContext(context, _MS / found.ms, low, high, found.coverage < 1.0)

    def _prompts(self, model: NamedModel) -> Iterator[DelayOfPrompt]:
        for prompt in sorted({self._options.prompt, *_PROMPTS}):
            if prompt <= model.architecture.positions:
                found = self._time(model, Step.prefill(prompt))
                yield DelayOfPrompt(prompt, found.ms, *found.bounds_ms, found.coverage < 1.0)


def _rates(tokens: int, found: StepTime) -> tuple[float, float]:
    low_ms, high_ms = found.bounds_ms
    return _MS * tokens / high_ms, _MS * tokens / low_ms


def _sum(prefill: StepTime, decode: StepTime, steps: int) -> StepTime:
    """Return the time of a prompt and so many steps behind it; both are wrong alike."""
    ms = prefill.ms + steps * decode.ms
    coverage = (prefill.ms * prefill.coverage + steps * decode.ms * decode.coverage) / ms
    return StepTime(ms, prefill.half_ms + steps * decode.half_ms, {}, coverage, max(prefill.when, decode.when))
