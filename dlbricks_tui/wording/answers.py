"""Answers in words: figures and executions, layers, changes, and doubts about all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import GraphInput, Layer, LayerGraph, Level, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.neutral import plain_name
from dlbricks_tui.printable import shell_words
from dlbricks_tui.runtime.traits import ENGINES, TRAITS, runtime_title
from dlbricks_tui.runtime.variant import (
    AskedVariant,
    Optimisation,
    Precision,
    Variant,
    batch_in_words,
    stated_threads,
    stated_variant,
    threads_in_words,
    variant_in_words,
)
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import options_in_words
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, THREADS, USUAL_EXECUTION
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    age_words,
    counted,
    in_ms,
    milliseconds,
    names_of,
    p_words,
    part_of,
    percent,
    rough_range,
    signed_percent,
    slower_words,
)

# Loaded where they are needed: the first screen shows answers, and needs no estimate and no numpy.
if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.estimate.explanation import Disagreement
    from dlbricks_tui.estimate.parts import Slowest, SlowPart
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.store.change import Verdict
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
    """Return the latency that answers with its unit: `16.70 ms`, `~8.1 to 15 ms`; empty if there is no figure."""
    if one.figure is not None and one.figure.is_measured:
        return in_ms(one.figure.latency.value_ms)
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


_MOST_OPERATORS = 4
# Other titles are the neutral name of the operator.
_SHORT_NAMES = {
    "conv_transpose": "deconv",
    "upsample_nearest": "upsample",
    # Layers as ONNX Runtime and OpenVINO execute them.
    "Conv": "conv",
    "MaxPool": "max pool",
    "AveragePool": "mean pool",
    **dict.fromkeys(("Reorder", "ReorderInput", "ReorderOutput"), "layout conversion"),
}
# ONNX's names of parameters.
_NEUTRAL = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation", "group": "groups"}
_JOINS = (Kind.CONCAT, Kind.COMBINE)
_UNKNOWN = "?"


def layer_title(layer: Layer) -> str:
    """Return the operators of a layer, its kernel, stride and output channels, and the number of joined tensors."""
    plain = map(plain_name, layer.op.split("+"))
    names = [_SHORT_NAMES.get(name, name).replace("_", " ") for name in plain]
    if activation := _params(layer).get("activation"):
        names.append(str(activation).lower())
    words = "+".join(names[:_MOST_OPERATORS]) + ("+..." if len(names) > _MOST_OPERATORS else "")
    joined = len(layer.data)
    of_many = f"of {joined}" if layer.kind in _JOINS and (joined > 2 or layer.kind is Kind.CONCAT) else ""
    return " ".join(filter(None, (words, *_window(layer), of_many)))


def shape_text(tensor: TensorType) -> str:
    """Return a shape as `1x64x56x56`."""
    return _UNKNOWN if tensor.shape is None else _by(tensor.shape) or "scalar"


def input_text(given: GraphInput) -> str:
    """Return the name of an input, its value if one is given, as `sr = 16000`, and its assumed sizes."""
    said = f"{given.name} = {','.join(map(str, given.value))}" if given.value else given.name
    return f"{said} ({_assumed(given)} assumed)" if given.assumed else said


def assumption(inputs: Iterable[GraphInput]) -> str:
    """Return which sizes of inputs are assumed, and how to give others; empty if there are none."""
    found = [it for it in inputs if it.assumed]
    sizes = [f"{_assumed(it)} in input {it.name[:80]}" for it in found]
    # Only first axes are.
    options = [f"--input {it.name[:80]}={','.join(['SIZE', *map(str, (it.type.shape or ())[1:])])}" for it in found]
    return f"assumed: {listed(sizes)}; {options[0]} gives another" if found else ""


def _assumed(given: GraphInput) -> str:
    return ", ".join(f"{axis[:80]} = 1" for axis in given.assumed)


def _window(layer: Layer) -> list[str]:
    params = _params(layer)
    kernel, strides, dilations = (params.get(name) or () for name in ("kernel", "stride", "dilation"))
    words = [_by(kernel) + (f"/{_once(strides)}" if {*strides} - {1} else ""), _width(layer)]
    words += [f"d{_once(dilations)}" if {*dilations} - {1} else ""]
    words += [f"g{params['groups']}" if params.get("groups", 1) != 1 else ""]
    if "scale" in params:
        words.append(f"x{params['scale']}")
    return words


def _width(layer: Layer) -> str:
    """Return the number of output channels or features of a layer with weights."""
    shape = layer.outputs[0].shape if layer.outputs else None
    if not shape or len(shape) < 2:
        return ""
    if layer.kind in (Kind.CONVOLUTION, Kind.DECONVOLUTION):
        return str(shape[1])
    return str(shape[-1]) if layer.kind is Kind.LINEAR else ""


def _params(layer: Layer) -> Mapping[str, Any]:
    """Return the parameters of the first operator with a kernel, also inside of fused ones; else of the first one."""
    forms: list[Mapping[str, Any]] = [
        {_NEUTRAL.get(name, name): value for name, value in operator.params} for operator in layer.operators
    ]
    forms += [params for operator in layer.operators for inner in operator.inner for params in _nested_params(inner)]
    return next((params for params in forms if "kernel" in params), forms[0] if forms else {})


@lru_cache(maxsize=1 << 10)
def _nested_params(canonical: str) -> tuple[Mapping[str, Any], ...]:
    """Return the parameters of each operator in the canonical form of a subgraph."""
    *nodes, _heads = json.loads(canonical)
    return tuple([dict(node[1]) for node in nodes if isinstance(node, list)])


def _by(sizes: Sequence[int] | Shape) -> str:
    return "x".join(map(str, sizes))


def _once(sizes: Sequence[int]) -> str:
    """Return `2` for a stride of two along every axis, else the stride of each."""
    return str(sizes[0]) if len(set(sizes)) == 1 else _by(sizes)


def common_beginning(names: Sequence[str]) -> str:
    """Return the words that all names begin with; nothing for a single name."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: max(first.rfind(sign, 0, same) for sign in "_/.") + 1]


