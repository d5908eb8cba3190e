import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.parts import slowest
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import InstructionSet, Kernels
from dlbricks_tui.store.records import Record
from dlbricks_tui.wording.layers import slowest_in_words
from dlbricks_tui.wording.numbers import percent
from tests.cli.people import Command, document, one_line
from tests.estimate.knowledge_of import latency_of, measured
from tests.estimate.simulated import lawful_records
from tests.estimate.stored import brick_records, model_record
from tests.estimate.table1 import table1
from tests.models.onnx_models import saved, small
from tests.store.samples import failure, runtime, system

pytestmark = pytest.mark.usefixtures("shared_cache")

# SqueezeNet and VGG-16, whose types are delivered at level `written`.
SQUEEZENET, VGG = (decompose(table1()[number]) for number in ("16", "17"))
LAYERS = len(SQUEEZENET.graph.layers)
PAPER: list[Record] = [system("c5.xlarge"), runtime("mxnet-1.5.1")]
ON_C5: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}


def on_c5(decomposition: Decomposition, **fields: Any) -> list[Record]:
    return [*PAPER, *brick_records(decomposition, **{**ON_C5, **fields})]


def sum_ms(decomposition: Decomposition) -> float:
    return sum(latency_of((it.brick.key, it.context)).value_ms for it in decomposition.occurrences)


def test_an_estimate_is_a_document_or_a_text_and_follows_rules(with_records: Command, tmp_path: Path) -> None:
    records = [*on_c5(SQUEEZENET), model_record(SQUEEZENET, 40.0, **ON_C5)]
    asked = ("estimate", "table1:16", "--system", "c5.xlarge")
    status, out, told = with_records(records, *asked, "--workers", "2", "--json")
    assert status == 0
    assert "c5.xlarge has results at level written and none at fused" in told
    (found,) = json.loads(out)
    names = ("system", "runtime", "granularity", "level")
    assert [found[name] for name in names] == ["c5.xlarge", "mxnet-1.5.1", 1, "written"]
    assert found["model"].startswith("SqueezeNet")
    assert found["sequential_ms"] == pytest.approx(sum_ms(SQUEEZENET))
    assert found["parallel_ms"] <= found["workers_ms"] <= found["sequential_ms"]
    low, high = found["interval_ms"]
    assert low < found["sequential_ms"] < high
    assert found["coverage"] == {
        "measured": LAYERS, "missing": 0, "unmeasurable": 0, "bridged": 0, "own_carrier": 0, "predicted": 0
    }  # fmt: skip
    assert found["predicted_share"] == 0.0
    assert found["measured_ms"] == 40.0
    assert found["error"] == pytest.approx(found["sequential_ms"] / 40.0 - 1)
    assert found["critical_path"][0] == 0
    assert found["critical_path"] == sorted(found["critical_path"])
    for explained in ("types", "regions"):
        assert sum(it["latency_ms"] for it in found[explained]) == pytest.approx(found["sequential_ms"])
        assert sum(it["layers"] for it in found[explained]) == LAYERS
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\nparallel = false\n")
    (limited,) = json.loads(with_records([], *asked, "--rules", str(rules), "--json")[1])
    assert limited["parallel_ms"] == limited["sequential_ms"]
    status, out, _ = with_records([], *asked, "--workers", "3")
    assert status == 0
    shown = {line.split("  ")[0] for line in out.splitlines()}
    assert {"sequential", "parallel", "3 workers", "end to end", "convolution", "concat"} <= shown
    for said in ("█", f"{LAYERS} of {LAYERS} layers measured", "critical path", "residual", "block", "Costliest"):
        assert said in out
    assert out.splitlines()[2] == (
        "an estimate of unfused layers, as the file has them: a runtime that fuses them takes less"
    )


