"""Make a report: a page with its figures, written into a folder."""

from collections.abc import Sequence
from pathlib import Path

from dlbricks_tui.api.analyses import ModelRow
from dlbricks_tui.api.reported import ReportContents, ReportedModel
from dlbricks_tui.report.measured import analysis_sections, origins_section, scenarios_section
from dlbricks_tui.report.page import PageHeading, Report, written
from dlbricks_tui.report.paper import (
    bricks_table,
    closeness_section,
    composed_section,
    constructed_section,
    end_to_end_section,
    judged,
    speedup_section,
    summary_table,
    table1_section,
)
from dlbricks_tui.report.paper_models import graph_section, repetition_section, similarity_section, uniqueness_section
from dlbricks_tui.store.records import LoadTest, Provenance
from dlbricks_tui.wording.numbers import counted

_TITLE = "The evaluation of DLBricks, measured again"
_BRICKS = "bricks.csv"
_ABOUT_FILES = "`bricks.csv` there lists the stored results behind each latency; `dlbricks results show ID` shows them."


def make_report(
    contents: ReportContents,
    folder: Path,
    analysed: Sequence[ModelRow] = (),
    load_tests: Sequence[LoadTest] = (),
    origins: Sequence[Provenance] = (),
) -> Report:
    """Draw all figures and write the report into a folder.

    `analysed` are the models in each analysed execution, `load_tests` their measured scenarios, and `origins` where the
    results come from.
    """
    found = judged(contents)
    sections = (
        table1_section(contents),
        graph_section(contents),
        composed_section(contents),
        uniqueness_section(contents),
        repetition_section(contents),
        similarity_section(contents),
        end_to_end_section(contents),
        constructed_section(contents),
        closeness_section(contents, found),
        speedup_section(contents, found),
        *analysis_sections(analysed),
        scenarios_section(contents, load_tests),
        *origins_section(origins),
    )
    heading = PageHeading(_TITLE, _lead(contents), _ABOUT_FILES)
    bricks = {_BRICKS: bricks_table(contents).csv()}
    return written(folder, heading, summary_table(found) if found else None, sections, bricks)


def _lead(contents: ReportContents) -> tuple[str, ...]:
    models = counted(len(contents.reported_models), "model")
    whole = [it for it in contents.series if it.measured]
    series = whole or contents.series
    ways = f"{counted(len(series), 'way')}: {'; '.join(it.title for it in series)}"
    measured = len(frozenset[ReportedModel]().union(*(it.measured for it in whole)))
    if not series:
        about = (
            f"{models}. None of them was measured yet. The figures without latencies are here; each other figure names "
            "the command that measures its data."
        )
    elif not measured:
        about = f"{models}, none of them measured. Some of their bricks were measured in other models, in {ways}."
    elif measured == len(contents.reported_models):
        about = f"{models}, measured in {ways}."
    else:
        about = f"{models}, {measured} of them measured, in {ways}."
    paper = (
        "The tables and figures are those of DLBricks: Composable Benchmark Generation to Reduce Deep Learning "
        "Benchmarking Effort on CPUs (Li, Dakkak, Xiong and Hwu, ICPE 2020, arXiv:1911.07967), from the results in "
        "this store, beside the published values."
    )
    return (paper, about)
