"""`dlbricks trace`, by code that pretends to trace: in this process, or in one that can be killed."""

import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dlbricks_tui.api.followed_jobs import TraceJob
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.traces.trace import TraceOrder
from tests.cli.people import Command as Answer
from tests.cli.people import document, one_line, schema_kept
from tests.jobs.carrying import stands_for_processes
from tests.jobs.pretending import pretend_to_trace
from tests.models.onnx_models import saved, small

FAKE = Path(__file__).parents[1] / "jobs" / "pretending.py"
CHROME = ("--format", "chrome")


@dataclass(frozen=True)
class InThisProcess:
    """Pretends to trace in this process, with the order and the messages that another process would read and write."""

    order: TraceOrder
    data: DataFolder

    def run(self, take: Callable[[Event], None]) -> None:
        pretend_to_trace(self.order, self.data, "done", take)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.trace"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, dlbricks: Answer) -> Answer:
    """Run `dlbricks trace`; with a manner, a process of its own traces, and ends in this manner."""

    def run(*arguments: str | Path, manner: str | None = None) -> tuple[int, str, str]:
        with monkeypatch.context() as patched:
            if manner is None:
                patched.setattr(TraceJob, "new_process", lambda job: InThisProcess(job.order, job.data))
            else:
                stands_for_processes(patched, FAKE, "trace", manner=manner)
            return dlbricks("trace", *arguments)

    return run


@pytest.fixture
def trace(tmp_path: Path, run: Answer, file: Path) -> Answer:
    """Trace a tiny model by ONNX Runtime into the file."""
    model = saved(tmp_path, small())

    def trace(*arguments: str, manner: str | None = None) -> tuple[int, str, str]:
        return run(model, "-o", file, "--runtime", "onnxruntime", "--threads", "1", *arguments, manner=manner)

    return trace


def test_a_trace_has_the_keys_of_the_contract(trace: Answer, file: Path) -> None:
    status, out, told = trace("--json", "--quiet")
    found = json.loads(out)
    assert (status, told) == (0, "")
    assert set(found) == set(schema_kept(found, "trace")["$defs"]["TraceResult"]["required"])
    levels = [(it["level"], it["overhead_ms"], it["inference_ms"], it["inferences"]) for it in found["levels"]]
    assert levels == [("model", None, 1.0, 10), ("layer", 0.2, 1.2, 10), ("primitive", 0.1, 1.3, 10)]
    assert found["missing"] == [{"level": "thread", "reason": "/proc is not readable here"}]
    assert (found["file"], found["format"]) == (str(file), "perfetto")
    assert found["levels"][1]["tracks"][1] == {"name": "layers", "kind": "layers", "spans": 30}
    slowest = found["layers"][0]
    named = ("name", "in_model_ms", "brick_ms", "difference_ms")
    assert [slowest[name] for name in named] == ["conv0", 0.6, 0.6, 0.0]
    assert trace("--levels", "model,thread", "--force")[0] == 1, "a level that was asked for is missing"


def test_tables_are_printed_and_the_progress_is_narrated(trace: Answer, file: Path) -> None:
    status, out, err = trace(manner="done")
    assert status == 0 and f"{file} opens in https://ui.perfetto.dev" in out.splitlines()[-1]
    assert "layer       1.200 ms  +0.2000 ms (+20.0 %)     41" in out.splitlines()
    told = err.splitlines()[1:]
    assert told[:2] == ["waiting for another run", "round 1 of 2"]
    assert told[-1] == "thread level: not traced: /proc is not readable here"


def test_the_options_reach_the_process(trace: Answer) -> None:
    _, out, _ = trace(
        *("--levels", "layer,model", "--inferences", "3", "--batch", "2", "--optimisation", "basic", "--json")
    )
    found = json.loads(out)
    assert [it["level"] for it in found["levels"]] == ["model", "layer"]
    assert [it["inferences"] for it in found["levels"]] == [3, 3]
    assert (found["batch"], found["threads"], found["level"]) == (2, 1, "fused")
    assert "basic" in found["runtime"]


def test_the_ending_of_the_file_decides_about_the_format(trace: Answer, run: Answer, tmp_path: Path) -> None:
    trace()
    for name, form in (("a.json", "chrome"), ("a.JSON", "chrome"), ("a.pftrace", "perfetto"), ("a", "perfetto")):
        found = document(run("--from", "last", "-o", tmp_path / name, "--json"))
        content = (tmp_path / name).read_bytes()
        assert (found["format"], content.startswith(b"{")) == (form, form == "chrome")