def usual_beginning(names: Sequence[str]) -> str:
    """Return the words that at least four fifths of the names begin with; nothing for a single name."""
    ordered, odd = sorted(names), len(names) // 10
    # Names with the same beginning are neighbours.
    return common_beginning(ordered[odd : len(ordered) - odd])


def bricks_words(granularity: int) -> str:
    """Return the size of bricks: `bricks of 1 layer`, `bricks of up to 3 layers`."""
    return f"bricks of {'up to ' * (granularity > 1)}{counted(granularity, 'layer')}"


def cutting_words(cutting: Cutting) -> str:
    """Return how a model was cut: `bricks of up to 3 layers, cut overlap`, and in which order if that is unusual."""
    cut = [] if cutting.cut.value == "chain" else [f"cut {cutting.cut.value}"]
    order = [] if cutting.order.value == "branch" else [f"order {cutting.order.value}"]
    return ", ".join([bricks_words(cutting.granularity), *cut, *order])


def title_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the titles of its layers: `conv 3x3 64 > pool 2x2`."""
    return " > ".join(layer_title(graph.layers[index]) for index in slow.part.layers)


def name_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the name of its layer in the file, or of the first and the last one."""
    first, last = slow.part.layers[0], slow.part.layers[-1]
    name = graph.layers[first].name
    return name if first == last else f"{name} .. {graph.layers[last].name}"


def slowest_in_words(slow: Slowest) -> str:
    """Return the share that the slowest sequences take together."""
    if not slow.parts:
        return "no layer has a latency"
    single = all(len(it.part.layers) == 1 for it in slow.parts)
    of = f"{len(slow.parts)} of {counted(slow.sequences, 'layer' if single else 'sequence')}"
    takes = "takes" if len(slow.parts) == 1 else "take"
    return f"{of} {takes} {percent(slow.parts[-1].cumulative)} of {in_ms(slow.total_ms)}"


# A smaller speed-up is shown as 1.00.
_LEAST_GAIN = 1.005


