"""The answer to how fast a model is, in words: the figure, the name of its combination, and its age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import Precision, batch_in_words, stated_variant, threads_in_words, variant_in_words
from dlbricks_tui.wording.numbers import PREDICTED, age_words, counted, milliseconds, part_of, rough_range

if TYPE_CHECKING:
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.runtime.variant import Variant
    from dlbricks_tui.store.selections import Way


def figure_number(one: SystemEstimate) -> str:
    """Return the latency that answers, for a column of milliseconds: `16.70`, a prediction as a range: `~8.1-15`.

    It is empty if there is no figure.
    """
    figure = one.figure
    if figure is None:
        return ""
    if figure.is_measured:
        return milliseconds(figure.latency.value_ms)
    return PREDICTED + rough_range(figure.latency.low_ms, figure.latency.high_ms)


def figure_text(one: SystemEstimate) -> str:
    """Return the same with its unit: `16.70 ms`, `~8.1 to 15 ms`; empty if there is no figure."""
    number = figure_number(one)
    return f"{number.replace('-', ' to ')} ms" if number else ""


def combination_words(one: SystemEstimate) -> str:
    """Return the name of a combination: `MXNet, 1 thread, batch 1`, with its precision and kernels if unusual."""
    variant, framework = one.variant, one.way.runtime.partition("-")[0]
    usual = runtime_title(framework), threads_in_words(variant.threads), batch_in_words(variant.batch)
    unusual = [variant.precision.in_words] if variant.precision.is_unchecked else []
    return ", ".join([*filter(None, usual), *unusual, *variant.kernels.words])


def runtime_words(identity: str) -> str:
    """Return a runtime with its variant, by its identity: `ONNX Runtime 1.32.0, 2 threads`."""
    variant = stated_variant(identity)
    unusual = [] if variant.precision is Precision.F32 else [variant.precision.value]
    return ", ".join([runtime_title(identity), threads_in_words(variant.threads), *unusual, *variant.kernels.words])


def execution_words(runtime: str, level: Level) -> str:
    """Return a runtime, by its identity, at a level: `ONNX Runtime 1.32.0, 2 threads, fused layers`."""
    return f"{runtime_words(runtime)}, {level.value} layers"


def way_line(way: Way, variant: Variant) -> str:
    """Return the system, the runtime, the level and the variant of an execution."""
    return f"{way.system}, {runtime_title(way.runtime)}, {way.level.value} layers, {variant_in_words(variant)}"


def origin_words(one: SystemEstimate) -> str:
    """Return where the figure comes from, and its age: `measured 4 min ago`."""
    figure, coverage = one.figure, one.estimate.coverage
    if figure is None:
        if not one.is_measured:
            return "not measured yet"
        return f"{coverage.measured} of {counted(coverage.layers, 'layer')} measured: no figure yet"
    if not figure.is_measured:
        part = f", {part_of(coverage.measured, coverage.layers)} of its layers measured" if one.is_measured else ""
        return f"predicted{part}"
    how = "measured" if one.end_to_end is not None else "composed of bricks measured"
    return f"{how} {age_words(figure.between)}".rstrip()


def answer_words(one: SystemEstimate, *, chosen: bool = False, on: str = "") -> str:
    """Return the whole answer: `16.70 ms: MXNet, 1 thread, batch 1, measured 4 min ago`.

    `on` names the system, unless that is this host.
    """
    figure = figure_text(one)
    words = [combination_words(one), f"on {on}" if on else "", "as chosen" if chosen else "", origin_words(one)]
    told = ", ".join(filter(None, words))
    return f"{figure}: {told}" if figure else told


def faster_words(one: SystemEstimate, fastest: SystemEstimate | None) -> str:
    """Return the fastest combination that was measured, if the chosen one is slower or not measured; else nothing."""
    figure = one.figure
    if fastest is None or fastest.figure is None:
        return ""
    if figure is not None and figure.is_measured and figure.latency.value_ms <= fastest.figure.latency.value_ms:
        return ""
    return f"the fastest measured: {answer_words(fastest)}"
