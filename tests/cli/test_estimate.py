"""`dlbricks estimate`, and commands about models of several formats, each of which has its runtime."""

import csv
import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.parts import slowest
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Format
from dlbricks_tui.runtime.variant import ANY_VARIANT, InstructionSet, Kernels
from dlbricks_tui.store.records import Measurement, Record
from dlbricks_tui.wording.answers import slowest_in_words
from dlbricks_tui.wording.numbers import percent
from sample_models.builders.symbol_writer import SymbolWriter
from tests.cli.people import Command, document, one_line
from tests.estimate.knowledge_of import latency_of, measured
from tests.estimate.simulated import lawful_records
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.estimate.table1 import table1
from tests.models.onnx_models import saved, small
from tests.models.table_framework import TableFramework
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
    assert status == 0 and "c5.xlarge has results at level written and none at fused" in told
    (found,) = json.loads(out)
    names = ("system", "runtime", "granularity", "level", "predicted_share", "measured_ms")
    assert [found[name] for name in names] == ["c5.xlarge", "mxnet-1.5.1", 1, "written", 0.0, 40.0]
    assert found["model"].startswith("SqueezeNet")
    assert found["sequential_ms"] == pytest.approx(sum_ms(SQUEEZENET))
    assert found["parallel_ms"] <= found["workers_ms"] <= found["sequential_ms"]
    low, high = found["interval_ms"]
    assert low < found["sequential_ms"] < high
    assert {name: number for name, number in found["coverage"].items() if number} == {"measured": LAYERS}
    assert found["error"] == pytest.approx(found["sequential_ms"] / 40.0 - 1)
    assert found["critical_path"][0] == 0 and found["critical_path"] == sorted(found["critical_path"])
    for explained in ("types", "regions"):
        assert sum(it["latency_ms"] for it in found[explained]) == pytest.approx(found["sequential_ms"])
        assert sum(it["layers"] for it in found[explained]) == LAYERS
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\nparallel = false\n")
    (limited,) = document(with_records([], *asked, "--rules", str(rules), "--json"))
    assert limited["parallel_ms"] == limited["sequential_ms"]
    status, out, _ = with_records([], *asked, "--workers", "3")
    assert status == 0
    for said in ("sequential", "3 workers", "end to end", "convolution", "█", "an estimate of unfused layers"):
        assert said in out


def test_the_last_method_answers_even_if_another_one_has_found_less(with_records: Command) -> None:
    def slower(record: Record) -> Record:
        return replace(record, statistics=timed(2 * sum_ms(SQUEEZENET))) if isinstance(record, Measurement) else record

    before = on_c5(SQUEEZENET, protocol="inside-of-old", when="2026-01-01T00:00:00+00:00")
    since = [slower(it) for it in on_c5(SQUEEZENET, protocol="inside-of-new", when="2026-02-01T00:00:00+00:00")]
    asked = ("estimate", "table1:16", "--system", "c5.xlarge", "--json")
    (found,) = document(with_records([*since, *before], *asked))
    assert found["sequential_ms"] > 2 * sum_ms(SQUEEZENET)


def test_several_models_are_listed_or_lines_of_csv(with_records: Command) -> None:
    whole = [model_record(SQUEEZENET, 2 * sum_ms(SQUEEZENET), **ON_C5), model_record(VGG, sum_ms(VGG) / 1.04, **ON_C5)]
    some = on_c5(SQUEEZENET, without=sorted(SQUEEZENET.pairs)[:1])
    asked = ("estimate", "table1:16", "table1:17", "--system", "c5.xlarge")
    status, out, _ = with_records([*some, *brick_records(VGG, **ON_C5), *whole], *asked)
    assert status == 0 and "SqueezeNet" in out and "+4.0 %" in out
    first, second = csv.DictReader(io.StringIO(with_records([], *asked, "--measured-only", "--csv")[1]))
    # A partial sum has no error.
    assert (first["complete"], first["error"], bool(first["measured_ms"])) == ("False", "", True)
    assert second["complete"] == "True" and float(second["error"]) == pytest.approx(0.04)