def parallel_sentences(one: SystemEstimate) -> str:
    """Return how much faster parallel layers could make the model, and why it may be less here; empty if unknown."""
    composed, workers = one.estimate.composed, one.estimate.options.workers
    if composed is None:
        return ""
    part = " for the part with a latency" if one.estimate.is_partial else ""
    gain = composed.parallel_gain
    if composed.parallel_ms == composed.sequential_ms:
        return f"No two layers can run at the same time: parallel execution gains nothing{part}."
    if gain < _LEAST_GAIN:
        return f"Parallel layers gain less than 1 %{part}, even with cores of their own."
    sign = PREDICTED if one.estimate.coverage.predicted else ""
    most = f"At most {sign}{gain:.2f} times as fast{part}, if independent layers had cores of their own"
    told = f"{most}; {cores_in_words(one.variant.threads, one.cores)}."
    if composed.workers_ms is None or not composed.workers_ms or workers is None:
        return told
    with_workers = composed.sequential_ms / composed.workers_ms
    count = counted(workers, "worker")
    if f"{with_workers:.2f}" == f"{gain:.2f}":
        return f"{told} {count} {'is' if workers == 1 else 'are'} enough for that."
    return f"{told} With {count}: {sign}{with_workers:.2f} times."


def cores_in_words(threads: int | None, cores: int | None) -> str:
    """Return how many of the cores each brick used while it was timed."""
    if threads is None:
        return "here each brick used the default threads of the runtime"
    if cores is None:
        return f"here each brick used {counted(threads, 'thread')}"
    if threads < cores:
        return f"here each brick used {'one' if threads == 1 else threads} of {cores} cores"
    if cores == 1:
        return "this system has one core only"
    return f"here each brick already used {'both' if cores == 2 else f'all {cores}'} cores"


# The longest verdict.
_UNKNOWN_VERDICT = "unknown"


def p_phrase(p_value: float | None) -> str:
    """Return a p-value with its name: `p = 0.042`, `p < 0.001`; empty for too few samples."""
    if p_value is None:
        return ""
    words = p_words(p_value)
    return f"p < {words[1:]}" if words.startswith("<") else f"p = {words}"


def change_words(change: float, low: float, high: float) -> str:
    """Return a change with its interval: `+7.2 % (+6.1 to +8.3 %)`."""
    bounds = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
    return f"{signed_percent(change)} ({bounds})"


def short_combination(framework: str, variant: Variant, level: Level) -> str:
    """Return a combination, without what is usual: `onnxruntime, 1 thread`, `mxnet, 2 threads, batch 8, written`."""
    words = [framework, threads_in_words(variant.threads)]
    words += [batch_in_words(variant.batch)] if variant.batch != 1 else []
    words += [variant.precision.value] if variant.precision is not Precision.F32 else []
    words += variant.kernels.words
    words += [level.value] if level is not Level.FUSED else []
    return ", ".join(words)


def verdict_line(
    verdict: Verdict, what: str, was_ms: float, is_ms: float, change: str, p_value: float | None, notes: Sequence[str]
) -> str:
    """Return a verdict in one line; `notes` are the reason for doubt, and the differences."""
    figures = [f"{in_ms(was_ms)} -> {in_ms(is_ms)}", change, p_phrase(p_value)]
    told = [f"{what}: {', '.join(filter(None, figures))}", *notes]
    return f"{verdict.value:<{len(_UNKNOWN_VERDICT)}}  {'; '.join(told)}"


def unmeasured_line(what: str, reason: str) -> str:
    """Return the line of a model without a latency."""
    return f"{_UNKNOWN_VERDICT}  {what}: {reason}"


def verdict_counts(verdicts: Sequence[Verdict]) -> str:
    """Return how often there is which verdict: `1 slower, 3 same`."""
    from dlbricks_tui.store.change import Verdict

    counts = [(verdict, sum(it is verdict for it in verdicts)) for verdict in Verdict]
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts if count)


def check_heading(file: str, days: str, models: int, processes: int, by: float) -> str:
    """Return what a check does, before it begins."""
    return (
        f"checking {counted(models, 'combination')} of {file}{days and f', measured {days}'}, each in "
        f"{processes} process{'' if processes == 1 else 'es'}; changes up to {percent(by, 1)} count as none"
    )


