"""`dlbricks results compare` on a store with two systems, two runtimes, two days and three runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.answers.comparisons.contrasts import ComparedResults
from dlbricks_tui.answers.documents import schema_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.statistics import summarise
from tests.answers.validation import faults
from tests.cli.people import Command, one_line
from tests.store.samples import brick, end_to_end, form, measurement, runtime, system

ONE, TWO = "onnxruntime-1.20 python-3.11 threads-1", "onnxruntime-1.20 python-3.11 threads-2"
MXNET = "mxnet-1.9.1"


def spread_around(base_ms: float, count: int = 25) -> dict[str, Any]:
    samples = tuple(base_ms * (1 + number % 5 / 100) for number in range(count))
    return {"samples_ms": samples, "statistics": summarise(samples)}


def on(day: int, run: str, system_id: str = "here", runtime_id: str = MXNET) -> dict[str, Any]:
    return {"when": f"2026-11-{day}T08:00:00+00:00", "run": run, "system": system_id, "runtime": runtime_id}


BEFORE, AFTER = on(21, "20261121-080000-aaaa"), on(22, "20261122-080000-bbbb")
THERE = on(22, "20261122-090000-cccc", "there")
THREADS_1, THREADS_2 = (on(23, f"20261123-080000-{name}", "here", name) for name in (ONE, TWO))


@pytest.fixture
def compare(tmp_path: Path, dlbricks: Command) -> Command:
    """Run `dlbricks results compare ...`."""
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(form(0), form(1), system("here", instance_type="c5.large"), system("there"), runtime(MXNET))
        store.add(*(replace(runtime(it), name="onnxruntime", framework="onnxruntime") for it in (ONE, TWO)))
        for place, brick_ms, whole_ms in ((BEFORE, 1.0, 30.0), (AFTER, 1.0, 36.0), (THERE, 0.8, 20.0)):
            store.add(measurement(brick=brick(0), **place, **spread_around(brick_ms)))
            store.add(end_to_end(**place, **spread_around(whole_ms)))
        store.add(measurement(brick=brick(1), **AFTER, **spread_around(2.0)))
        for place, brick_ms in ((THREADS_1, 1.5), (THREADS_2, 0.9)):
            store.add(measurement(brick=brick(0), **place, **spread_around(brick_ms)))
    return lambda *arguments: dlbricks("results", "compare", *arguments)


def document(compare: Command, *arguments: str) -> Any:
    status, out, _ = compare(*arguments, "--json")
    assert status == 0
    return json.loads(out)


def test_two_days_are_compared_model_by_model(compare: Command) -> None:
    status, out, told = compare("2026-11-21", "system=here 2026-11-22")
    assert status == 0 and told == ""
    assert "A: day 2026-11-21, 2 results" in out
    assert "B: day 2026-11-22, system=here, 3 results" in out
    assert "B takes 1.095 times as long" in out and "geometric mean of 2" in out
    assert "1 slower, 1 same; only in A 0, only in B 1" in out
    rows = [line.split() for line in out.splitlines() if line.endswith(("slower", "same"))]
    assert rows[0][0] == "resnet50_v1" and rows[0][-1] == "slower" and "+20.0" in rows[0]
    assert rows[1][-1] == "same"
    _, out, told = compare("2026-11-21", "2026-11-22 system=here", "--limit", "1")
    assert told.startswith("1 more pair: ")
    assert "= same" not in out


def test_the_json_document_has_all_pairs_and_keeps_to_its_schema(compare: Command) -> None:
    found = document(compare, "here", "there", "--where", "when<2026-11-23")
    schema = schema_of(ComparedResults)
    assert faults(found, schema, schema) == []
    assert (found["a"]["name"], found["b"]["name"]) == ("system here", "system there")
    assert (found["faster"], len(found["pairs"]), found["failures"]) == (2, 2, [])
    assert found["interval"][0] <= found["ratio"] <= found["interval"][1] < 1
    # The greatest change comes first.
    assert found["pairs"][0]["name"] == "resnet50_v1"


def test_a_word_stands_for_a_system_a_runtime_a_day_or_a_run(compare: Command) -> None:
    for text, name in {
        "here": "system here",
        "c5.large": "system here",
        "HERE": "system here",
        "mxnet": f"runtime {MXNET}",
        "mxnet-1.9.1": f"runtime {MXNET}",
        "onnxruntime threads=1": f"runtime {ONE}, threads=1",
        "2026-11-22": "day 2026-11-22",
        "20261122-080000-bbbb": "run 20261122-080000-bbbb",
        "20261121": "run 20261121-080000-aaaa",
        "here 'name~resnet'": "system here, name~resnet",
        "of=model": "of=model",
    }.items():
        _, out, _ = compare(text, text, "--json")
        assert json.loads(out)["a"]["name"] == name


def test_what_cannot_be_compared_is_one_line(compare: Command) -> None:
    for text, said in {
        "nothing": "'nothing' is no system, runtime, run or day with results; there are systems here, there",
        "onnxruntime": f"'onnxruntime' stands for several: runtime {ONE}, runtime {TWO}; name one of them",
        "20261122": "'20261122' stands for several: run 20261122-080000-bbbb, run 20261122-090000-cccc",
        "2026-11-30": "no results are '2026-11-30'",
        "2026-13-45": "needs a date",
        "no=column": "there is no column 'no'",
        "'open": "close the quotation marks",
        "": "an empty text names no results",
        "there mxnet when<2026-11-22": "is no system, runtime, run or day with results",
    }.items():
        assert said in one_line(compare(text, "here"))
    assert "give a whole number from 1 to" in one_line(compare("here", "there", "--limit", "0"))
    status, _, told = compare("here of=model", "here of=brick")
    assert status == 1 and "no brick in the same context and no model in common" in told


def test_filters_hold_for_both_sides(compare: Command) -> None:
    found = document(compare, "2026-11-21", "2026-11-22", "--where", "of=model", "--where", "system=here")
    assert (found["a"]["results"], found["b"]["results"], len(found["pairs"])) == (1, 1, 1)


def test_a_slower_model_beyond_the_limit_fails(compare: Command) -> None:
    days = ("2026-11-21", "2026-11-22 system=here")
    status, _, told = compare(*days, "--fail-above", "5%")
    assert status == 1 and told == "slower by more than 5.0 %: resnet50_v1\n"
    assert compare(*days, "--fail-above", "25%")[0] == 0
    # A faster side never fails.
    assert compare(*reversed(days), "--fail-above", "5%")[0] == 0
    models = ("2026-11-21 of=model", "2026-11-22 system=here of=model")
    _, out, _ = compare(*models, "--fail-above", "5%", "--json")
    assert json.loads(out)["failures"] == ["all pairs", "resnet50_v1"]


def test_a_change_of_one_run_on_each_side_may_be_of_its_process(compare: Command) -> None:
    only = ("--where", "of=model", "--where", "system=here")
    found = document(compare, "2026-11-21", "2026-11-22", *only)
    assert (found["slower"], found["unknown"]) == (1, 0)
    # Together they are slower by no more than 11 % and the 10 % by which processes differ.
    assert document(compare, "2026-11-21", "2026-11-22", *only, "--fail-above", "11%")["failures"] == []


def test_markdown_is_a_table_that_shows_names_as_they_are(compare: Command) -> None:
    status, out, _ = compare("2026-11-21", "2026-11-22 system=here", "--markdown")
    lines = out.splitlines()
    assert status == 0 and lines[0] == "- A: day 2026-11-21, 2 results"
    start = lines.index("| brick or model | A ms | B ms | change | p | B is |")
    assert lines[start + 2].startswith("| resnet50\\_v1 | ") and lines[start + 2].endswith(" | slower |")
    assert all(line.count("|") - line.count("\\|") == 7 for line in lines[start:])
