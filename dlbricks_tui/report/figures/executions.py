"""The models of a report by their executions: each execution has figures and tables of its own."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.tables import ModelRow, by_execution
from dlbricks_tui.answers.analysis import table_rows
from dlbricks_tui.answers.analysis.table_rows import Cell
from dlbricks_tui.answers.reported import LONGEST_LABEL, file_name
from dlbricks_tui.wording.answers import way_line
from dlbricks_tui.wording.numbers import model_label

# The columns that tell the execution of a row.
EXECUTION_COLUMNS = table_rows.MODEL_COLUMNS[1:]


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
    return (it.table1_id, it.name, *(cell for held in cells for cell in held), *table_rows.model_cells(it)[1:])