def test_results_of_this_host_are_used_by_default(with_records: Command, tmp_path: Path) -> None:
    ours: dict[str, Any] = {"system": fingerprint().id, "runtime": Registry(tmp_path / "data").default().identity}
    records = [*brick_records(SQUEEZENET, **ours), *on_c5(SQUEEZENET)]
    found = document(with_records(records, "estimate", "table1:16", "--json"))
    assert found[0]["system"] == ours["system"]


def test_several_models_are_listed_or_lines_of_csv(with_records: Command) -> None:
    records = [*on_c5(SQUEEZENET), *brick_records(VGG, **ON_C5), model_record(VGG, sum_ms(VGG) / 1.04, **ON_C5)]
    asked = ("estimate", "table1:16", "table1:17", "--system", "c5.xlarge")
    status, out, _ = with_records(records, *asked)
    assert status == 0 and "SqueezeNet" in out and "+4.0 %" in out
    status, out, _ = with_records([], *asked, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (status, len(rows)) == (0, 2)
    assert float(rows[0]["sequential_ms"]) == pytest.approx(sum_ms(SQUEEZENET))
    assert rows[0]["measured_ms"] == "" and float(rows[1]["error"]) == pytest.approx(0.04)
    assert [row["complete"] for row in rows] == ["True", "True"]


def test_missing_bricks_are_left_out_or_predicted_and_the_command_that_measures_them_is_named(
    with_records: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = sorted(SQUEEZENET.suite)[::2]
    asked = ("estimate", "table1:16", "--system", "c5.xlarge")
    status, out, err = with_records(on_c5(SQUEEZENET, without=gone), *asked, "--measured-only", "--json")
    (measured_only,) = json.loads(out)
    assert status == 0 and measured_only["partial"] and not measured_only["complete"]
    assert measured_only["coverage"]["missing"] > 0
    assert measured_only["remaining"]["bricks"] == len(gone)
    assert (measured_only["coverage"]["predicted"], measured_only["predicted_share"]) == (0, 0.0)
    assert (measured_only["next_step"], measured_only["obstacle"]) == ("run", None)
    assert f"{len(gone)} bricks to run" in err
    assert "`dlbricks run table1:16 --level written` there, on c5.xlarge" in err

    status, out, err = with_records(brick_records(VGG, **ON_C5), *asked, "--json")
    (found,) = json.loads(out)
    assert (status, found["complete"], found["next_step"]) == (0, False, "run")
    assert found["coverage"]["missing"] >= found["coverage"]["predicted"] == found["coverage"]["bridged"] > 0
    assert 0 < found["predicted_share"] < 1 and found["sequential_ms"] > measured_only["sequential_ms"]
    assert f"{found['coverage']['predicted']} of them predicted" in err and "bricks to run" in err
    monkeypatch.setenv("DLBRICKS_ESTIMATE_PREDICTIONS", "off")
    _, out, _ = with_records([], *asked, "--json")
    assert json.loads(out)[0]["coverage"]["predicted"] == 0

    # A partial sum has no error.
    whole_models = [model_record(it, 2 * sum_ms(it), **ON_C5) for it in (SQUEEZENET, VGG)]
    _, out, _ = with_records(whole_models, *asked[:2], "table1:17", *asked[2:], "--measured-only", "--csv")
    first, second = csv.DictReader(io.StringIO(out))
    assert (first["complete"], first["error"], bool(first["measured_ms"])) == ("False", "", True)
    assert (second["complete"], bool(second["error"])) == ("True", True)


def test_the_command_for_missing_bricks_measures_exactly_those(with_records: Command, tmp_path: Path) -> None:
    file = saved(tmp_path, small(), "my net")
    (declared,) = small().graph.input
    shape = f"{declared.name}={','.join(str(it.dim_value) for it in declared.type.tensor_type.shape.dim)}"
    asked = ("-g", "2", "--cut", "runnable", "--order", "paper", "--level", "written", "--input", shape)
    _, _, err = with_records([], "estimate", str(file), *asked)
    (command,) = re.findall("`dlbricks (run .*)`", err)
    assert command.startswith(f"run '{file}' ")
    assert shlex.split(command)[2:] == [
        "--granularity", "2", "--cut", "runnable", "--order", "paper", "--level", "written", "--input", shape
    ]  # fmt: skip


def test_a_model_in_an_empty_store_is_predicted_and_said_to_be(with_records: Command) -> None:
    asked = ("estimate", "table1:16", "--level", "written")
    status, out, err = with_records([], *asked, "--json")
    (found,) = json.loads(out)
    low_ms, high_ms = found["interval_ms"]
    assert (status, found["coverage"]["measured"], found["predicted_share"]) == (0, 0, 1.0)
    assert low_ms < found["sequential_ms"] < high_ms
    assert found["coverage"]["predicted"] == LAYERS
    assert "nothing measured fits SqueezeNet" in err and "the store has no results yet" in err
    _, text, _ = with_records([], *asked)
    assert f"~ not all measured: {LAYERS} of {LAYERS} layers, 100 % of the latency, are predicted" in text
    status, out, err = with_records([], *asked, "--json", "--measured-only")
    (found,) = json.loads(out)
    assert status == 1
    assert (found["sequential_ms"], found["parallel_ms"], found["interval_ms"]) == (None, None, None)
    assert found["coverage"]["missing"] == LAYERS
    assert "the store has no results yet" in err
    assert "run `dlbricks run table1:16 --level written`" in err


def test_operators_that_nobody_measured_make_the_range_wide(with_records: Command) -> None:
    status, out, _ = with_records([], "estimate", "table1:4", "--level", "written", "--json")
    (capsules,) = json.loads(out)
    assert (status, capsules["partial"], capsules["unpredicted"]) == (0, False, [])
    assert capsules["coverage"]["predicted"] == capsules["coverage"]["missing"]
    assert capsules["interval_ms"][1] > 5 * capsules["interval_ms"][0] > 0


def test_scores_compare_predictions_with_what_was_measured_since(with_records: Command) -> None:
    assert "name a MODEL" in one_line(with_records(PAPER, "estimate", "--json"))
    status, out, err = with_records([], "estimate", "--score", "--json")
    assert (status, json.loads(out)) == (1, [])
    assert "no model was measured in full" in err
    records = [*(it for hour, each in enumerate((SQUEEZENET, VGG)) for it in lawful_records(each, hour, **ON_C5))]
    asked = ("estimate", "table1:16", "table1:17", "--system", "c5.xlarge", "--score")
    status, out, _ = with_records(records, *asked, "--json")
    assert status == 0
    found = {each["model"].partition(" ")[0]: each for each in json.loads(out)}
    vgg = found["VGG-16"]
    assert (vgg["basis"], vgg["system"], vgg["level"], vgg["holds"]) == ("history", "c5.xlarge", "written", True)
    assert found["SqueezeNet"]["basis"] == "left out"
    assert vgg["low_ms"] < vgg["predicted_ms"] < vgg["high_ms"]
    assert vgg["error"] == pytest.approx(vgg["predicted_ms"] / vgg["measured_ms"] - 1)
    _, text, _ = with_records([], *asked)
    assert re.search(r"2 models: median error .* %, \d within 20 %; the 95 % interval was right \d of 2 times", text)
    assert "1 predicted from earlier results" in text
    # All measured models need no names.
    _, table, _ = with_records([], "estimate", "--score", "--system", "c5.xlarge", "--csv")
    assert len(list(csv.DictReader(io.StringIO(table)))) == 2


def test_unmeasurable_layers_are_reported_on_standard_error(with_records: Command) -> None:
    first = SQUEEZENET.occurrences[0]
    why = {"reason": "crashed", "message": "signal 11"}
    tried = failure(brick=first.brick.key, context=first.context, level=SQUEEZENET.graph.level, **ON_C5, **why)
    records = [*on_c5(SQUEEZENET, without=[(first.brick.key, first.context)]), tried]
    status, out, err = with_records(records, "estimate", "table1:16", "--system", "c5.xlarge", "--json")
    assert status == 0
    assert json.loads(out)[0]["coverage"]["unmeasurable"] == 1
    assert "unmeasurable: SqueezeNet" in err
    assert "crashed: signal 11" in err


@pytest.mark.parametrize(
    "asked",
    [("--system", "c5.xlarge", "--runtime", "default"), ("--level", "written")],
    ids=["another runtime", "another system"],
)
def test_available_results_are_named_when_none_fits(with_records: Command, asked: tuple[str, ...]) -> None:
    status, _, err = with_records(
        on_c5(SQUEEZENET), "estimate", "table1:16", "--level", "written", "--measured-only", *asked
    )
    assert status == 1
    assert "nothing fits SqueezeNet" in err
    assert f"{len(SQUEEZENET.suite)} bricks at level written on c5.xlarge by mxnet-1.5.1" in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--workers", "0"), "give a whole number from 1 to 64"),
        (("--rules", "/nowhere/rules.toml"), "cannot be read"),
        (("--system", "m5.large"), "no system in the store is called 'm5.large'; give one of: c5.xlarge"),
        (("--system", "c5", "--batch", "1000000"), "at batch size 1,000,000 needs about"),
        (("--runtime", "tf"), "no runtime in the store is called 'tf'; give one of: mxnet-1.5.1"),
        (("-g", "0"), "give a whole number from 1 to 999"),
        (("--json", "--csv"), "not allowed with"),
        (("--threads", "1,2", "--accuracy"), "--accuracy judges one variant"),
        (("--bound-ms", "0"), "give a number above 0"),
        (("--threads", "0"), "give a whole number from 1 to 1,024"),
        (("--precision", "bf16", "--runtime", "mxnet"), "computes in f32 and not in bf16"),
        (("--optimisation", "none", "--runtime", "mxnet"), "has no choice of optimisation levels: leave none out"),
        (("--slowest", "0"), "give a whole number from 1 to"),
        (("--slowest", "3", "--threads", "1,2"), "--slowest shows the layers of one variant"),
    ],
)
def test_impossible_options_are_refused_in_one_line(
    with_records: Command, arguments: tuple[str, ...], complaint: str
) -> None:
    assert complaint in one_line(with_records(PAPER, "estimate", "table1:16", "--level", "written", *arguments))


