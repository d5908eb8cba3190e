"""Commands about models of several formats: each has its runtime, and models without one cost no others."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.reported import Networks
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import FrameworkMissingError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.suite_files import Manifest, SuiteBrick, sha256, write_suite
from dlbricks_tui.store.records import Record
from sample_models.builders.symbol_writer import SymbolWriter
from tests.cli.people import Command, document, one_line
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import saved, small
from tests.models.table_framework import TableFramework
from tests.store.samples import runtime

pytestmark = pytest.mark.usefixtures("shared_cache")

# SqueezeNet, whose types are delivered at level `written`.
SQUEEZENET = decompose(table1()["16"])


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


def test_results_of_both_files_of_a_model_are_compared_side_by_side(
    dlbricks: Command, squeezenet_onnx: Decomposition, usual: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    mxnet, onnx = usual
    timed = [
        model_record(it, 9.0, system=fingerprint().id, runtime=by.identity)
        for it, by in ((SQUEEZENET, mxnet), (squeezenet_onnx, onnx))
    ]
    store(tmp_path, on_this_host(SQUEEZENET, mxnet), on_this_host(squeezenet_onnx, onnx, when=1), timed)
    both = {mxnet.identity, onnx.identity}
    for named, expected in ((), both), (("--runtime", "onnxruntime"), {onnx.identity}):
        status, out, told = dlbricks("estimate", "table1:16", "--level", "written", "--accuracy", "--json", *named)
        assert status == 0, told
        assert {group["runtime"] for group in json.loads(out)} == expected
    report = ("report", "-o", tmp_path / "report", "--models", "table1:16", "--json")
    found = document(dlbricks(*report))
    assert {series["runtime"] for series in found["series"]} == both


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


def test_a_framework_without_a_runtime_is_refused_in_one_line(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Registry.find

    def without_onnx(registry: Registry, name: str) -> Runtime:
        monkeypatch.setattr(Registry, "all", lambda _: ())
        return found(registry, name)

    monkeypatch.setattr(Registry, "find", without_onnx)
    told = one_line(dlbricks("run", "table1:16", "--runtime", "onnxruntime"))
    assert "no runtime here has ONNX Runtime" in told


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
        lambda registry, forms, precision=None: (
            gone if Format.MXNET in forms and gone.computes_in(precision) else usual(registry, forms, precision)
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


@pytest.mark.usefixtures("without_mxnet")
def test_a_report_covers_the_models_whose_framework_is_installed(net: Path, unread: list[str]) -> None:
    class Missing(TableFramework):
        def infer(self, symbol: str, shapes: object) -> Any:
            raise FrameworkMissingError("no MXNet")

    loader = Loader(net.parent / "cache", Missing())
    networks = Networks(loader, [source_of(Path(path)) for path in (*unread, str(net))], Level.WRITTEN)
    assert [subject.name for subject in networks.by_reported_model] == ["net"]
    assert networks.left_out.lines == ["one, other: no MXNet"]


def test_a_suite_is_for_runtimes_of_its_format(dlbricks: Command, tmp_path: Path) -> None:
    brick = SuiteBrick("ab" * 16, Format.MXNET, 1, False, 2, sha256(b"{}"))
    write_suite(
        tmp_path / "suite", Manifest("cd" * 16, Level.WRITTEN, Precision.F32, ("mxnet",), (brick,)), {brick.id: b"{}"}
    )
    asked = ["suite", "run", str(tmp_path / "suite"), "-o", str(tmp_path / "results.json")]
    told = one_line(dlbricks(*asked, "--runtime", "default-onnx"))
    assert "runtime default-onnx is ONNX Runtime, and the suite is for MXNet; name another --runtime, or none" in told
    assert not (tmp_path / "data" / "runs").exists()
