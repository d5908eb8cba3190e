"""`dlbricks analyze` on a store, and `--measure --prove` by ONNX Runtime on a tiny model."""

import csv
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import pytest

from dlbricks_tui.analysis.proving import ProofRule, Prover
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api import analysing as lacking
from dlbricks_tui.api.analysing import ProvingError, asked_what_ifs
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host import peaks
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Kernels, Optimisation
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks, Proof
from tests.cli.people import Command, document, hurry, one_line
from tests.cli.people import Command as Analyze
from tests.estimate.stored import brick_records, results_of, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import saved, small, written
from tests.models.table_framework import TableFramework
from tests.store.samples import peaks as known_peaks
from tests.store.samples import system

pytestmark = pytest.mark.usefixtures("shared_cache")

# SqueezeNet as MXNet has it; its types are delivered at level `written`.
SQUEEZENET = decompose(table1()["16"])
MXNET_1, MXNET_2 = (f"mxnet-1.9.1 python-3.11 threads-{threads}" for threads in (1, 2))
CONTRACT = {
    *("model", "system", "measured_ms", "sequential_ms", "best_ms", "best_parallel_ms", "roofline_ms"),
    *("what_ifs", "gap"),
}


@pytest.fixture
def analyze(with_records: Analyze) -> Analyze:
    """Run `dlbricks analyze ...` about a system with these records in the store."""
    return lambda records, *arguments: with_records(records, "analyze", "--system", "c5.xlarge", *arguments)


def analysis_in(out: str) -> dict[str, Any]:
    (found,) = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_an_analysis_has_the_keys_that_programs_use(analyze: Analyze) -> None:
    records = [*results_of(SQUEEZENET, MXNET_1, 60.0), *results_of(SQUEEZENET, MXNET_2, factor=0.5), known_peaks()]
    (found,) = document(analyze(records, "table1:16", "--runtime", MXNET_1, "--json"))
    assert found.keys() >= CONTRACT
    assert (found["system"], found["measured_ms"]) == ("c5.xlarge", pytest.approx(60.0))
    assert found["best_ms"] == pytest.approx(found["sequential_ms"] / 2)
    assert 0 < found["best_parallel_ms"] <= found["best_ms"] and found["roofline_ms"] > 0
    parts = found["gap"]
    assert set(parts) == {"slower_layers_ms", "conversions_ms", "calls_ms", "unexplained_ms"}
    assert sum(parts.values()) == pytest.approx(found["measured_ms"] - found["best_ms"], abs=1e-9)
    (threads,) = found["what_ifs"]
    assert set(threads) >= {"id", "kind", "estimate_ms", "gain", "interval", "layers", "how", "proof"}
    assert (threads["id"], threads["kind"], threads["proof"]) == ("threads-2", "threads", None)
    low, high = threads["interval"]
    assert low < threads["gain"] < high and threads["gain"] == pytest.approx(0.5)
    status, out, _ = analyze([], "table1:16", "--runtime", MXNET_2, "--roofline")
    assert status == 0 and "GFLOP/s by FLOP/byte" in out and " of the time is in layers bound by " in out
    status, out, _ = analyze([], "table1:16", "--runtime", MXNET_1, "--layers")
    assert status == 0 and "60.00 ms measured" in out and "FASTEST" in out


def test_several_models_make_tables_rows_of_csv_or_details_one_after_another(analyze: Analyze) -> None:
    both = ("table1:16", "squeezenet1.0", "--runtime", MXNET_1)
    status, out, err = analyze(
        [*results_of(SQUEEZENET, MXNET_1, 60.0), *results_of(SQUEEZENET, MXNET_2, factor=0.5)], *both
    )
    assert status == 1 and "\nBOUNDS" in out
    assert err.count("dlbricks doctor --peaks --threads 1") == 1, "what several models lack is named once"
    first, second = csv.DictReader(analyze([], *both, "--csv")[1].splitlines())
    assert float(first["measured_ms"]) == pytest.approx(60.0)
    assert (second["model"], second["best_ms"]) == ("squeezenet1.0", "")
    out = analyze([], *both, "--layers")[1]
    assert "FASTEST" in out and "BOUNDS" not in out