_BY_ID = {
    "runtime-mix": "mix the fastest runtimes",
    "runtime-default-engine": "use the default engine",
    "kernels-default": "use all kernels",
    "fusion": "fuse more layers",
    "fusion-off": "fuse no layers",
    "head-last": "score the last token",
    "vocabulary-half": "halve the vocabulary",
}
_OPTIMISATIONS = {it.value for it in Optimisation}


def rough_peaks_words(threads: Iterable[int]) -> str:
    """Return that the store lacks the peaks of this host for these numbers of threads, and what adds them."""
    cures = [f"`dlbricks doctor --peaks{f' --threads {it}' * (it > 0)}`" for it in sorted(set(threads))]
    return (
        f"{PREDICTED} the peaks of this host are not stored: each command measures them for a moment, and predictions "
        f"of a busy host differ each time; to store them: {names_of(cures)}"
    )


def what_if_words(what_if: str) -> str:
    """Return a what-if, given its id, in plain words: `parallel-2` is `run 2 branches at once`."""
    from dlbricks_tui.analysis.what_if import WhatIfKind

    kind, _, name = what_if.partition("-")
    known = {**TRAITS, **ENGINES}
    words = {
        WhatIfKind.PARALLEL: f"run {name} branches at once",
        WhatIfKind.RUNTIME: f"run it in {known[name].title}" if name in known else "",
        WhatIfKind.KERNELS: f"optimise less: {name}" if name in _OPTIMISATIONS else f"use {name} kernels",
        WhatIfKind.PRECISION: f"compute in {name}",
        WhatIfKind.THREADS: f"use {threads_in_words(int(name))}" if name.isdecimal() else "",
        WhatIfKind.BATCH: f"use batches of {name}",
    }
    if kind in ("weights", "cache"):
        return f"{kind} as {name}"
    if kind == "flash":
        return f"flash attention {name}"
    if len(both := name.split("-")) == 2 and kind == WhatIfKind.THREADS.value:
        return f"{threads_in_words(int(both[0]))}, {both[1]} for decode"
    return _BY_ID.get(what_if) or next((it for each, it in words.items() if each.value == kind), "") or what_if


# What to doubt, by the one of two latencies that is suspected.
_SUSPECTS = {
    "estimate": "doubt its bricks: they",
    "measurement": "doubt the latency: its bricks",
    "either": "doubt it: its bricks",
}


def doubts_about(one: SystemEstimate, named: str = "") -> tuple[str, ...]:
    """Return a sentence for each reason to doubt the figures of a model, with the command that settles it.

    `named` is the model as commands name it, if not by its name.
    """
    from dlbricks_tui.estimate.explanation import disagreement

    command = settling_command(one, named)
    found, slow = disagreement(one), slow_host(one)
    if found is not None:
        return tuple(filter(None, (slow, _contradiction(one, found, command))))
    return (f"{slow} `{command}` on a quiet host replaces them.",) if slow else ()


def named_in_commands(graph: LayerGraph) -> str:
    """Return a model as commands find it: a sample by its name, another one by its path."""
    is_sample = graph.file is None or graph.file.is_relative_to(SAMPLE_MODELS)
    return graph.name if is_sample else str(graph.file)


def doubt_in_short(one: SystemEstimate) -> str:
    """Return the first reason to doubt the figures of a model in a few words; empty without one."""
    from dlbricks_tui.estimate.explanation import disagreement, slowdown

    composed, whole, slow = one.estimate.composed, one.end_to_end, slowdown(one)
    found = disagreement(one)
    if found is not None and composed is not None and whole is not None:
        low, high = milliseconds(composed.latency.low_ms, precise=True), in_ms(composed.latency.high_ms)
        return f"{_SUSPECTS[found.suspect.value]} add up to {low} to {high}"
    return "" if slow is None else f"doubt it: the host was {slower_words(slow.largest - 1)} than usual"


