"""Orders to measure language models: their variants, and the steps that are measured."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.decoder import Step, decoder
from dlbricks_tui.language.library import NamedModel
from dlbricks_tui.language.precision import WeightPrecision
from dlbricks_tui.language.predicting import BrickPredictor
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import threads_in_words

# One run of the carrier of a prompt takes at most so long, unless the prompt is as short as this.
_MOST_MS, _FEWEST_TOKENS = 4000.0, 32


# This version of ONNX Runtime has caches of windowed blocks that hold their window only; 1.23 has not.
_SHORT_CACHES = (1, 32)


@dataclass(frozen=True, slots=True)
class LanguageVariant:
    """How a runtime, with its number of threads, runs language models."""

    runtime: Runtime
    precision: WeightPrecision

    @property
    def threads(self) -> int:
        """The threads of the runtime."""
        return self.runtime.settings.threads or 0

    @property
    def words(self) -> str:
        """The variant in words."""
        return f"{self.precision.value}, {threads_in_words(self.threads)}"

    def fitted(self, model: NamedModel) -> NamedModel:
        """Return a model with caches of windowed blocks as long as the runtime wants them."""
        version = tuple([int(it) for it in self.runtime.version.split(".")[:2] if it.isdecimal()])
        if self.runtime.framework != "onnxruntime" or version >= _SHORT_CACHES or not any(model.architecture.windowed):
            return model
        return replace(model, architecture=replace(model.architecture, has_short_caches=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageOrder:
    """Models, each in every variant, for one prompt and so many generated tokens."""

    models: tuple[NamedModel, ...]
    variants: tuple[LanguageVariant, ...]
    prompt: int
    generate: int
    end_to_end: bool = False

    def encoded(self) -> bytes:
        """Return the order as the process reads it."""
        return pickle.dumps(self)


def steps_for(prompt: int, generate: int) -> tuple[Step, ...]:
    """Return the steps from which the whole answer follows: the prompt, the first token behind it, and the last."""
    contexts = dict.fromkeys((prompt, prompt + max(1, generate - 1) - 1))
    return (Step.prefill(prompt), *map(Step.decode, contexts))


def measured_steps(
    prompt: int, generate: int, model: Architecture, variant: LanguageVariant, predictor: BrickPredictor
) -> tuple[Step, ...]:
    """Return the steps to measure.

    A prompt that takes many seconds in its carrier stands for fewer of its tokens, and one context for both.
    """
    prefill, *others = steps_for(prompt, generate)
    while prefill.tokens > _FEWEST_TOKENS:
        carrier = decoder(model, variant.precision, prefill, variant.runtime.traits)
        once = sum(predictor.time_of(carrier.graph, layer.index).ms for layer in carrier.graph.layers)
        if once <= _MOST_MS:
            break
        prefill, others = Step.prefill(max(_FEWEST_TOKENS, prefill.tokens // 2)), others[-1:]
    return (prefill, *others)
