"""`dlbricks analyze --measure --prove`, by ONNX Runtime on a tiny model."""

import io
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from dlbricks_tui.analysis.jobs import ProofOrder
from dlbricks_tui.analysis.proving import ProofError, ProofRule, Prover, RoundsDone
from dlbricks_tui.analysis.what_if import Gain, WhatIf, WhatIfKind
from dlbricks_tui.answers.analysis import lacking
from dlbricks_tui.answers.analysis.asked_proofs import ProvingError, asked_what_ifs
from dlbricks_tui.cli.job_progress import JobNarration
from dlbricks_tui.cli.main import main
from dlbricks_tui.documents.what_ifs import interval_of
from dlbricks_tui.host import peaks
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks, Proof
from dlbricks_tui.wording.jobs import proof_line
from tests.cli.people import hurry
from tests.models.onnx_models import saved, small
from tests.store.samples import system

PROOFS = partial(proof_line, order=ProofOrder(ModelSource("net", Path("net.onnx")), ()))

Analyze = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
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
def analyze(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Analyze:
    """Analyse the model with a copy of the results."""
    shutil.copytree(measured / "data", tmp_path / "data")

    def run(*arguments: str) -> tuple[int, str, str]:
        usual = ("--runtime", "onnxruntime", "--threads", "1")
        data = ["--data-dir", str(tmp_path / "data")]
        capsys.readouterr()
        status = main([*data, "analyze", str(measured / "net.onnx"), *usual, *arguments])
        return status, *capsys.readouterr()

    return run


def what_ifs(out: str) -> dict[str, Any]:
    (found,) = json.loads(out)
    return {it["id"]: it for it in found["what_ifs"]}


def test_the_measured_gain_stands_next_to_the_predicted_one(analyze: Analyze, tmp_path: Path) -> None:
    status, out, _ = analyze("--json")
    assert status == 0
    proof = what_ifs(out)["fusion-off"]["proof"]
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        (stored,) = store.records(Proof)
    assert proof["measured_ms"] == pytest.approx(stored.after.trimmed_mean_ms)
    assert proof["before_ms"] == pytest.approx(stored.before.trimmed_mean_ms)
    assert proof["gain"] == pytest.approx(stored.gain)
    assert proof["interval"] == pytest.approx([stored.gain_low, stored.gain_high])
    assert proof["interval"][0] < proof["gain"] < proof["interval"][1]
    table = analyze()[1]
    (row,) = (line for line in table.splitlines() if line.startswith("fuse no layers"))
    assert f"{100 * proof['gain']:+.1f} %  " in row
    assert row.endswith(interval_of(Gain(proof["gain"], *proof["interval"])))


def test_what_is_known_is_not_measured_again(analyze: Analyze) -> None:
    status, _, told = analyze("--measure", "--kinds", "fusion")
    assert status == 0
    assert "lack nothing that this host can measure" in told


def test_what_is_to_be_measured_is_told_with_its_time_before_it_starts(
    analyze: Analyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dlbricks_tui.cli.analyze_measuring.create_run", interrupted)
    status, out, told = analyze("--measure", "--kinds", "batch,kernels")
    assert (status, out) == (130, "")
    assert "net lacks 5 executions, about 2 min:" in told
    assert "kernels: ONNX Runtime, 1 thread, optimisation extended" in told
    assert "batch: ONNX Runtime, 1 thread, batch 4" in told


def test_peaks_that_the_roofline_lacks_are_measured_once(analyze: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(system: str, threads: int) -> Peaks:
        measured.append(threads)
        when = "2026-11-27T00:00:00+00:00"
        speeds = (("avx2", 1e6),), (("memory", 1e6),)
        return Peaks(when=when, system=system, threads=threads, arithmetic=speeds[0], bandwidth=speeds[1])

    monkeypatch.setattr(peaks, "measure_peaks", measure)
    monkeypatch.setattr(lacking, "lacks_of", lambda *_: ())
    assert json.loads(analyze("--json")[1])[0]["roofline_ms"] is None
    status, out, told = analyze("--measure", "--json")
    assert status == 0, told
    assert json.loads(out)[0]["roofline_ms"] > 0
    assert "net lacks peaks, about 4 s:\n" in told and "roofline: the peaks of this host with 1 thread" in told
    assert "lack nothing" in analyze("--measure")[2]
    assert measured == [1]


def test_an_unknown_what_if_is_refused_with_the_known_ones(analyze: Analyze) -> None:
    status, out, told = analyze("--prove", "parallel-7")
    assert (status, out) == (2, "")
    assert "no what-if 'parallel-7' of net; there are fusion-off" in told.replace("fusion, ", "")
    status, _, told = analyze("--prove", "all", "--kinds", "threads")
    assert status == 2
    assert "there is no what-if to prove: --measure measures what they lack" in told


@pytest.mark.parametrize("option", [("--prove", "all"), ("--measure",)])
def test_only_this_host_is_measured(analyze: Analyze, tmp_path: Path, option: tuple[str, ...]) -> None:
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(system())
    status, _, told = analyze("--system", "c5.xlarge", *option)
    assert status == 2
    assert "was analysed on another system, and models run on this host: leave out --system" in told


def test_a_what_if_that_fails_is_one_line_and_a_failure(analyze: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Prover, what_if: WhatIf, *turn: object) -> Proof:
        raise ProofError("the worker was lost")

    monkeypatch.setattr(Prover, "prove", fail)
    status, out, told = analyze("--prove", "fusion-off", "--json")
    assert status == 1
    assert "fuse no layers: not proved for net: the worker was lost" in told
    # The proof from before is still there.
    assert what_ifs(out)["fusion-off"]["proof"] is not None


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
    assert [[it.id for it in each.what_ifs] for each in asked_what_ifs(models, ["all"], kinds)] == [
        ["first"],
        ["second"],
    ]
    with pytest.raises(ProvingError, match="no what-if 'third' of one, two; there are first, second"):
        asked_what_ifs(models, ["first", "third"], kinds)


def test_the_keyboard_ends_proving_with_its_own_status(analyze: Analyze, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prover: Prover, *_: object) -> Proof:
        os.kill(os.getpid(), signal.SIGINT)
        prover.signals.check()
        raise AssertionError

    monkeypatch.setattr(Prover, "prove", interrupted)
    status, out, told = analyze("--prove", "all")
    assert (status, out) == (130, "")
    assert "it was interrupted from the keyboard; 0 proofs before it are kept" in told


def test_a_long_proof_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    moments = iter([0.0, 4.0, 11.0, 11.0, 12.0, 25.0, 25.0])
    narration = JobNarration(PROOFS, (RoundsDone,), None, lambda: next(moments))
    for rounds in (2, 4, 5, 12):
        narration.take(RoundsDone("parallel-2", rounds, Gain(0.25, 0.2, 0.3)))
    narration.close()
    assert capsys.readouterr().err.splitlines() == [
        # Fewer than five rounds have no interval.
        "run 2 branches at once: +25.0 % after 4 rounds",
        "run 2 branches at once: +25.0 % +- 5.0 points after 12 rounds",
    ]


def test_a_terminal_shows_one_line_that_changes() -> None:
    screen = io.StringIO()
    narration = JobNarration(PROOFS, (RoundsDone,), Console(file=screen, force_terminal=True, width=80))
    for rounds in (1, 2):
        narration.take(RoundsDone("parallel-2", rounds, Gain(0.25, 0.2, 0.3)))
    narration.close()
    assert "after 1 round" in screen.getvalue()
    assert "after 2 rounds" in screen.getvalue()
