"""The columns of the list of models, the order of its rows, and the box that chooses columns."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dlbricks_tui.api.open_models import KnownLatency, id_of
from dlbricks_tui.documents.lines import Line, Span, column, cut
from dlbricks_tui.tui.dialogs.dialog import Dialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.model_names import family_rows, longest, room_for, told_apart
from dlbricks_tui.tui.widgets.rows import CheckedRows
from dlbricks_tui.wording.numbers import PREDICTED, UNKNOWN, age, milliseconds, part_of, percent, task_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dlbricks_tui.api.open_models import ModelId
    from dlbricks_tui.models.library import ModelSource

# The least width of names beside the last column alone, and beside several: columns are dropped to keep it.
LEAST_NAME, _GOOD_NAME = 16, 20
# From this width on names are shown whole, up to a length; in a wide screen beside the most important columns, too.
_ROOMY, _LONG_NAME, _MOST_IMPORTANT = 80, 70, 3
_GAP = 1

_NOTHING_KNOWN = KnownLatency("", None, 0, 0)
# The text of a cell with its style, a muted text, or None for what is not known.
Cell: TypeAlias = "tuple[str, str] | str | None"


class ModelColumn(NamedTuple):
    """A column with its width, and its meaning for the box that selects columns."""

    name: str
    width: int
    about: str
    # Of a model, what is known of its latency, and the present time.
    cell: Callable[[ModelSource, KnownLatency, float], Cell]
    right: bool = True
    heading: str = ""

    @property
    def title(self) -> str:
        return self.heading or self.name


def _unique(source: ModelSource, *_: object) -> Cell:
    known = source.layers and source.unique_layers is not None
    return percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN, "text"


def _per_second(_: ModelSource, known: KnownLatency, __: float) -> Cell:
    sign, style = (PREDICTED, "warn") if known.predicted else ("", "text")
    return None if known.per_second is None else (sign + milliseconds(known.per_second), style)


def _measured(_: ModelSource, known: KnownLatency, __: float) -> Cell:
    return None if known.end_to_end_ms is None else (milliseconds(known.end_to_end_ms), "text")


def _age(_: ModelSource, known: KnownLatency, now: float) -> Cell:
    return None if known.since is None else age(now - known.since)


def _combination(place: int) -> Callable[[ModelSource, KnownLatency, float], Cell]:
    """Return the cell of the runtime, or of its variant."""
    return lambda _, known, __: known.combination.partition(", ")[place] if known.figure else None


def _estimate(_: ModelSource, known: KnownLatency, __: float) -> Cell:
    if not known.possible:
        return "none", "warn"
    if known.figure:
        return known.figure, "warn" if known.predicted else "strong"
    return (f"{part_of(known.measured, known.layers)} run", "warn") if known.measured else None


# The most important last: the first ones are dropped when the panel is narrow.
COLUMNS = (
    ModelColumn("format", 11, "the formats of its files", lambda it, *_: ", ".join(f.value for f in it.formats), False),
    ModelColumn("variant", 18, "the threads and the batch size of the answer", _combination(2), False),
    ModelColumn("layers", 6, "the number of layers", lambda it, *_: None if it.layers is None else f"{it.layers:,}"),
    ModelColumn("unique", 6, "the share of layers that differ from all others", _unique),
    ModelColumn("task", 21, "the task, such as object detection", lambda it, *_: task_words(it.task), False),
    ModelColumn("per_second", 8, "images, sentences or rows in a second, by the answer", _per_second, heading="per s"),
    ModelColumn("measured", 8, "the end-to-end latency in ms", _measured),
    ModelColumn("runtime", 12, "the runtime of the answer", _combination(0), False),
    ModelColumn("age", 6, "the age of the oldest measurement in the answer", _age),
    ModelColumn(
        "estimate", 10, "the answer in ms: the fastest one measured, or a predicted range", _estimate, heading="ms"
    ),
)
FIRST_COLUMNS = ("layers", "unique", "task", "runtime", "age", "estimate")


def columns_in(names: Collection[str]) -> tuple[ModelColumn, ...]:
    """Return the columns of these names, in their order in the list."""
    return tuple(it for it in COLUMNS if it.name in names)


def fitting(columns: Sequence[ModelColumn], width: int, names: int = _GOOD_NAME) -> tuple[Sequence[ModelColumn], int]:
    """Return the columns that fit beside names of a width, and the width that they leave for names."""
    shown: list[ModelColumn] = []
    for each in reversed(columns):
        if width - each.width - _GAP >= (LEAST_NAME if each is columns[-1] else names):
            shown.insert(0, each)
            width -= each.width + _GAP
    return shown, width


def texts_of(
    columns: Sequence[ModelColumn], source: ModelSource, latency: KnownLatency | None, now: float
) -> list[tuple[str, str]]:
    """Return the cells of a model, each a text with its style."""
    cells = (each.cell(source, latency or _NOTHING_KNOWN, now) for each in columns)
    return [it if isinstance(it, tuple) else (UNKNOWN if it is None else it, "muted") for it in cells]


def in_columns(columns: Sequence[ModelColumn], cells: Iterable[tuple[str, str]]) -> Line:
    """Return cells, each after a gap."""
    spans: list[Span] = []
    for each, (text, style) in zip(columns, cells, strict=True):
        spans += [Span(" " * _GAP), column(cut(text, each.width), each.width, style, right=each.right)]
    return tuple(spans)


class ModelGroup(Enum):
    """A group of the list with its heading, in the order of the list."""

    RECENT = "Opened lately"
    OWN = "Yours"
    TO_TRY = "to try"
    TABLE_1 = "Table 1 of the paper"
    GLUON = "Gluon model zoo"
    ONNX = "ONNX samples"
    # Its models are no files: another screen has them.
    LANGUAGE = "Language models"


# They span tasks, sizes and formats. The first three take seconds: parallel branches, a detector of speech, and a
# transformer. Then the network that all compare with, a detector of objects, and 40 layers of which 5 differ.
SIX = ("squeezenet1.1", "silero_vad", "minilm", "resnet50_v1", "yolov8n", "Very Deep Net for Super-Resolution")
_NUMBERS = ("One", "Two", "Three", "Four", "Five", "Six")
# A list of fewer models needs no folding.
_MANY = 20


def usually_unfolded(models: int) -> frozenset[ModelGroup]:
    """Return the groups that are unfolded in a library of so many models until the user changes that."""
    usual = frozenset((ModelGroup.RECENT, ModelGroup.OWN, ModelGroup.TO_TRY))
    return usual if models >= _MANY else frozenset(ModelGroup) - {ModelGroup.LANGUAGE}


class ModelOrder(Enum):
    """An order of the list, as its title says it."""

    LIBRARY = ""
    NAME = "by name"
    TIME = "by time"
    LAYERS = "by layers"
    AGE = "by age"

    @property
    def column(self) -> str:
        """The name of the column that decides the order; empty for the names."""
        return {ModelOrder.TIME: "estimate", ModelOrder.LAYERS: "layers", ModelOrder.AGE: "age"}.get(self, "")


class ListedModel(NamedTuple):
    """A row of the list: a model as it is named there, or a heading."""

    text: str
    # None: a heading, of a group, a folder or a family.
    source: ModelSource | None
    in_family: bool = False
    # The group of a heading that can be unfolded.
    group: ModelGroup | None = None
    # The number of models in a folded group; None in an unfolded one.
    folded: int | None = None


class ListSection(NamedTuple):
    """Rows of the list: a heading, and models with their labels."""

    heading: ListedModel | None
    members: Sequence[tuple[str, ModelSource]] = ()


def in_order(
    sources: Sequence[ModelSource], order: ModelOrder, latencies: Mapping[ModelId, KnownLatency]
) -> list[ModelSource]:
    """Return the models in an order: the slowest, the largest and the newest first, and last those without a value."""
    if order is ModelOrder.LIBRARY:
        return list(sources)
    if order is ModelOrder.NAME:
        return sorted(sources, key=lambda it: it.name.casefold())

    def value(source: ModelSource) -> float | None:
        known = latencies.get(id_of(source), _NOTHING_KNOWN)
        return {ModelOrder.TIME: known.whole_ms, ModelOrder.LAYERS: source.layers, ModelOrder.AGE: known.since}[order]

    return sorted(sources, key=lambda it: (value(it) is None, -(value(it) or 0.0)))


def grouped(sources: Sequence[ModelSource], recent: Sequence[ModelId]) -> dict[ModelGroup, list[ModelSource]]:
    """Return the groups of the library that have models, in their order."""
    known = {id_of(it): it for it in sources}
    groups: dict[ModelGroup, list[ModelSource]] = {it: [] for it in ModelGroup}
    groups[ModelGroup.RECENT] = [known[it] for it in recent if it in known]
    for source in sources:
        if id_of(source) not in recent:
            groups[_group_of(source)].append(source)
    groups[ModelGroup.TO_TRY].sort(key=lambda it: SIX.index(it.name))
    return {group: members for group, members in groups.items() if members}


def _group_of(source: ModelSource) -> ModelGroup:
    # Only the manifest of the samples tells the task.
    if source.task is None:
        return ModelGroup.OWN
    if source.name in SIX:
        return ModelGroup.TO_TRY
    if source.table1_id is not None:
        return ModelGroup.TABLE_1
    return ModelGroup.GLUON if source.path.parent.name == "gluon" else ModelGroup.ONNX


def _by_folder(own: Sequence[ModelSource]) -> dict[str, list[ModelSource]]:
    """Return the user's models by their folders, which have no name if they need no headings."""
    folders: dict[str, list[ModelSource]] = {}
    for source in own:
        folders.setdefault(_short_path(source.path.parent), []).append(source)
    # A folder for each model would be a heading for each model.
    return folders if 1 < len(folders) <= len(own) // 2 else {"": list(own)}


