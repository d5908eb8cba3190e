"""The models of a report by their executions, each with figures and tables of its own, and the rows of figures."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.tables import ModelRow, by_execution
from dlbricks_tui.answers import analyses as results
from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import LONGEST_LABEL, file_name
from dlbricks_tui.documents.pictures import LegendSign, Mark, Piece
from dlbricks_tui.report.drawing import series_style
from dlbricks_tui.wording.answers import way_line
from dlbricks_tui.wording.numbers import model_label

# The columns that tell the execution of a row.
EXECUTION_COLUMNS = results.MODEL_COLUMNS[1:]


class ExecutedModels(NamedTuple):
    """The models of one execution, its name for people, and one for files."""

    models: Sequence[ModelRow]
    title: str
    slug: str

    @property
    def labels(self) -> list[str]:
        """The names of the models as figures show them."""
        return [model_label(it.name, it.table1_id, LONGEST_LABEL) for it in self.models]


def executed_models(models: Sequence[ModelRow]) -> list[ExecutedModels]:
    """Return the models of each execution."""
    found: list[ExecutedModels] = []
    for alike in by_execution(models):
        way = alike[0].way
        slug = file_name(f"{way.system}-{way.runtime.partition('-')[0]}-{way.level.value}")
        beside = sum(it.slug == slug or it.slug.startswith(f"{slug}-no") for it in found)
        found.append(
            ExecutedModels(alike, way_line(way, alike[0].variant), f"{slug}-no{beside + 1}" if beside else slug)
        )
    return found


def table_row(it: ModelRow, *cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the row of a model: its name, some cells, and its execution."""
    return (it.table1_id, it.name, *(cell for held in cells for cell in held), *results.model_cells(it)[1:])


# Within 5 % of one, behind the marks of a row.
CLOSE = Piece(0.95, 1.05, "·", "░", "rest")
PUBLISHED_LAYERS = LegendSign("◇", "published, single layers", "muted")


def series_meaning(number: int, name: str) -> LegendSign:
    """Return the meaning of the sign of a series."""
    found = series_style(number)
    return LegendSign(found.sign, name, found.style)


def marked(meaning: LegendSign, value: float, most: float = float("inf")) -> Mark:
    """Return a mark at a value, or an arrow at the end of the axis for a value beyond it."""
    return Mark(min(value, most), meaning.mark if value <= most else "▶", meaning.style)


def bar_from_zero(high: float, meaning: LegendSign) -> Piece:
    """Return a bar from zero."""
    return Piece(0.0, high, meaning.mark, meaning.block, meaning.style)


def thin_line(one: float, other: float, style: str) -> Piece:
    """Return a line between two values, such as the ends of an interval."""
    return Piece(min(one, other), max(one, other), "-", "─", style)