def test_accuracy_has_a_line_per_series(with_records: Command) -> None:
    arguments = ("estimate", "table1:16", "table1:17", "--accuracy")
    status, out, err = with_records(on_c5(SQUEEZENET), *arguments, "--json")
    assert (status, json.loads(out)) == (1, [])
    assert "--end-to-end" in err
    faster: dict[str, Any] = {"system": "c5.2xlarge", "runtime": "mxnet-1.5.1"}
    records = [
        system("c5.2xlarge"),
        *brick_records(VGG, **ON_C5),
        *brick_records(VGG, **faster),
        model_record(SQUEEZENET, sum_ms(SQUEEZENET) / 1.02, **ON_C5),
        model_record(VGG, sum_ms(VGG) / 0.92, **ON_C5),
        model_record(VGG, sum_ms(VGG), **faster),
    ]
    two, one = document(with_records(records, *arguments, "--json"))
    assert (one["system"], one["models"], two["system"], two["models"]) == ("c5.xlarge", 2, "c5.2xlarge", 1)
    assert one["geometric_mean"] == pytest.approx((1.02 * 0.92) ** 0.5)
    assert one["mean_absolute_error"] == pytest.approx(0.05)
    assert (one["within_5_percent"], one["within_10_percent"]) == (0.5, 1.0)
    assert one["speedup"] > 1
    status, out, _ = with_records([], *arguments, "--system", "c5.2xlarge", "--csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["system"] == "c5.2xlarge"
    assert float(row["geometric_mean"]) == pytest.approx(1.0)
    status, out, _ = with_records([], *arguments)
    assert "0.969" in out


def test_a_model_with_too_few_measurable_layers_has_no_number_but_a_hint(with_records: Command) -> None:
    kept, *gone = sorted(SQUEEZENET.suite)
    broken: dict[str, Any] = {**ON_C5, "level": SQUEEZENET.graph.level, "reason": "crashed", "message": "signal 11"}
    failures = [failure(brick=brick, context=context, **broken) for brick, context in gone]
    arguments = ("estimate", "table1:16", "--system", "c5.xlarge", "--measured-only")
    status, out, err = with_records([*on_c5(SQUEEZENET, without=gone), *failures], *arguments, "--json")
    (found,) = json.loads(out)
    assert kept not in gone and status == 1
    assert (found["sequential_ms"], found["interval_ms"], found["next_step"]) == (None, None, "run --end-to-end")
    assert "cannot be measured by themselves" in found["obstacle"]
    assert f"is possible: {found['obstacle']}; time the whole model: run `dlbricks run table1:16 " in err
    assert "--end-to-end` there, on c5.xlarge" in err
    status, out, _ = with_records([], *arguments)
    assert status == 1
    assert f"no estimate is possible: {found['obstacle']}" in out
    assert "at least" not in out


ON_ONE, ON_FOUR = (f"mxnet-1.9.1 python-3.11 threads-{threads}" for threads in (1, 4))


@pytest.mark.mxnet
def test_results_of_limited_kernels_count_only_where_they_are_asked_for(with_records: Command, tmp_path: Path) -> None:
    ours = Registry(tmp_path / "data").default()
    limited: dict[str, Any] = {"runtime": ours.with_kernels(Kernels(InstructionSet.AVX2)).identity}
    here = {"system": fingerprint().id}
    asked = ("estimate", "table1:16", "--level", "written", "--measured-only", "--json")
    status, out, _ = with_records([*brick_records(SQUEEZENET, **{**here, **limited}), *on_c5(SQUEEZENET)], *asked)
    assert (status, json.loads(out)[0]["sequential_ms"]) == (1, None)
    status, out, _ = with_records([], *asked, "--instructions", "avx2")
    (found,) = json.loads(out)
    assert (status, found["runtime"], found["instructions"]) == (0, limited["runtime"], "avx2")
    _, _, err = with_records([], *asked, "--instructions", "sse41")
    assert "--instructions sse41" in err
    elsewhere = brick_records(SQUEEZENET, system="c5.xlarge", **limited)
    _, out, _ = with_records(elsewhere, *asked, "--system", "c5.xlarge")
    assert json.loads(out)[0]["instructions"] == "all"


def test_the_slowest_layers_are_shown_with_the_share_of_all_slower_ones(with_records: Command) -> None:
    asked = ("estimate", "table1:16", "--system", "c5.xlarge", "--slowest", "3")
    status, out, _ = with_records(on_c5(SQUEEZENET), *asked)
    found = slowest(estimate(SQUEEZENET, measured(SQUEEZENET)), 3)
    assert status == 0 and slowest_in_words(found) in out and "Latency by type" not in out
    assert [line for line in out.splitlines() if f"{percent(found.parts[1].cumulative, 1)}" in line]
    (document,) = json.loads(with_records([], *asked, "--json")[1])
    assert [it["cumulative_share"] for it in document["slowest"]] == [it.cumulative for it in found.parts]
    assert [it["layers"] for it in document["slowest"]] == [list(it.part.layers) for it in found.parts]
    _, out, _ = with_records([], *asked, "--csv")
    assert len(out.splitlines()) == 1 + 3 and out.startswith("model,layers,names,ops,brick,latency_ms,share,")