def _short_path(folder: Path) -> str:
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(folder)


def labels(sources: Collection[ModelSource]) -> dict[ModelId, str]:
    """Return the names of the models; those of several models with one name are followed by their folders."""
    times = Counter(it.name for it in sources)
    in_folder = {id_of(it): f"{it.name} in {it.path.parent.name}" for it in sources if times[it.name] > 1}
    again = Counter(in_folder.values())
    found = {id_of(it): it.name for it in sources} | in_folder
    return found | {
        id_of(it): f"{it.name} in {it.path.parent}" for it in sources if again[in_folder.get(id_of(it), "")] > 1
    }


def sections_of(
    sources: Sequence[ModelSource], recent: Sequence[ModelId], unfolded: Collection[ModelGroup], language_models: int
) -> list[ListSection]:
    """Return the groups of the library; the last one stands for so many language models."""
    names = labels(sources)
    sections = []
    for group, members in grouped(sources, recent).items():
        title = f"{_NUMBERS[len(members) - 1]} to try" if group is ModelGroup.TO_TRY else group.value
        folded = None if group in unfolded else len(members)
        sections.append(ListSection(ListedModel(title, None, group=group, folded=folded)))
        if folded is None:
            for folder, inside in (_by_folder(members) if group is ModelGroup.OWN else {"": members}).items():
                heading = ListedModel(folder, None) if folder else None
                sections.append(ListSection(heading, [(names[id_of(it)], it) for it in inside]))
    last = ListedModel(ModelGroup.LANGUAGE.value, None, group=ModelGroup.LANGUAGE, folded=language_models)
    return [*sections, ListSection(last)] if language_models else sections