def test_what_was_not_measured_is_named_with_the_command_that_measures_it(analyze: Analyze) -> None:
    asked = ("table1:16", "--runtime", MXNET_1)
    status, out, err = analyze(results_of(SQUEEZENET, MXNET_1, 60.0), *asked, "--json")
    assert (status, analysis_in(out)["roofline_ms"]) == (0, None)
    assert "dlbricks doctor --peaks --threads 1" in err
    _, out, _ = analyze([], *asked, "--roofline")
    assert out.splitlines()[-1].startswith("no roofline: the peaks of the system are not known")
    _, _, err = analyze([], *asked, "-g", "2", "--cut", "runnable")
    assert "--threads 1 --level written --granularity 2 --cut runnable`" in err
    status, out, told = analyze([], *asked, "--kernels", "--json")
    assert (status, analysis_in(out)["kernels"]) == (1, [])
    assert "was measured on c5.xlarge, and only that host tells its kernels" in told
    status, out, err = analyze([], "squeezenet1.0", "--runtime", MXNET_1, "--json")
    found = analysis_in(out)
    assert (status, found["best_ms"], found["gap"], found["what_ifs"]) == (1, None, None, [])
    assert "dlbricks run squeezenet1.0" in err


def test_options_without_an_effect_are_refused_in_one_line(analyze: Analyze) -> None:
    for words, complaint in {
        "--kinds batch": "--kinds is for --measure and --prove",
        "--detach": "name what to prove",
        "--prove all --detach --dot a.dot": "--dot shows what is known here",
        "--kernels --csv": "--kernels adds nothing to --csv",
        "--tree --json": "--tree is for people",
    }.items():
        assert complaint in one_line(analyze([], "table1:16", *words.split()))


def test_the_tree_and_graph_files_have_the_time_of_each_part(analyze: Analyze, tmp_path: Path) -> None:
    dot, graphml = tmp_path / "a.dot", tmp_path / "a.graphml"
    asked = ("table1:16", "--runtime", MXNET_1)
    files = ("--dot", str(dot), "--graphml", str(graphml))
    status, out, _ = analyze(results_of(SQUEEZENET, MXNET_1, 60.0), *asked, "--json", *files)
    times = [facts["latency_ms"] for _, facts in networkx.read_graphml(graphml).nodes(data=True)]
    assert (status, len(times)) == (0, len(SQUEEZENET.graph.layers))
    assert sum(times) == pytest.approx(analysis_in(out)["sequential_ms"], rel=0.05)
    assert " ms" in dot.read_text()
    status, out, _ = analyze([], *asked, "--tree")
    assert status == 0
    header = next(line for line in out.splitlines() if line.startswith("REGION"))
    assert header.split()[:3] == ["REGION", "MS", "SHARE"]
    assert "MS, SHARE: the time in this place" in out
    assert "ONNX" in one_line(analyze([], *asked, "--onnx", str(tmp_path / "a"))), "the model is one of MXNet"
    one_line(analyze([], "table1:16", "squeezenet1.0", "--runtime", MXNET_1, "--dot", str(dot)))


