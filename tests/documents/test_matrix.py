from dataclasses import replace

from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.ranking import (
    MatrixRow,
    batch_sizes,
    cell_parts,
    cell_style,
    cell_text,
    column_points,
    matrix_columns,
    matrix_parts,
    matrix_rows,
    repeat_sentence,
    row_points,
)
from dlbricks_tui.estimate.ranking import Comparable, Ranking, ranked
from dlbricks_tui.runtime.variant import InstructionSet
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.documents.test_ranking import MIXED, called
from tests.estimate.test_curve import point
from tests.estimate.test_ranking import estimated, predicted, timed


def with_threads(threads: int | None, comparable: Comparable, runtime: str = "onnxruntime") -> Comparable:
    found = called(comparable, runtime, threads=threads)
    return replace(found, point=replace(found.point, threads=threads))


def ranking_of(*combinations: Comparable) -> Ranking:
    return Ranking("net", "c5.xlarge", ranked(combinations))


FULL = ranking_of(
    *(with_threads(2, timed(size, ms)) for size, ms in ((1, 7.0), (2, 12.0), (4, 20.0))),
    *(with_threads(1, timed(size, 9.0 * size)) for size in (1, 4)),
    with_threads(1, called(predicted(18.0, 17.0, 19.0), "", batch=2)),
    *(called(timed(size, 8.0 * size), "openvino") for size in (1, 2)),
    called(timed(1, 30.0), "mxnet", instructions=InstructionSet.AVX2),
    called(Comparable(point(8, None)), "mxnet"),
)


def cell(ranking: Ranking, place: int, size: int, bound_ms: float | None = None) -> list[str]:
    return texts(80, *cell_parts(ranking, matrix_rows(ranking)[place], size, bound_ms), look=TEXT)


def test_rows_are_runtimes_by_threads_and_columns_are_batch_sizes() -> None:
    rows = matrix_rows(FULL)
    assert [(row.point.runtime, row.point.threads) for row in rows[:3]] == [
        ("onnxruntime", 1),
        ("onnxruntime", 2),
        ("openvino", 1),
    ]
    # What was measured with limited kernels has a row of its own.
    assert len(rows) == 5 and [len(row.cells) for row in rows] == [3, 3, 2, 1, 1]
    assert batch_sizes(FULL) == (1, 2, 4, 8)
    assert [it.batch_size for it in row_points(rows[1])] == [1, 2, 4]
    assert [it.runtime for it in column_points(rows, 1)] == ["onnxruntime", "onnxruntime", "openvino", "mxnet"]


def test_a_matrix_shows_latencies_or_rates_and_marks_the_best_and_predictions() -> None:
    rates = Table(matrix_columns(FULL, by_rate=True), matrix_rows(FULL))
    check("matrix", {"latencies": matrix_parts(FULL), "rates": [rates], "mixed": matrix_parts(MIXED)})
    lines = texts(80, *matrix_parts(FULL), look=TEXT)
    assert all(line.isascii() and len(line) <= 80 for line in lines)


def test_a_single_row_or_column_is_no_matrix() -> None:
    assert not list(matrix_parts(ranking_of(timed(1, 10.0), timed(8, 40.0))))
    assert not list(matrix_parts(ranking_of(timed(1, 10.0), called(timed(1, 20.0), "mxnet"))))
    assert list(matrix_parts(MIXED))


def test_columns_without_room_are_left_out_those_that_nobody_measured_first() -> None:
    def sizes(width: int) -> list[str]:
        return texts(width, *matrix_parts(FULL), look=TEXT)[1].split("BATCH")[1].split()

    shown = [sizes(width) for width in (80, 64, 55)]
    assert shown == [["1", "2", "4", "8"], ["1", "2", "4"], ["1", "4"]]


def test_the_style_of_a_cell_says_what_it_is() -> None:
    first, second, *_, last = matrix_rows(FULL)
    assert [cell_style(second, size) for size in (1, 4)] == ["text", "good"]
    assert [cell_style(first, size) for size in (1, 2, 8)] == ["text", "muted", "muted"]
    assert cell_style(last, 8) == "muted"
    # Cells above a bound are muted and not the best.
    within = FULL.within(15.0)
    row = matrix_rows(within)[1]
    assert (cell_style(row, 4), cell_text(row.cells[4])) == ("muted", "20.00")
    assert (cell_style(row, 2), cell_text(row.cells[2])) == ("good", "best 12.00")


def test_a_cell_says_what_is_known_of_it() -> None:
    assert cell(FULL, 1, 4) == [
        "ONNX Runtime, 2 threads, batch 4",
        "measured      20.00 ms, 200.0 per second",
        "against best  best",
    ]
    assert cell(FULL, 0, 4)[2] == "against best  +80 % slower"
    assert cell(FULL, 0, 2)[1] == "predicted     18.00 ms, 111.1 per second, 95 % 17.00 to 19.00"
    assert cell(FULL.within(15.0), 1, 4, 15.0)[-1] == "against best  above the bound of 15 ms"
    assert cell(MIXED, 2, 8)[-1] == "against best  +29 % unknown: fewer than 5 samples"
    bricks_only = ranking_of(timed(1, 100.0), called(estimated(1.0), "mxnet"))
    (row,) = [number for number, it in enumerate(matrix_rows(bricks_only)) if it.point.runtime == "mxnet"]
    assert cell(bricks_only, row, 1)[1].startswith("estimate      ")


def test_a_cell_without_a_latency_says_why() -> None:
    assert cell(FULL, 4, 8)[1] == "not measured"
    assert cell(FULL, 2, 4)[1] == "not measured"
    assert cell(replace(FULL, refusals=("its file fixes the batch",)), 2, 4)[1] == "its file fixes the batch"


def test_a_best_cell_that_may_be_chance_asks_for_a_repetition() -> None:
    assert not repeat_sentence(FULL)
    few = ranking_of(called(timed(8, 70.0), "onnxruntime"), called(timed(8, 74.0, samples=4), "openvino"))
    assert repeat_sentence(few) == "Repeat: OpenVINO may be as fast;"
    assert isinstance(matrix_rows(few)[0], MatrixRow)
