"""A report: from what the store knows of some models to a page with its figures."""

from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.report.evaluation import Evaluation
from dlbricks_tui.report.exhibit import Section
from dlbricks_tui.report.figures.corpus import repetition_section, similarity_section, uniqueness_section
from dlbricks_tui.report.figures.end_to_end import end_to_end_section
from dlbricks_tui.report.figures.graph import graph_section
from dlbricks_tui.report.figures.ratios import composed_section, constructed_section
from dlbricks_tui.report.figures.summary import closeness_section, judged, speedup_section, summary_table
from dlbricks_tui.report.figures.table1 import table1_section
from dlbricks_tui.report.page import Contents, page
from dlbricks_tui.report.subjects import Subject
from dlbricks_tui.report.tracing import bricks_table
from dlbricks_tui.report.writing import write_report

_FIGURES = "figures"
_BRICKS = "bricks.csv"


@dataclass(frozen=True, slots=True)
class Report:
    """What was written: the page, and its sections with what they miss."""

    page: Path
    sections: tuple[Section, ...]
    files: tuple[Path, ...]


def make_report(evaluation: Evaluation, folder: Path) -> Report:
    """Draws everything and writes it into the folder."""
    found = judged(evaluation)
    sections = (
        table1_section(evaluation),
        graph_section(evaluation),
        composed_section(evaluation),
        uniqueness_section(evaluation),
        repetition_section(evaluation),
        similarity_section(evaluation),
        end_to_end_section(evaluation),
        constructed_section(evaluation),
        closeness_section(evaluation, found),
        speedup_section(evaluation, found),
    )
    texts = {f"{it.name}.csv": it.table.csv() for section in sections for it in section.exhibits}
    texts |= {f"{it.name}.svg": it.svg for section in sections for it in section.exhibits if it.svg}
    texts[_BRICKS] = bricks_table(evaluation).csv()
    contents = Contents(_lead(evaluation), summary_table(found) if found else None, sections)
    written = write_report(folder, page(contents, _FIGURES), texts, _FIGURES)
    return Report(written, sections, tuple(folder / _FIGURES / name for name in texts))


def _lead(evaluation: Evaluation) -> tuple[str, ...]:
    models = f"{len(evaluation.subjects)} model{'' if len(evaluation.subjects) == 1 else 's'}"
    if not evaluation.series:
        about = (
            f"{models}. Nothing was measured of them yet: what needs no latencies is here, and each figure says what "
            "it lacks and which command gets it."
        )
    else:
        about = _measured(evaluation, models)
    paper = (
        "The tables and figures are those of DLBricks: Composable Benchmark Generation to Reduce Deep Learning "
        "Benchmarking Effort on CPUs (Li, Dakkak, Xiong and Hwu, ICPE 2020, arXiv:1911.07967), from the results in "
        "this store, beside what the authors published."
    )
    return (paper, about)


def _measured(evaluation: Evaluation, models: str) -> str:
    """Say how many of the models were measured, and in which ways."""
    whole = [it for it in evaluation.series if it.measured]
    series = whole or evaluation.series
    ways = f"{len(series)} way{'' if len(series) == 1 else 's'}: {'; '.join(it.title for it in series)}"
    measured = len(frozenset[Subject]().union(*(it.measured for it in whole)))
    if not measured:
        return f"{models}, none of them measured. Some of their bricks were measured in other models, in {ways}."
    if measured == len(evaluation.subjects):
        return f"{models}, measured in {ways}."
    return f"{models}, {measured} of them measured, in {ways}."