def test_the_limits_on_kernels_choose_the_baseline_and_this_host_tells_its_kernels(
    dlbricks: Command, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    ours = Registry(data).find("onnxruntime")
    basic = ours.with_kernels(Kernels(optimisation=Optimisation.BASIC)).identity
    (source,) = Library(SAMPLE_MODELS, data, Format.ONNX).find("tabular_network")
    model = decompose(Loader(data / "cache", TableFramework()).load(source, Level.WRITTEN).named(source.name))
    store_of(data / "store", *brick_records(model, system=fingerprint().id, runtime=ours.identity)).close()
    asked = ["analyze", source.name, "--runtime", ours.name, "--level", "written"]
    found = analysis_in(dlbricks(*asked, "--kernels", "--json")[1])
    assert [it["layer"] for it in found["kernels"]] == [it.name for it in model.graph.layers]
    assert sum(it["latency_ms"] for it in found["kernels"]) == pytest.approx(found["sequential_ms"])
    assert "KERNEL" in dlbricks(*asked, "--kernels")[1]
    store_of(data / "store", *brick_records(model, system=fingerprint().id, runtime=basic)).close()
    status, out, _ = dlbricks(*asked, "--optimisation", "basic", "--json")
    assert (status, [it["id"] for it in analysis_in(out)["what_ifs"]]) == (0, ["kernels-default"])
    assert " --optimisation basic " in analysis_in(out)["missing"][0]["command"]


@pytest.fixture(scope="module")
def measured_net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a model, measured fused and as written, and one proof of its what-if."""
    folder = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOST_LOCK_VARIABLE, str(folder / "host.lock"))
        hurry(patch)
        patch.setattr(ProofRule, "is_done", lambda _, rounds, *__: rounds >= 5)
        arguments = ["--measure", "--prove", "all", "--kinds", "fusion", "--runtime", "onnxruntime", "--threads", "1"]
        status = main(["--data-dir", str(folder / "data"), "analyze", str(saved(folder, small())), *arguments])
    assert status == 0
    yield folder


@pytest.fixture
def analyze_net(measured_net: Path, data_folder: str, dlbricks: Command) -> Analyze:
    """Analyse the model with a copy of the results."""
    shutil.copytree(measured_net / "data", data_folder, ignore=shutil.ignore_patterns("cache"), dirs_exist_ok=True)
    usual = ("--runtime", "onnxruntime", "--threads", "1")
    return lambda *arguments: dlbricks("analyze", measured_net / "net.onnx", *usual, *arguments)


def what_ifs(out: str) -> dict[str, Any]:
    (found,) = json.loads(out)
    return {it["id"]: it for it in found["what_ifs"]}


def test_the_measured_gain_stands_next_to_the_predicted_one(analyze_net: Analyze, tmp_path: Path) -> None:
    status, out, _ = analyze_net("--json")
    proof = what_ifs(out)["fusion-off"]["proof"]
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        (stored,) = store.records(Proof)
    assert (status, proof["measured_ms"]) == (0, pytest.approx(stored.after.trimmed_mean_ms))
    assert proof["before_ms"] == pytest.approx(stored.before.trimmed_mean_ms)
    assert (proof["gain"], *proof["interval"]) == pytest.approx((stored.gain, stored.gain_low, stored.gain_high))
    (row,) = (line for line in analyze_net()[1].splitlines() if line.startswith("fuse no layers"))
    assert f"{100 * proof['gain']:+.1f} %  " in row


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_what_is_to_be_measured_is_told_with_its_time_before_it_starts(
    analyze_net: Analyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.runs.control.create_run", interrupted)
    status, out, told = analyze_net("--measure", "--kinds", "batch,kernels")
    assert (status, out) == (130, "")
    # Its file has a batch size of 1 and no other.
    assert "net lacks 2 executions, about 38 s:" in told
    assert "kernels: ONNX Runtime, 1 thread, optimisation extended" in told


def test_a_quantised_file_of_open_batch_size_lacks_other_batch_sizes_and_no_int8(
    dlbricks: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.runs.control.create_run", interrupted)
    net = written(
        """test (float[N,4] x) => (y) <int8[4,4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> {
            a, s, z = DynamicQuantizeLinear (x)
            y = MatMulInteger (a, w, z)
        }"""
    )
    asked = ("--runtime", "onnxruntime", "--threads", "1", "--measure", "--kinds", "batch,precision")
    status, _, told = dlbricks("analyze", saved(tmp_path, net), *asked)
    assert status == 130 and "net lacks 4 executions" in told and "baseline: " in told
    assert "batch 8" in told and "int8" not in told


def test_a_run_that_fails_keeps_nobody_from_the_analysis(analyze_net: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UserError("the model cannot be read")

    monkeypatch.setattr("dlbricks_tui.cli.run.execute_shown", refuse)
    status, out, _ = analyze_net("--measure", "--kinds", "kernels", "--json")
    assert (status, analysis_in(out)["model"]) == (1, "net")


def test_peaks_that_the_roofline_lacks_are_measured_once(analyze_net: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(system: str, threads: int) -> Peaks:
        measured.append(threads)
        return known_peaks(system=system, threads=threads)

    monkeypatch.setattr(peaks, "measure_peaks", measure)
    monkeypatch.setattr(lacking, "lacks_of", lambda *_: ())
    assert json.loads(analyze_net("--json")[1])[0]["roofline_ms"] is None
    status, out, told = analyze_net("--measure", "--json")
    assert status == 0, told
    assert json.loads(out)[0]["roofline_ms"] > 0
    assert "net lacks peaks, about 4 s:\n" in told and "roofline: the peaks of this host with 1 thread" in told
    assert "lack nothing" in analyze_net("--measure")[2]
    assert measured == [1]


def test_an_unknown_what_if_is_refused_with_the_known_ones(analyze_net: Analyze) -> None:
    status, out, told = analyze_net("--prove", "parallel-7")
    assert (status, out) == (2, "")
    assert "no what-if 'parallel-7' of net; there are fusion-off" in told.replace("fusion, ", "")
    status, _, told = analyze_net("--prove", "all", "--kinds", "threads")
    assert status == 2
    assert "there is no what-if to prove: --measure measures what they lack" in told


@pytest.mark.parametrize("option", [("--prove", "all"), ("--measure",)])
def test_only_this_host_is_measured(analyze_net: Analyze, tmp_path: Path, option: tuple[str, ...]) -> None:
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(system())
    status, _, told = analyze_net("--system", "c5.xlarge", *option)
    assert status == 2
    assert "was analysed on another system, and models run on this host: leave out --system" in told


def analysed(model: str, **what_ifs: bool) -> Any:
    """An analysis with these what-ifs; those that are False are bounds."""
    found = [
        SimpleNamespace(id=name, kind=WhatIfKind.BATCH, change=object() if possible else None)
        for name, possible in what_ifs.items()
    ]
    return SimpleNamespace(source=SimpleNamespace(name=model), what_ifs=found)


def test_a_what_if_that_only_some_models_have_is_proved_for_these() -> None:
    models = [analysed("one", first=True, bound=False), analysed("two", second=True)]
    kinds = tuple(WhatIfKind)
    one, two = asked_what_ifs(models, ["first", "second", "first"], kinds)
    assert ([it.id for it in one.what_ifs], one.unknown) == (["first"], ("second",))
    assert ([it.id for it in two.what_ifs], two.unknown) == (["second"], ("first",))
    ids = [[it.id for it in each.what_ifs] for each in asked_what_ifs(models, ["all"], kinds)]
    assert ids == [["first"], ["second"]]
    with pytest.raises(ProvingError, match="no what-if 'third' of one, two; there are first, second"):
        asked_what_ifs(models, ["first", "third"], kinds)


def test_the_keyboard_ends_proving_with_its_own_status(analyze_net: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prover: Prover, *_: object) -> Proof:
        os.kill(os.getpid(), signal.SIGINT)
        prover.signals.check()
        raise AssertionError

    monkeypatch.setattr(Prover, "prove", interrupted)
    status, out, told = analyze_net("--prove", "all")
    assert (status, out) == (130, "")
    assert "it was interrupted from the keyboard; 0 proofs before it are kept" in told