def test_missing_bricks_are_left_out_or_predicted_and_the_command_that_measures_them_is_named(
    with_records: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = sorted(SQUEEZENET.pairs)[::2]
    asked = ("estimate", "table1:16", "--system", "c5.xlarge")
    status, out, err = with_records(on_c5(SQUEEZENET, without=gone), *asked, "--measured-only", "--json")
    (measured_only,) = json.loads(out)
    assert status == 0 and measured_only["partial"] and not measured_only["complete"]
    assert measured_only["remaining"]["bricks"] == len(gone)
    assert (measured_only["coverage"]["predicted"], measured_only["predicted_share"]) == (0, 0.0)
    assert (measured_only["next_step"], measured_only["obstacle"]) == ("run", None)
    assert f"{len(gone)} bricks to run" in err
    assert "`dlbricks run table1:16 --level written` there, on c5.xlarge" in err
    _, _, err = with_records([], *asked, "--measured-only", "--runtime", "mxnet")
    assert "`dlbricks run table1:16 --level written --runtime mxnet` there, on c5.xlarge" in err

    status, out, err = with_records(brick_records(VGG, **ON_C5), *asked, "--json")
    (found,) = json.loads(out)
    assert (status, found["complete"], found["next_step"]) == (0, False, "run")
    assert found["coverage"]["missing"] >= found["coverage"]["predicted"] == found["coverage"]["bridged"] > 0
    assert 0 < found["predicted_share"] < 1 and found["sequential_ms"] > measured_only["sequential_ms"]
    assert f"{found['coverage']['predicted']} of them predicted" in err and "bricks to run" in err
    monkeypatch.setenv("DLBRICKS_ESTIMATE_PREDICTIONS", "off")
    assert document(with_records([], *asked, "--json"))[0]["coverage"]["predicted"] == 0


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
    assert (status, found["coverage"]["predicted"], found["predicted_share"]) == (0, LAYERS, 1.0)
    assert low_ms < found["sequential_ms"] < high_ms
    assert "nothing measured fits SqueezeNet" in err and "the store has no results yet" in err
    shown = with_records([], *asked)[1]
    assert f"~ not all measured: {LAYERS} of {LAYERS} layers" in shown and "thread, f32: ~" in shown
    status, out, err = with_records([], *asked, "--json", "--measured-only")
    (found,) = json.loads(out)
    assert (status, found["sequential_ms"], found["coverage"]["missing"]) == (1, None, LAYERS)
    assert "run `dlbricks run table1:16 --level written`" in err


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


def test_available_results_are_named_when_none_fits(with_records: Command) -> None:
    asked = ("estimate", "table1:16", "--level", "written", "--measured-only")
    for other in ((), ("--system", "c5.xlarge", "--runtime", "default")):
        status, _, err = with_records(on_c5(SQUEEZENET), *asked, *other)
        assert status == 1 and "nothing fits SqueezeNet" in err
        assert f"{len(SQUEEZENET.pairs)} bricks at level written on c5.xlarge by mxnet-1.5.1" in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--rules", "/nowhere/rules.toml"), "cannot be read"),
        (("--system", "m5.large"), "no system in the store is called 'm5.large'; give one of: c5.xlarge"),
        (("--system", "c5", "--batch", "1000000"), "at batch size 1,000,000 needs about"),
        (("--runtime", "tf"), "no runtime in the store is called 'tf'; give one of: mxnet-1.5.1"),
        (("--json", "--csv"), "not allowed with"),
        (("--threads", "1,2", "--accuracy"), "--accuracy judges one variant"),
        (("--score", "--accuracy"), "argument --accuracy: not allowed with argument --score"),
        (("--workers", "2", "--accuracy"), "--workers is not for --accuracy and --score"),
        (("--workers", "2", "--threads", "1,2"), "--workers composes what this view does not show"),
        (("--bound-ms", "20", "--json"), "leave --json and --csv out"),
        (("--bound-ms", "20", "--score"), "--score judges one variant: give one value each of --runtime, "),
        (("--precision", "bf16", "--runtime", "mxnet"), "computes in f32 and not in bf16"),
        (("--optimisation", "none", "--runtime", "mxnet"), "has no choice of optimisation levels: leave none out"),
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
    (row,) = csv.DictReader(io.StringIO(with_records([], *arguments, "--system", "c5.2xlarge", "--csv")[1]))
    assert row["system"] == "c5.2xlarge" and float(row["geometric_mean"]) == pytest.approx(1.0)
    assert "0.969" in with_records([], *arguments)[1]
    assert json.loads(with_records([], *arguments, "--threads", "2", "--json")[1]) == [], "no result states threads"


def test_a_model_with_too_few_measurable_layers_has_no_number_but_a_hint(with_records: Command) -> None:
    kept, *gone = sorted(SQUEEZENET.pairs)
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
    limited = Registry(tmp_path / "data").default().with_kernels(Kernels(InstructionSet.AVX2)).identity
    asked = ("estimate", "table1:16", "--level", "written", "--measured-only", "--json")
    records = brick_records(SQUEEZENET, system=fingerprint().id, runtime=limited)
    status, out, _ = with_records([*records, *on_c5(SQUEEZENET)], *asked)
    assert (status, json.loads(out)[0]["sequential_ms"]) == (1, None)
    (found,) = document(with_records([], *asked, "--instructions", "avx2"))
    assert (found["runtime"], found["instructions"]) == (limited, "avx2")
    assert "--instructions sse41" in with_records([], *asked, "--instructions", "sse41")[2]


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


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return saved(tmp_path, small())


@pytest.fixture
def usual(tmp_path: Path) -> tuple[Runtime, Runtime]:
    """The runtimes of this host for MXNet and for ONNX models."""
    registry = Registry(tmp_path / "data")
    onnx = registry.preferred_for({Format.ONNX})
    assert onnx is not None
    return registry.default(), onnx


def small_onnx(net: Path) -> Decomposition:
    return decompose(Loader(net.parent / "cache", TableFramework()).load(source_of(net)))


def on_this_host(decomposition: Decomposition, by: Runtime, when: int = 0) -> list[Record]:
    """All bricks of a model, measured here by a runtime."""
    moment = f"2026-11-{21 + when}T08:00:00.000000+00:00"
    record = runtime(by.identity, framework=by.framework)
    return [record, *brick_records(decomposition, system=fingerprint().id, runtime=by.identity, when=moment)]


def store(tmp_path: Path, *records: Sequence[Record]) -> None:
    store_of(tmp_path / "data" / "store", *(record for some in records for record in some)).close()


def test_each_model_of_a_list_is_estimated_by_the_runtime_of_its_format(
    dlbricks: Command, net: Path, usual: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    mxnet, onnx = usual
    found = small_onnx(net)
    # The bricks that both formats have were measured by MXNet too, and later.
    store(tmp_path, on_this_host(SQUEEZENET, mxnet), on_this_host(found, onnx), on_this_host(found, mxnet, when=1))
    status, out, told = dlbricks("estimate", "table1:16", str(net), "--level", "written", "--json")
    assert status == 0, told
    assert [model["runtime"] for model in json.loads(out)] == [mxnet.identity, onnx.identity]


@pytest.fixture
def squeezenet_onnx(tmp_path: Path) -> Decomposition:
    (source,) = Library(SAMPLE_MODELS, tmp_path, Format.ONNX).find("table1:16")
    return decompose(Loader(tmp_path / "cache", TableFramework()).load(source))


def test_the_runtime_decides_which_file_of_a_model_is_estimated(
    dlbricks: Command, squeezenet_onnx: Decomposition, usual: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    mxnet, onnx = usual
    asked = ("estimate", "table1:16", "--level", "written", "--json")
    # Only the runtime of its other format has measured the model.
    store(tmp_path, on_this_host(squeezenet_onnx, onnx))
    status, out, told = dlbricks(*asked)
    assert (status, json.loads(out)[0]["runtime"]) == (0, onnx.identity), told
    status, out, _ = dlbricks(*asked, "--runtime", "mxnet", "--measured-only")
    assert (status, json.loads(out)[0]["sequential_ms"]) == (1, None)
    store(tmp_path, on_this_host(SQUEEZENET, mxnet, when=-1))
    for named, expected in ((), onnx), (("--runtime", "mxnet"), mxnet), (("--runtime", "onnxruntime"), onnx):
        (model,) = document(dlbricks(*asked, *named))
        assert (model["runtime"], model["complete"]) == (expected.identity, True)


def test_the_runtime_decides_which_file_is_cut(dlbricks: Command, net: Path) -> None:
    def layers(*named: str) -> int:
        found = document(dlbricks("tree", "table1:41", "--json", *named))
        return int(found["layers"])

    assert layers("--runtime", "mxnet") == 106
    assert layers("--runtime", "onnxruntime") == 103
    status, out, told = dlbricks("corpus", "table1:41", "--runtime", "default-onnx", "--json")
    assert (status, json.loads(out)["layers"]) == (0, 103)
    for command in (["tree", str(net)], ["corpus", str(net)]):
        told = one_line(dlbricks(*command, "--runtime", "mxnet"))
        assert "net is an ONNX model, and runtime default runs those of MXNet" in told
        assert dlbricks("--set", "run.runtime=default", *command)[0] == 0


def test_many_gaps_are_named_in_one_line_with_a_command_per_format(
    dlbricks: Command, net: Path, usual: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    mxnet, onnx = usual
    some = small_onnx(net)
    store(
        tmp_path,
        on_this_host(replace(SQUEEZENET, occurrences=SQUEEZENET.occurrences[:40]), mxnet),
        on_this_host(replace(some, occurrences=some.occurrences[:3]), onnx),
    )
    copies = [saved(tmp_path, small(), f"net{number}") for number in range(5)]
    status, _, told = dlbricks("estimate", "table1:16", *map(str, copies), "--level", "written")
    assert status == 0
    assert "6 models are incomplete" in told
    assert f"`dlbricks run table1:16 --level written` and `dlbricks run {copies[0]}" in told


def test_a_named_runtime_of_another_format_is_refused(dlbricks: Command, net: Path) -> None:
    status, out, told = dlbricks("estimate", str(net), "--runtime", "default")
    assert (status, out) == (2, "")
    assert "runtime default runs MXNet models, and net is one of ONNX: name another --runtime, or none" in told


def test_a_configured_runtime_applies_to_models_of_its_format_only(dlbricks: Command, net: Path) -> None:
    measured = ("--level", "written", "--fixed-runs", "1", "--json")
    found = document(dlbricks("--set", "run.runtime=default", "run", str(net), *measured))
    assert ONNX_RUNTIME.framework in found["models"][0]["runtime"]
    status, _, told = dlbricks("run", str(net), "--runtime", "default", *measured)
    assert status == 2
    assert "choose another runtime, or none" in told


def test_an_estimate_uses_the_configured_threads(
    dlbricks: Command, net: Path, usual: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    _, onnx = usual
    one, three = onnx.with_threads(1), onnx.with_threads(3)
    store(tmp_path, on_this_host(small_onnx(net), one), on_this_host(small_onnx(net), three, when=1))
    status, out, told = dlbricks("--set", "run.threads=1", "estimate", str(net), "--json")
    assert status == 0, told
    assert json.loads(out)[0]["runtime"] == one.identity
    assert "estimating by" not in told


@pytest.fixture
def without_mxnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder whose MXNet interpreter is gone."""
    gone = Runtime("gone", "/nowhere/python", MXNET.framework, "1.9.1", "3.11.0")
    usual = Registry.preferred_for
    monkeypatch.setattr(
        Registry,
        "preferred_for",
        lambda registry, forms, asked=ANY_VARIANT: (
            gone if Format.MXNET in forms and gone.can_have(asked) else usual(registry, forms, asked)
        ),
    )


@pytest.fixture
def unread(tmp_path: Path) -> list[str]:
    """Two MXNet models that were never read before."""
    writer = SymbolWriter()
    content = writer.render(writer.op("Activation", writer.input("data", (1, 3, 8, 8)), act_type="relu"))
    paths = [tmp_path / f"{name}-symbol.json" for name in ("one", "other")]
    for path in paths:
        path.write_bytes(content)
    return list(map(str, paths))


@pytest.mark.usefixtures("without_mxnet")
@pytest.mark.parametrize("command", ["corpus", "estimate"])
def test_models_of_a_missing_framework_are_named_in_one_line(
    command: str, dlbricks: Command, net: Path, unread: list[str]
) -> None:
    status, out, told = dlbricks(command, *unread, str(net), "--level", "written", "--json")
    assert status == 1
    assert "net" in out
    (line,) = [line for line in told.splitlines() if line.startswith("left out: ")]
    assert line.startswith("left out: one, other: cannot start /nowhere/python")