def slow_host(one: SystemEstimate) -> str:
    """Return by how much the host was slower than usual when the figures of a model were measured; empty if not."""
    from dlbricks_tui.estimate.explanation import slowdown

    found = slowdown(one)
    if found is None:
        return ""
    apart = min(found.bricks, found.model) < found.largest - 0.1
    if apart and one.end_to_end:
        what = "the model was" if found.model > found.bricks else "the bricks were"
    else:
        what = "this was"
    return (
        f"The host was {slower_words(found.largest - 1)} than usual when {what} measured: the figures may be too "
        "high by as much."
    )


def settling_command(one: SystemEstimate, named: str = "") -> str:
    """Return the command that measures a model and its bricks anew, together, in the variant of an estimate."""
    found, batch = one.estimate, one.variant.batch
    own = {"threads": stated_threads(one.way.runtime), "batch": batch if batch > 1 else None}
    words = options_of(one.runtime_name, AskedVariant(**one.variant.parts | own), found.level, found.cutting)
    return shell_words(["dlbricks", "run", named or found.model, *words, "--again", "--end-to-end"])


def options_of(
    runtime: str, variant: AskedVariant, level: Level | None, cutting: Cutting, usual: Cutting | None = None
) -> list[str]:
    """Return the options of `dlbricks run` for a runtime, a variant and a cutting, without those that are usual."""
    given = (
        (RUNTIME, runtime or None),
        *((it, getattr(variant, it.field)) for it in (THREADS, *EXECUTION)),
        (LEVEL, level),
        *((it, getattr(cutting, it.field)) for it in CUTTING),
    )
    asked = ((it, value) for it, value in given if value is not Precision.FILE)
    from dlbricks_tui.bricks.decomposition import Cutting

    usual = usual or Cutting()
    return [*options_in_words(asked, {**USUAL_EXECUTION, **{it: getattr(usual, it.field) for it in CUTTING}})]


def _contradiction(one: SystemEstimate, found: Disagreement, command: str) -> str:
    from dlbricks_tui.estimate.explanation import Suspect

    composed, whole = one.estimate.composed, one.end_to_end
    if composed is None or whole is None:
        return ""
    low, high = milliseconds(composed.latency.low_ms, precise=True), in_ms(composed.latency.high_ms)
    outside = f"{in_ms(whole.value_ms)} measured is outside of the estimate's {low} to {high}"
    if found.suspect is Suspect.EITHER:
        return f"{outside}, and nothing says which of the two is wrong: `{command}` measures both anew."
    return f"{outside}. Doubt the {found.suspect.value}: {_reason(one, found)}. `{command}` measures both anew."


def _reason(one: SystemEstimate, found: Disagreement) -> str:
    from dlbricks_tui.estimate.explanation import Clue, Suspect

    of_estimate = found.suspect is Suspect.ESTIMATE
    match found.clue:
        case Clue.SLOWER_HOST:
            while_what = "its bricks than for the model" if of_estimate else "the model than for its bricks"
            return f"the host was {found.times_slower:.2f} times as slow for {while_what}"
        case Clue.FEW_SAMPLES:
            return f"it has {counted(one.timed_samples, 'sample')} only"
        case Clue.WIDER_INTERVAL:
            return f"its interval is wider than that of the {'measurement' if of_estimate else 'estimate'}"
        case Clue.OTHER_NETWORKS:
            return "some of its bricks were timed in other networks"
        case _:
            return "it is older"


def engine_remarks(found: Iterable[SystemEstimate]) -> list[str]:
    """Return for each framework a line that says with which engine the end-to-end latencies hold; usually none."""
    told = {}
    for one in found:
        traits = TRAITS.get(one.way.runtime.partition("-")[0])
        if traits is None or one.end_to_end is None or one.way.protocol != Method.INSIDE.id:
            continue
        own = dict(word.split("=", 1) for word in one.way.runtime.split(" ") if "=" in word)
        # On one thread both are as fast.
        if one.variant.threads != 1 and any(name not in own for name, _ in traits.default_engine):
            settings = " ".join(f"{name}={value}" for name, value in traits.profiling_settings)
            told[traits.title] = f"end to end with {settings}; {traits.title}'s default can be slower"
    return list(told.values())