def test_a_stored_trace_is_written_in_the_other_format(trace: Answer, run: Answer, file: Path, tmp_path: Path) -> None:
    trace()
    other = tmp_path / "other.json"
    status, out, err = run("--from", "2026", "-o", other, *CHROME)
    assert (status, err) == (0, "") and "chrome://tracing" in out
    assert json.loads(other.read_bytes())["traceEvents"]
    again = tmp_path / "again.trace"
    assert run("--from", "last", "-o", again)[0] == 0
    assert again.read_bytes() == file.read_bytes()


def test_stored_traces_are_listed(trace: Answer, run: Answer, tmp_path: Path) -> None:
    status, out, err = run("--list")
    assert (status, out) == (0, "") and "makes the first" in err
    trace()
    out = run("--list")[1]
    assert "20261127-071" in out and "ONNX Runtime" in out
    (found,) = document(run("--list", "--json"))
    assert Path(found["stored"]).parent == tmp_path / "data" / "traces"
    (tmp_path / "data" / "traces" / "broken.json.gz").touch()
    status, out, err = run("--list", "--json")
    assert (status, len(json.loads(out)), err.count("\n")) == (1, 1, 1)


def test_a_file_that_is_there_is_kept_unless_forced(trace: Answer, file: Path) -> None:
    file.write_text("mine")
    assert "--force" in one_line(trace()) and file.read_text() == "mine"
    assert trace("--force")[0] == 0 and file.read_bytes() != b"mine"


def test_bad_input_gets_one_line(run: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused: dict[str, str] = {
        "": "nothing to trace",
        "squeezenet1.1": "-o FILE",
        "squeezenet1.1 --list": "do not go together",
        "squeezenet1.1 --from last -o x": "do not go together",
        "--from last --list": "--list",
        "--from last": "-o FILE",
        "--from last -o x.trace --batch 2": "--batch is for tracing a MODEL",
        "--list -o x.trace": "--output is not for --list",
        "squeezenet1.1 --detach --force": "--force is for the file",
        "squeezenet1.1 -o x.trace --detach": "leave -o and --from out; afterwards `dlbricks trace --from last -o FILE`",
        "--from last --detach": "--detach traces a MODEL",
        "--from nothing -o x.trace": "no trace is called",
        "table1 -o x.trace": "50 models",
        "squeezenet1.1 -o nowhere/x.trace": "there is no folder",
        "squeezenet1.1 -o .": "is a folder",
        "squeezenet1.1 -o /proc/x.trace": "cannot write",
        "squeezenet1.1 -o x.trace --levels atom": "atom",
        "squeezenet1.1 -o x.trace --levels=": "--levels",
        "squeezenet1.1 -o x.trace --runtime caffe": "caffe",
        "squeezenet1.1 -o x.json --format perfetto": "leave --format out",
        "squeezenet1.1 -o x.pftrace --format chrome": "leave --format out",
    }
    for words, complaint in refused.items():
        assert complaint in one_line(run(*words.split())), words
    assert not list(tmp_path.glob("x.*"))


def test_a_trace_that_fails_is_status_1_with_one_line(trace: Answer, file: Path) -> None:
    for manner, reason in (("fails", "the worker was lost: killed by signal 9"), ("nothing", "ended without a trace")):
        status, out, err = trace("--quiet", manner=manner)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert reason in err
        assert not file.exists()


def test_a_full_disk_is_found_before_the_model_is_traced(
    trace: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, **_: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("dlbricks_tui.api.traces.TemporaryFile", Full)
    status, out, err = trace()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "No space left on device" in err
    assert not (tmp_path / "data" / "traces").exists()


def test_a_trace_whose_file_cannot_be_written_is_stored_all_the_same(
    trace: Answer, run: Answer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dlbricks_tui.api.traces.write_named", full)
        status, out, err = trace("--quiet")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "dlbricks trace --from 20261127-071500-ab12 -o FILE" in err
    assert run("--from", "last", "-o", file)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_a_signal_ends_the_trace_and_its_process(trace: Answer, tmp_path: Path, file: Path, number: int) -> None:
    pid, ended = tmp_path / "data" / "fake.pid", tmp_path / "data" / "ended"

    over = threading.Event()

    def interrupt() -> None:
        while not pid.exists() or not pid.read_text():
            if over.wait(0.01):
                return
        # Python handles a signal late that arrives just before a wait: a second one wakes it up.
        for seconds in (0, 10, 10, 10):
            if over.wait(seconds) or ended.exists():
                return
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    status, out, err = trace(manner="waits")
    over.set()
    thread.join()
    assert (status, out) == (130, ""), err
    assert err.endswith("dlbricks: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert not file.exists()
