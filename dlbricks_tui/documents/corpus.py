"""Repetition within and across models, and the accuracy of estimates at each granularity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import (
    CellKind,
    Column,
    Grid,
    Heading,
    Part,
    Sentence,
    Table,
    bar_column,
    name_column,
    word_column,
)
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import stated_kernels, stated_threads, threads_in_words
from dlbricks_tui.wording.numbers import counted, or_dash, percent, signed_percent, task_words

if TYPE_CHECKING:
    from dlbricks_tui.api.model_reading import GroupAccuracy
    from dlbricks_tui.bricks.decomposition import Corpus, RepeatedType
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.selections import Way

_TOGETHER = "all together"


def _inputs(source: ModelSource) -> str:
    """Return the shape of the first input, and the number of others."""
    first, *others = ["x".join(map(str, shape)) for shape in source.inputs.values()] or [""]
    return f"{first} +{len(others)}" if others else first


def _unique(source: ModelSource) -> str:
    known = source.unique_layers is not None and source.layers
    return percent((source.unique_layers or 0) / (source.layers or 1), 1) if known else "?"


# The models of the library.
MODEL_COLUMNS: tuple[Column[ModelSource], ...] = (
    name_column("model", lambda it: f"table1:{it.table1_id}" if it.table1_id else it.name),
    name_column("name", lambda it: it.name if it.table1_id else "" if it.task else str(it.path)),
    Column("task", lambda it: task_words(it.task), CellKind.WORD, is_optional=True),
    word_column("format", lambda it: "both" if len(it.formats) > 1 else it.format.value),
    Column("layers", lambda it: "?" if it.layers is None else f"{it.layers:,}"),
    Column("unique", _unique),
    word_column("inputs", _inputs),
)


@dataclass(frozen=True, slots=True)
class CountedLayers:
    """The layers of a model, or of all models together, which have no number."""

    name: str
    layers: int
    unique_layers: int
    number: int | None = None

    @property
    def share(self) -> float:
        """Unique layers over layers."""
        return _part(self.unique_layers, self.layers)


def corpus_parts(corpus: Corpus, labels: Sequence[str], unit: str, speedup: float | None) -> Iterator[Part]:
    """Yield totals, unique layers per model, repeated layers by kind, and the similarity of every two models.

    `unit` is `layer` or `sequence`; `labels` are the names of the models.
    """
    models = models_of(corpus, labels)
    yield Sentence(totals_words(corpus, unit))
    if speedup is not None:
        yield Sentence(f"measured on this host, the models take {speedup:.2f} times as long as their unique bricks")
    yield Heading(f"Unique {unit}s per model")
    yield Table(model_columns(unit), (*models, *together(corpus)))
    yield Heading(f"Repeated {unit}s by kind: {repeated_words(corpus)}")
    yield Table(kind_columns(corpus.repeated_types, unit), corpus.repeated_types)
    if len(models) > 1:
        yield Heading("Shared bricks of every two models (Jaccard similarity, percent)")
        yield Grid(tuple(it.name for it in corpus.models), corpus.jaccard)


def totals_words(corpus: Corpus, unit: str) -> str:
    """Return how many layers are unique in all models."""
    layers = f"{counted(len(corpus.models), 'model')}, {counted(corpus.layers, unit)}"
    unique = f"{corpus.unique_layers:,} unique ({_share(corpus.unique_layers, corpus.layers)})"
    repeats = f"{corpus.layers - corpus.unique_layers:,} repeats"
    return f"{layers}: {repeats}, {unique}, {corpus.contexts:,} with neighbours"


def repeated_words(corpus: Corpus) -> str:
    """Return how many layers are repeated: `688 of 936 occur more than once in their model`."""
    repeated = sum(it.repeated for it in corpus.repeated_types)
    return f"{repeated:,} of {corpus.layers:,} occur more than once in their model"


def models_of(corpus: Corpus, labels: Sequence[str]) -> tuple[CountedLayers, ...]:
    """Return the layers of each model."""
    models = zip(labels, corpus.models, strict=True)
    return tuple(
        CountedLayers(label, it.layers, it.unique_layers, number) for number, (label, it) in enumerate(models, 1)
    )


def together(corpus: Corpus) -> tuple[CountedLayers, ...]:
    """Return the layers of all models together; nothing for a single model."""
    several = len(corpus.models) > 1
    return (CountedLayers(_TOGETHER, corpus.layers, corpus.unique_layers),) if several else ()


def model_columns(
    unit: str, fit: Callable[[Sequence[str], int], Sequence[str]] | None = None
) -> tuple[Column[CountedLayers], ...]:
    """Return the columns of the layers of models; `fit` shortens the names of all models."""
    return (
        Column("", lambda it: it.number or "", style="muted"),
        Column("model", lambda it: it.name, CellKind.NAME, lambda it: "text" if it.number else "heading", fit=fit),
        Column(f"{unit}s", lambda it: f"{it.layers:,}"),
        Column("unique", lambda it: f"{it.unique_layers:,}", style="strong"),
        Column("share", lambda it: _share(it.unique_layers, it.layers)),
        bar_column(lambda it: it.share),
    )


def kind_columns(found: Sequence[RepeatedType], unit: str) -> tuple[Column[RepeatedType], ...]:
    """Return the columns of the kinds of layers, and their shares of all repeated layers."""
    repeated = sum(it.repeated for it in found)
    return (
        name_column("kind", lambda it: it.kind.value),
        Column(f"{unit}s", lambda it: f"{it.layers:,}"),
        Column("repeated", lambda it: f"{it.repeated:,}", style="strong"),
        Column("share", lambda it: _share(it.repeated, repeated)),
        bar_column(lambda it: _part(it.repeated, repeated)),
    )


def granularity_columns(found: Sequence[GroupAccuracy]) -> tuple[Column[GroupAccuracy], ...]:
    """Return the columns of speed-up and accuracy; the last has what the rows do not have in common."""
    most, common = max((it.accuracy.speedup or 0.0 for it in found), default=0.0), common_words(found)

    def where(it: GroupAccuracy) -> str:
        return ", ".join(word for word in (*_words_of(it.group.way), it.measured) if word and word not in common)

    return (
        Column("bricks of", lambda it: counted(it.group.granularity, "layer"), style="strong"),
        Column("speed-up", lambda it: or_dash("{:.2f}x".format, it.accuracy.speedup), style="strong"),
        bar_column(lambda it: (it.accuracy.speedup or 0.0) / most if most else 0.0),
        Column("error", lambda it: percent(it.accuracy.mean_absolute_error, 1), style="strong"),
        Column("worst", lambda it: signed_percent(it.accuracy.worst_error)),
        Column("models", lambda it: it.accuracy.models),
        name_column("on", where, "muted"),
    )


def common_words(found: Sequence[GroupAccuracy]) -> tuple[str, ...]:
    """Return what all rows of several have in common: system, runtime, level, threads or kernels."""
    ways = [_words_of(it.group.way) for it in found]
    return tuple(words[0] for words in zip(*ways, strict=True) if len(ways) > 1 and len({*words}) == 1 and words[0])


def _words_of(way: Way) -> tuple[str, ...]:
    """Return what tells rows apart, the most telling first: a narrow terminal cuts off the end."""
    kernels = ", ".join(stated_kernels(way.runtime).words)
    threads = threads_in_words(stated_threads(way.runtime))
    return (kernels, threads, way.level.value, runtime_title(way.runtime), way.system)


def _part(some: int, of: int) -> float:
    return some / of if of else 0.0


def _share(some: int, of: int) -> str:
    return percent(some / of, 1) if of else "-"