def list_rows(sections: Iterable[ListSection], order: ModelOrder, width: int) -> list[ListedModel]:
    """Return the rows of models that are in this order already, with names of at most `width` cells."""
    rows: list[ListedModel] = []
    for heading, members in sections:
        rows += [] if heading is None else [heading]
        names = [name for name, _ in members]
        if order is ModelOrder.LIBRARY:
            rows += [
                ListedModel(text, None if index is None else members[index][1], in_family)
                for text, index, in_family in family_rows(names, width)
            ]
        else:
            rows += [ListedModel(text, it) for text, (_, it) in zip(told_apart(names, width), members, strict=True)]
    return rows


def whole_names(sections: Iterable[ListSection], order: ModelOrder) -> int:
    """Return the width that shows the names of a list whole, up to a length."""
    need = room_for if order is ModelOrder.LIBRARY else longest
    needed = max((need([name for name, _ in members]) for _, members in sections), default=0)
    return min(max(_GOOD_NAME, needed), _LONG_NAME)


def room_beside(names: int, columns: Sequence[ModelColumn]) -> int:
    """Return the width of a list with names of a width beside the most important columns."""
    return names + sum(it.width + _GAP for it in columns[-_MOST_IMPORTANT:])


def names_room(names: int, columns: Sequence[ModelColumn], width: int, *, is_wide: bool = False) -> int:
    """Return the least width of names in a list: a wide list drops columns rather than parts of names."""
    roomy = min(_ROOMY, room_beside(names, columns)) if is_wide else _ROOMY
    return names if width >= roomy else _GOOD_NAME


class ModelColumnsScreen(Dialog[tuple[str, ...]]):
    """Returns the names of the selected columns."""

    scope = scopes.MODEL_COLUMNS
    HEADING = "Columns of the list of models"
    ABOUT = (
        "Marked columns are shown. A narrow list leaves out the first of them; {app.zoom} and {workbench.wider} help."
    )

    def __init__(self, shown: Iterable[str]) -> None:
        about = {it.name: (it.title, it.about) for it in COLUMNS}
        self._list = CheckedRows(shown, about.__getitem__, 12)
        self._list.items = tuple(about)
        super().__init__(self._list)

    def action_show_or_hide(self) -> None:
        self._list.check()

    def action_use(self) -> None:
        self.dismiss(tuple(name for name in self._list.items if name in self._list.chosen))
