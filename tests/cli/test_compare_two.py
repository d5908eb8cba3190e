"""`dlbricks compare A B`: two models, systems, runtimes, days, runs or results."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.store.records import Measurement, Record
from dlbricks_tui.store.statistics import summarise
from tests.answers.validation import faults
from tests.cli.people import Command as Compare
from tests.cli.people import one_line
from tests.estimate.stored import brick_records, model_record, timed
from tests.estimate.table1 import table1
from tests.store.samples import end_to_end, form, measurement, runtime, system

pytestmark = pytest.mark.usefixtures("shared_cache")

MXNET = "mxnet-1.9.1 python-3.11 threads-1"
SQUEEZENET, ALEXNET = decompose(table1()["16"]), decompose(table1()["1"])
DAYS = {"a": "2026-11-20", "b": "2026-11-21"}


@pytest.fixture
def compare(with_records: Compare) -> Compare:
    """Run `dlbricks compare ...` with these records in the store."""
    return lambda records, *arguments: with_records(records, "compare", *arguments)


def bricks(side: str, factor: float, **fields: Any) -> list[Record]:
    """Six bricks measured on a system in a run of a day; the latencies of two days differ by a factor."""
    where = {
        "system": f"host-{side}",
        "runtime": MXNET,
        "run": f"{DAYS[side].replace('-', '')}-080000-{side * 4}",
        "when": f"{DAYS[side]}T08:00:00.000000+00:00",
        **fields,
    }
    known: list[Record] = [system(where["system"]), runtime(MXNET, framework="mxnet")]
    for number in range(6):
        brick = form(number, "conv")
        samples = tuple(factor * (number + 1) * (1 + place % 7 / 1000) for place in range(25))
        known += [brick, measurement(brick=brick.key, samples_ms=samples, statistics=summarise(samples), **where)]
    return known


def ids_of(records: Sequence[Record]) -> list[str]:
    return [it.uuid for it in records if isinstance(it, Measurement)]


def models(**fields: Any) -> list[Record]:
    """Two models of which the first is measured by its bricks, and the other one end to end too."""
    where: dict[str, Any] = {"system": "c5.xlarge", "runtime": MXNET, **fields}
    return [
        system("c5.xlarge"),
        runtime(MXNET, framework="mxnet"),
        *brick_records(SQUEEZENET, **where),
        *brick_records(ALEXNET, **where),
    ]


def test_two_models_are_compared_by_their_estimates(compare: Compare) -> None:
    status, out, _ = compare(models(), "table1:16", "table1:1", "--system", "c5.xlarge", "--level", "written", "--json")
    found = json.loads(out)
    assert (status, found["of"]) == (0, "model")
    assert found["ratio"] == pytest.approx(found["b"]["ms"] / found["a"]["ms"])
    assert found["interval"][0] < found["ratio"] < found["interval"][1]
    assert found["verdict"] == ("slower" if found["ratio"] > 1 else "faster")
    assert found["a"]["how"] == found["b"]["how"] == "estimated"
    assert found["parts_are"] == "kinds of layers" and "convolution" in {it["name"] for it in found["parts"]}
    differences = [abs((it["b_ms"] or 0.0) - (it["a_ms"] or 0.0)) for it in found["parts"]]
    assert differences == sorted(differences, reverse=True)
    total = sum(it["a_ms"] or 0.0 for it in found["parts"])
    assert total == pytest.approx(found["a"]["ms"], rel=0.05)
    assert set(found["differences"]["layers"]) == {f"{len(it.graph.layers):,}" for it in (SQUEEZENET, ALEXNET)}


def test_models_that_were_both_timed_are_compared_end_to_end(compare: Compare) -> None:
    timed_both = [
        model_record(it, ms, system="c5.xlarge", runtime=MXNET, samples_ms=tuple([ms, ms * 1.001] * 10))
        for it, ms in ((SQUEEZENET, 20.0), (ALEXNET, 10.0))
    ]
    how = ("--system", "c5.xlarge", "--level", "written")
    status, out, _ = compare([*models(), *timed_both], "table1:16", "table1:1", *how)
    assert status == 0
    assert "B is faster: it takes 0.50 times as long as A" in out
    assert "20.00 ms (19.80 to 20.20), measured" in out


def test_a_model_without_a_latency_is_not_compared_and_a_command_cures_that(compare: Compare) -> None:
    status, _, error = compare(
        [
            system("c5.xlarge"),
            runtime(MXNET, framework="mxnet"),
            *brick_records(SQUEEZENET, system="c5.xlarge", runtime=MXNET),
        ],
        *("table1:16", "table1:1", "--system", "c5.xlarge", "--level", "written", "--measured-only"),
    )
    assert status == 2
    assert "has no latency yet: `dlbricks run " in error


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("host-a", "host-b", "system"),
        ("2026-11-20", "2026-11-21", "day"),
        ("20261120-080000-aaaa", "20261121-080000-bbbb", "run"),
        ("host-a threads=1", "host-b threads=1", "selection"),
    ],
)
def test_systems_days_runs_and_filters_are_compared_by_the_bricks_of_both(
    compare: Compare, first: str, second: str, kind: str
) -> None:
    status, out, _ = compare([*bricks("a", 1.0), *bricks("b", 1.2)], first, second, "--json")
    found = json.loads(out)
    assert (status, found["of"], found["verdict"]) == (0, kind, "slower")
    assert found["ratio"] == pytest.approx(1.2, rel=1e-3)
    assert found["parts_are"] == "bricks" and len(found["parts"]) == 6
    assert found["parts"][0]["b_ms"] - found["parts"][0]["a_ms"] == pytest.approx(1.2, rel=0.01)
    assert {it["verdict"] for it in found["parts"]} == {"slower"}
    assert found["a"]["ms"] == pytest.approx(21.0, rel=0.01) and found["a"]["how"] == "sum of 6 bricks"
    assert found["a"]["since"].startswith("2026-11-20")
    assert found["differences"]["system"] == ["host-a", "host-b"]
    assert any("Each side is one run" in it for it in found["remarks"])


def test_runtimes_are_compared_and_their_versions_are_told(compare: Compare) -> None:
    newer = "mxnet-2.0.0 python-3.11 threads-1"
    records = [
        *bricks("a", 1.0),
        runtime(newer, framework="mxnet", version="2.0.0"),
        *bricks("b", 0.8, system="host-a", runtime=newer),
    ]
    status, out, _ = compare(records, "mxnet-1.9.1", "mxnet-2.0.0", "--json")
    found = json.loads(out)
    assert (status, found["of"], found["verdict"]) == (0, "runtime", "faster")
    assert any("2.0.0" in value for values in found["differences"].values() for value in values)


def test_two_results_are_compared_by_their_ids_and_the_document_conforms_to_its_schema(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [*bricks("a", 1.0), *bricks("b", 1.2)]
    ids = ids_of(records)
    status, out, _ = compare(records, ids[0][:12], ids[6][:12], "--json")
    found = json.loads(out)
    assert (status, found["of"], found["verdict"]) == (0, "result", "slower")
    assert found["ratio"] == pytest.approx(1.2, rel=1e-3)
    assert found["differences"]["measured"] == ["2026-11-20 08:00", "2026-11-21 08:00"]
    with pytest.raises(SystemExit):
        main(["compare", "--json-schema"])
    schema = json.loads(capsys.readouterr().out)
    assert faults(found, schema, schema) == []
    assert faults({**found, "ratio": "much"}, schema, schema)
    # The largest differences are shown and the others counted.
    _, out, error = compare([], "host-a", "host-b", "--limit", "2")
    assert out.count(" slower") == 2 and "4 smaller differences" in error


def test_two_results_of_a_model_on_two_days_tell_which_bricks_differ(compare: Compare) -> None:
    whole = [
        end_to_end(
            model="m" * 64,
            name="net",
            statistics=timed(ms),
            samples_ms=tuple([ms, ms * 1.001] * 12 + [ms]),
            system="host-a",
            runtime=MXNET,
            run=f"{DAYS[side].replace('-', '')}-080000-{side * 4}",
            when=f"{DAYS[side]}T09:00:00.000000+00:00",
        )
        for side, ms in (("a", 21.0), ("b", 25.2))
    ]
    records = [*bricks("a", 1.0), *bricks("b", 1.2, system="host-a"), *whole]
    status, out, _ = compare(records, *(it.uuid for it in whole), "--json")
    found = json.loads(out)
    assert (status, found["verdict"], len(found["parts"])) == (0, "slower", 6)


REFUSED = {
    "a model and a day": (("table1:16", "2026-11-20"), "is a model, and 2026-11-20 is none"),
    "one model twice": (("table1:16", "table1:16"), "name two models"),
    "one system twice": (("host-a", "host-a"), "have the same results"),
    "a word that names nothing": (("nosuch", "host-a"), "'nosuch' is no system, runtime, run or day"),
    "a day without results": (("2026-11-20", "2026-11-19"), "no results are '2026-11-19'"),
    "an option for models": (("host-a", "host-b", "--threads", "1"), "--threads is for models"),
    "a file that is missing": (("none.onnx", "host-a"), "none.onnx"),
    "fifty models": (("table1", "table1:1"), "stands for 50 models"),
    "less than nothing": (("host-a", "host-b", "--limit", "-1"), "--limit"),
}


def test_what_cannot_be_compared_is_refused_in_one_line(compare: Compare) -> None:
    compare([*bricks("a", 1.0), *bricks("b", 1.2)])
    for name, (words, message) in REFUSED.items():
        assert message in one_line(compare([], *words)), name


def test_results_of_two_kinds_and_those_in_doubt_are_refused_in_one_line(compare: Compare) -> None:
    records = [*bricks("a", 1.0), *bricks("b", 1.2, flags=("restarted too often",))]
    whole = end_to_end(model="m" * 64, name="net", statistics=timed(3.0), system="host-a", runtime=MXNET)
    first, *_, last = ids_of(records)
    refused = {
        (first, "20261120-080000-aaaa"): "A is one result and B one run",
        (first, whole.uuid): "compare two models or two bricks",
        (first, last): "is in doubt (restarted too often)",
    }
    compare([*records, whole])
    for words, message in refused.items():
        assert message in one_line(compare([], *words))


def test_systems_without_a_common_brick_are_refused(compare: Compare) -> None:
    other = [measurement(brick=form(9, "conv").key, system="host-b", runtime=MXNET), form(9, "conv"), system("host-b")]
    error = one_line(compare([*bricks("a", 1.0), *other], "host-a", "host-b"))
    assert "no model and no brick in common" in error
