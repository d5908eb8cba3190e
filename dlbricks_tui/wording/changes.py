"""Changes in words: verdicts on them, and the names of what-ifs."""

from collections.abc import Sequence

from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import ENGINES, TRAITS
from dlbricks_tui.runtime.variant import Optimisation, Precision, Variant, batch_in_words, threads_in_words
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.numbers import counted, in_ms, p_words, percent, signed_percent

_VERDICT_WIDTH = max(len(verdict.value) for verdict in Verdict)


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
    return f"{verdict.value:<{_VERDICT_WIDTH}}  {'; '.join(told)}"


def unmeasured_line(what: str, reason: str) -> str:
    """Return the line of a model without a latency."""
    return f"{Verdict.UNKNOWN.value:<{_VERDICT_WIDTH}}  {what}: {reason}"


def verdict_counts(verdicts: Sequence[Verdict]) -> str:
    """Return how often there is which verdict: `1 slower, 3 same`."""
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


def what_if_words(what_if: str) -> str:
    """Return a what-if, given its id, in plain words: `parallel-2` is `run 2 branches at once`."""
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
