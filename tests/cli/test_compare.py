"""`dlbricks compare`: the combinations of a model, or two models, systems, runtimes, days, runs or results."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import InstructionSet, Kernels
from dlbricks_tui.store.records import Measurement, Record
from tests.api.validation import faults
from tests.cli.people import Command as Compare
from tests.cli.people import one_line, schema_kept
from tests.estimate.stored import brick_records, results_of
from tests.estimate.table1 import table1
from tests.models.table_framework import TableFramework
from tests.store.samples import end_to_end, form, measurement, runtime, system

pytestmark = pytest.mark.usefixtures("shared_cache")

# Models as MXNet has them; their types are delivered at level `written`.
SQUEEZENET, ALEXNET = decompose(table1()["16"]), decompose(table1()["1"])
MXNET_1, MXNET_4 = (f"mxnet-1.9.1 python-3.11 threads-{threads}" for threads in (1, 4))
ORT_1, ORT_2 = (f"onnxruntime-1.32.0 python-3.11 threads-{threads}" for threads in (1, 2))


@pytest.fixture
def compare(with_records: Compare) -> Compare:
    """Run `dlbricks compare ...` with these records in the store."""
    return lambda records, *arguments: with_records(records, "compare", *arguments)


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Decomposition]:
    """Return a sample in its ONNX file, at a batch size."""
    folder = tmp_path_factory.mktemp("cache")

    def read(name: str, batch_size: int | None = None) -> Decomposition:
        (source,) = Library(SAMPLE_MODELS, folder, Format.ONNX).find(name)
        loaded = Loader(folder, TableFramework()).load(source, Level.WRITTEN, batch_size=batch_size)
        return decompose(loaded.named(source.name))

    return read


def test_a_model_of_two_formats_is_compared_as_one(compare: Compare, onnx: Callable[..., Decomposition]) -> None:
    records = [*results_of(SQUEEZENET, MXNET_4, 20.0), *results_of(onnx("table1:16"), ORT_2, 12.0)]
    status, out, _ = compare(records, "table1:16", "--system", "c5.xlarge", "--json")
    found = json.loads(out)
    assert (status, found["system"], found["left_out"], found["refusals"]) == (0, "c5.xlarge", 0, [])
    assert found["model"].startswith("SqueezeNet")
    best, other = found["combinations"]
    assert (best["runtime"], best["threads"], best["batch"], best["precision"]) == (ORT_2, 2, 1, "f32")
    assert (best["measured_ms"], best["best"], best["verdict"], best["ratio"]) == (12.0, True, None, 1.0)
    assert best["per_second"] == pytest.approx(1000 / 12)
    low_ms, high_ms = best["interval_ms"]
    assert low_ms < best["estimate_ms"] < high_ms
    assert (other["runtime"], other["verdict"], other["ratio"]) == (MXNET_4, "slower", pytest.approx(20 / 12))
    assert other["p_value"] < 0.001


def test_without_options_all_that_was_measured_is_compared(compare: Compare) -> None:
    records = [*results_of(SQUEEZENET, MXNET_1, 30.0), *results_of(SQUEEZENET, MXNET_4, 20.0)]
    status, out, _ = compare(records, "table1:16", "--system", "c5.xlarge")
    _, heading, _, _, *rows = out.splitlines()
    assert status == 0
    assert heading == "c5.xlarge, MXNet, batch 1, f32, written layers; the best first, by latency"
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("4", "best"), ("1", "slower")]


def test_a_combination_that_was_not_measured_is_predicted_or_says_which_run_measures_it(
    compare: Compare, tmp_path: Path
) -> None:
    status, out, _ = compare([], "table1:16", "--level", "written", "--measured-only")
    assert status == 1 and "not measured: dlbricks run table1:16 --runtime" in out

    ours = Registry(tmp_path / "data").default().with_threads(1)
    records = results_of(SQUEEZENET, ours.identity, 30.0, system=fingerprint().id)
    asked = ("table1:16", "--threads", "1,2")
    only = "Only 1 thread was measured: 30.00 ms, 33.33 per second; 1 other was not.\n"
    status, out, _ = compare(records, *asked, "--measured-only", "--json")
    first, second = json.loads(out)["combinations"]
    assert (status, first["measured_ms"], first["command"]) == (1, 30.0, None)
    assert (second["threads"], second["estimate_ms"], second["ratio"], second["verdict"]) == (2, None, None, None)
    assert second["command"] == f"dlbricks run table1:16 --runtime {ours.name} --threads 2 --level written"
    assert compare([], *asked, "--measured-only")[2] == only

    status, out, told = compare([], *asked, "--json")
    measured, predicted = json.loads(out)["combinations"]
    # As before predictions, the status is 1 unless all combinations were measured.
    assert (status, measured["best"], measured["predicted_share"]) == (1, True, 0.0)
    assert (predicted["threads"], predicted["measured_ms"], predicted["predicted_share"]) == (2, None, 1.0)
    low_ms, high_ms = predicted["interval_ms"]
    assert low_ms < predicted["estimate_ms"] < high_ms
    assert told == f"predicted: run `{predicted['command']}` to measure it\n"

    # What is missing on another system is to be run there.
    elsewhere = results_of(SQUEEZENET, ours.identity, 30.0)
    _, _, told = compare(elsewhere, *asked, "--measured-only", "--system", "c5.xlarge")
    assert told == f"{only}run what is missing on c5.xlarge\n"


def test_incomplete_combinations_are_left_out_unless_nothing_else_is_known(compare: Compare) -> None:
    pairs = sorted(SQUEEZENET.pairs)
    some = [
        system("c5.xlarge"),
        runtime(MXNET_1),
        *brick_records(SQUEEZENET, pairs[:9], system="c5.xlarge", runtime=MXNET_1),
    ]
    asked = ("table1:16", "--system", "c5.xlarge", "--json")
    status, out, _ = compare(some, *asked, "--measured-only")
    (found,) = json.loads(out)["combinations"]
    assert (status, found["threads"], found["estimate_ms"]) == (1, 1, None)
    status, out, told = compare(results_of(SQUEEZENET, MXNET_4, 20.0), *asked)
    document = json.loads(out)
    assert (status, document["left_out"]) == (0, 1)
    assert [it["threads"] for it in document["combinations"]] == [4]
    assert "1 combination with results of only some" in told


def test_a_refused_combination_is_named_and_the_others_are_compared(compare: Compare) -> None:
    asked = ("table1:16", "--system", "c5.xlarge", "--batch", "1,1000000")
    status, out, told = compare(results_of(SQUEEZENET, MXNET_4, 20.0), *asked)
    assert (status, out.splitlines()[-1].split()[-1]) == (1, "50.00")
    assert "left out: " in told
    assert "at batch size 1,000,000 needs about" in told


def test_bad_input_is_refused_in_one_line(compare: Compare) -> None:
    refused = {
        ("table1:16", "--runtime", "nothing"): "no runtime in the store is called 'nothing'",
        ("table1:16", "--system", "nowhere"): "no system in the store is called 'nowhere'",
        ("tabular_network", "--runtime", "mxnet"): "runs MXNet models, and tabular_network is one of ONNX",
        ("table1",): "table1 stands for 50 models; name one",
        ("nonsense",): "no model 'nonsense'",
    }
    for options, complaint in refused.items():
        assert complaint in one_line(compare([], *options))


def test_limits_on_kernels_are_rows_and_part_of_the_run_that_measures_them(compare: Compare, tmp_path: Path) -> None:
    ours = Registry(tmp_path / "data").default().with_threads(1)
    limited = ours.with_kernels(Kernels(InstructionSet.AVX2))
    latencies = ((ours.identity, 20.0), (limited.identity, 30.0))
    records = [it for by, ms in latencies for it in results_of(SQUEEZENET, by, ms, system=fingerprint().id)]
    _, out, _ = compare(records, "table1:16", "--instructions", "sse41,avx2,all", "--json")
    *known, missing = json.loads(out)["combinations"]
    assert [(it["instructions"], it["measured_ms"]) for it in known] == [("all", 20.0), ("avx2", 30.0)]
    assert (missing["instructions"], missing["ratio"]) == ("sse41", None)
    assert f"--runtime {ours.name} --threads 1 --instructions sse41" in missing["command"]
    _, out, _ = compare([], "table1:16", "--threads", "2", "--json")
    assert [(it["threads"], it["instructions"]) for it in json.loads(out)["combinations"]] == [(2, "all")], (
        "limits that nobody asked for, and that were not measured with these threads"
    )


DAYS = {"a": "2026-11-20", "b": "2026-11-21"}


def bricks(side: str, factor: float, **fields: Any) -> list[Record]:
    """Six bricks measured on a system in a run of a day; the latencies of two days differ by a factor."""
    where = {
        "system": f"host-{side}",
        "runtime": MXNET_1,
        "run": f"{DAYS[side].replace('-', '')}-080000-{side * 4}",
        "when": f"{DAYS[side]}T08:00:00.000000+00:00",
        **fields,
    }
    known: list[Record] = [system(where["system"]), runtime(MXNET_1)]
    for number in range(6):
        brick = form(number, "conv")
        known += [brick, measurement(factor * (number + 1), brick=brick.key, **where)]
    return known


def ids_of(records: Sequence[Record]) -> list[str]:
    return [it.uuid for it in records if isinstance(it, Measurement)]


def test_two_models_are_compared_by_their_estimates(compare: Compare) -> None:
    records = [*results_of(SQUEEZENET, MXNET_1), *results_of(ALEXNET, MXNET_1)]
    status, out, _ = compare(records, "table1:16", "table1:1", "--system", "c5.xlarge", "--level", "written", "--json")
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
    assert found["parts"][0]["b_ms"] - found["parts"][0]["a_ms"] == pytest.approx(1.224)
    assert {it["verdict"] for it in found["parts"]} == {"slower"}
    assert found["a"]["ms"] == pytest.approx(21.42) and found["a"]["how"] == "sum of 6 bricks"
    assert found["a"]["since"].startswith("2026-11-20")
    assert found["differences"]["system"] == ["host-a", "host-b"]
    assert found["remarks"][0] == "The ratio is the geometric mean over 6 bricks, and the latencies are sums."
    assert any("Each side is one run" in it for it in found["remarks"])


def test_two_results_are_compared_by_their_ids_and_the_document_conforms_to_its_schema(compare: Compare) -> None:
    records = [*bricks("a", 1.0), *bricks("b", 1.2)]
    ids = ids_of(records)
    status, out, _ = compare(records, ids[0][:12], ids[6][:12], "--json")
    found = json.loads(out)
    assert (status, found["of"], found["verdict"]) == (0, "result", "slower")
    assert found["ratio"] == pytest.approx(1.2, rel=1e-3)
    assert found["differences"]["measured"] == ["2026-11-20 08:00", "2026-11-21 08:00"]
    schema = schema_kept(found, "compare")
    assert faults({**found, "ratio": "much"}, schema, schema)
    # The largest differences are shown and the others counted.
    _, out, error = compare([], "host-a", "host-b", "--limit", "2")
    assert out.count(" slower") == 2 and "4 smaller differences" in error


def test_two_results_of_a_model_on_two_days_tell_which_bricks_differ(compare: Compare) -> None:
    whole = [
        end_to_end(
            ms,
            model="m" * 64,
            name="net",
            system="host-a",
            runtime=MXNET_1,
            run=f"{DAYS[side].replace('-', '')}-080000-{side * 4}",
            when=f"{DAYS[side]}T09:00:00.000000+00:00",
        )
        for side, ms in (("a", 21.0), ("b", 25.2))
    ]
    records = [*bricks("a", 1.0), *bricks("b", 1.2, system="host-a"), *whole]
    status, out, _ = compare(records, *(it.uuid for it in whole), "--json")
    found = json.loads(out)
    assert (status, found["verdict"], len(found["parts"])) == (0, "slower", 6)


def test_other_batch_sizes_are_compared_by_the_latency_of_an_item(compare: Compare) -> None:
    net: dict[str, Any] = {"name": "net", "runtime": MXNET_1, "system": "host-a"}
    whole = end_to_end(10.0, model="d" * 64, **net), end_to_end(400.0, model="e" * 64, batch_size=8, **net)
    known = [system("host-a"), runtime(MXNET_1)]
    _, out, _ = compare([*known, *whole], "host-a batch_size=1", "host-a batch_size=8", "--json")
    found = json.loads(out)
    assert found["ratio"] == pytest.approx(5)
    (low, high), one = found["b"]["interval"], found["a"]
    assert high - low == pytest.approx(5 * (one["interval"][1] - one["interval"][0]))


REFUSED = {
    "a model and a day": (("table1:16", "2026-11-20"), "is a model, and 2026-11-20 is none"),
    "one model twice": (("table1:16", "table1:16"), "name two models, or `dlbricks compare table1:16` for"),
    "one system twice": (("host-a", "host-a"), "have the same results"),
    "a word that names nothing": (("nosuch", "host-a"), "'nosuch' is no system, runtime, run or day"),
    "a day without results": (("2026-11-20", "2026-11-19"), "no results are '2026-11-19'"),
    "an option for models": (("host-a", "host-b", "--threads", "1"), "--threads is for models"),
    "a level": (("host-a", "host-b", "--level", "fused"), "--level is for models"),
    "a cutting": (("host-a", "host-b", "-g", "2"), "--granularity is for models"),
    "measured bricks": (("host-a", "host-b", "--measured-only"), "--measured-only is for models"),
    "differences of one model": (("table1:16", "--limit", "3"), "--limit is for two things"),
    "a file that is missing": (("none.onnx", "host-a"), "none.onnx"),
    "fifty models": (("table1", "table1:1"), "stands for 50 models"),
    "models without a latency": (
        ("tabular_network", "boosted_trees", "--measured-only"),
        "`dlbricks run tabular_network boosted_trees`",
    ),
    "a variant without a latency": (
        ("tabular_network", "boosted_trees", "--measured-only", "--threads", "2"),
        "`dlbricks run tabular_network boosted_trees --threads 2`",
    ),
    "less than nothing": (("host-a", "host-b", "--limit", "-1"), "--limit"),
}


def test_what_cannot_be_compared_is_refused_in_one_line(compare: Compare) -> None:
    compare([*bricks("a", 1.0), *bricks("b", 1.2)])
    for name, (words, message) in REFUSED.items():
        assert message in one_line(compare([], *words)), name


def test_results_of_two_kinds_and_those_in_doubt_are_refused_in_one_line(compare: Compare) -> None:
    records = [*bricks("a", 1.0), *bricks("b", 1.2, flags=("restarted too often",))]
    whole = end_to_end(model="m" * 64, name="net", system="host-a", runtime=MXNET_1)
    first, *_, last = ids_of(records)
    refused = {
        (first, "20261120-080000-aaaa"): "A is one result and B one run",
        (first, whole.uuid): "compare two models or two bricks",
        (first, last): "is in doubt (restarted too often)",
    }
    compare([*records, whole])
    for words, message in refused.items():
        assert message in one_line(compare([], *words))
