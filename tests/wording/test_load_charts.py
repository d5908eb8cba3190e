from dlbricks_tui.wording.load_charts import LoadCurve, MeasuredRate, Picture, load_picture

# A queue that serves at most 90 requests per second.
CURVE = [(float(rate), 20.0 / (1.0 - rate / 90.0)) for rate in range(5, 90, 5)]
TESTS = (MeasuredRate(50.0, 40.0, True), MeasuredRate(70.0, 95.0, False))
LOAD = LoadCurve(predicted=CURVE, bound_ms=50.0, highest=54.0, tests=TESTS, running=(57.0, 30.0))


def rows_with(picture: Picture, sign: str) -> list[int]:
    """Return the rows with a sign, the highest being 0."""
    return [place for place, row in enumerate(picture.rows) if sign in row.cells]


def test_the_picture_of_load_has_the_size_that_was_asked_for() -> None:
    for width, height in ((60, 12), (78, 20), (120, 40)):
        lines = load_picture(LOAD, 99.0, width, height).lines
        assert len(lines) == height
        assert max(map(len, lines)) <= width


def test_tests_that_passed_and_failed_and_the_one_in_progress_differ_by_shape() -> None:
    picture = load_picture(LOAD, 99.0, 78, 20)
    (bound,) = (place for place, row in enumerate(picture.rows) if row.cells.count("=") > 20)
    (passed,), (failed,), (running,) = (rows_with(picture, sign) for sign in "ox?")
    assert failed < bound < passed < running
    assert "  ".join(picture.below) == (
        "~ predicted p99  = bound 50 ms  ^ highest rate ~54.00  o passed  x failed  ? now"
    )


def test_the_highest_rate_is_marked_where_the_curve_meets_the_bound() -> None:
    picture = load_picture(LoadCurve(predicted=CURVE, bound_ms=50.0, highest=54.0), 99.0, 78, 20)
    column = picture.ground.cells.index("^")
    bound = next(row for row in picture.rows if row.cells.count("=") > 20)
    assert bound.label.strip() == "50.00|"
    # The curve crosses the bound there.
    assert "~" in bound.cells[column - 4 : column + 5]


def test_the_curve_has_no_gaps_where_it_is_steep() -> None:
    picture = load_picture(LoadCurve(predicted=[*CURVE, (86.0, 9000.0)], bound_ms=50.0), 99.0, 60, 30)
    marked = rows_with(picture, "~")
    assert marked == list(range(marked[0], marked[-1] + 1))
    assert marked[0] == 0


def test_an_impossible_bound_is_below_the_curve() -> None:
    picture = load_picture(LoadCurve(predicted=CURVE, bound_ms=2.0), 99.0, 78, 20)
    (bound,) = rows_with(picture, "=")
    assert bound > max(rows_with(picture, "~"))


def test_tests_beyond_the_picture_stand_at_its_upper_edge() -> None:
    picture = load_picture(
        LoadCurve(predicted=CURVE, bound_ms=50.0, tests=[MeasuredRate(80.0, 90_000.0, False)]), 99.0, 78, 20
    )
    assert rows_with(picture, "x") == [0]


def test_tests_are_drawn_without_a_prediction() -> None:
    picture = load_picture(LoadCurve(tests=[MeasuredRate(80.0, 90.0, False)]), 99.0, 78, 20)
    assert len(rows_with(picture, "x")) == 1
    assert picture.lines[-1] == "x failed"
