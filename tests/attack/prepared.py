"""The data folder that the attack damages: each kind of file once, the commands that read it, and their faults."""

import io
import json
import os
import re
import shutil
import signal
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dlbricks_tui.analysis.proving import PROOF, ProofOrder, RoundsDone
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.api.demonstration import open_demonstration
from dlbricks_tui.cli.main import main
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.folder import JobFolders, store_request
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.share.results_file import SuiteResults, rendered
from dlbricks_tui.share.suite_files import SuiteKey, key_path, write_key
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement
from tests.store.samples import system

# A model with results in the demonstration, and one whose bricks are predicted from these.
MODEL = "squeezenet1.1"
_ESTIMATE, _PREDICT = f"estimate {MODEL} --json", "estimate squeezenet1.0 --json"
_SUITE = "5" * 32


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of file of the data folder, and the commands that read it.

    `files` is a pattern, of which the first match is damaged. A cache is never needed: damage to it changes no output.
    A file that is `written` by the commands may be mended by them; any other stays as it is until the user acts.
    """

    files: str
    commands: tuple[str, ...]
    is_cache: bool = False
    is_written: bool = False
    # Some damage leaves a valid file, as an empty config file is one, or a line that looks like one being written.
    forgives: bool = False
    # This is removed first, so that the file is read.
    without: str = ""


RUN, FLEET = "20261127-222556-ef36", "20261127-224509-1454"
OTHER_RUN, OTHER_FLEET = "20261127-222652-84bd", "20261127-224510-0000"
TARGETS = (
    Target("cache/framework-version", (_ESTIMATE, "runtimes list"), is_cache=True),
    Target("cache/models/*", (_ESTIMATE,), is_cache=True),
    Target("cache/predictions/*.npz", (_PREDICT,), is_cache=True),
    # A demonstration has no framework that could fuse the model again.
    Target("cache/fused/*", (_ESTIMATE,), is_written=True, without="cache/models"),
    Target("store/index.bin", ("results list --json",), is_cache=True),
    Target("store/results-1.json", ("results list", "results verify", _ESTIMATE)),
    Target("store/journal-1.jsonl", ("results list", "results verify", "systems"), forgives=True),
    Target("store/lock", ("results delete brick=none --yes", "results list"), is_written=True),
    Target(f"runs/{RUN}/state.json", ("runs list", "runs list --json", "runs watch last", f"runs resume {RUN}")),
    Target(f"runs/{RUN}/request.json", (f"runs resume {RUN}", f"evaluate --from {RUN} -o OUT.toml --force")),
    Target(f"runs/{RUN}/events.jsonl", (f"runs watch {RUN}", f"runs replay {RUN} --speed 1e9"), forgives=True),
    Target(f"fleets/{FLEET}/state.json", ("fleet list", "fleet list --json", "fleet status last")),
    Target(f"fleets/{FLEET}/request.json", (f"fleet resume {FLEET}", f"fleet add {FLEET} --hosts HOSTS.toml")),
    Target(f"fleets/{FLEET}/events.jsonl", (f"fleet status {FLEET}",), forgives=True),
    Target("jobs/*/state.json", ("jobs", "jobs --json", "jobs watch last", "jobs resume last --detach")),
    Target("jobs/*/request.json", ("jobs watch last",)),
    Target("jobs/*/events.jsonl", ("jobs replay last --speed 1e9", "jobs watch last"), forgives=True),
    Target("traces/*.json.gz", ("trace --list", "trace --from last -o OUT.trace --force"), forgives=True),
    Target("config.toml", ("config list", "config validate", "models list"), forgives=True),
    Target("runtimes.json", ("runtimes list", _ESTIMATE)),
    Target("model-folders.json", ("models list", "models remove FOLDER"), forgives=True),
    Target("input-shapes.json", (_ESTIMATE,), is_cache=True),
    Target("prices.toml", ("systems", f"systems compare {MODEL}")),
    Target("allowed_signers", ("results import SIGNED.json",)),
    Target("minisign/ann.pub", ("results import SIGNED.json",)),
    Target("suites/*.key.json", ("suite import SUITE.json",)),
)


@contextmanager
def prepared_folder(work: Path) -> Iterator[DataFolder]:
    """Provide a small data folder with all targets, on the host of the demonstration, and make `work` the folder."""
    with open_demonstration() as demonstration:
        data, here = demonstration.data, Path.cwd()
        work.mkdir(exist_ok=True)
        os.chdir(work)
        try:
            _shrink(data)
            _complete(data, work)
            yield data
        finally:
            os.chdir(here)


def _shrink(data: DataFolder) -> None:
    """Leave the results of one run, so that each command is quick, and a compacted file with a journal after it."""
    for path in data.runs.iterdir():
        if path.name not in (RUN, OTHER_RUN):
            shutil.rmtree(path)
    for path in list(data.scenarios.iterdir()):
        shutil.rmtree(path)
    with ResultsDatabase(data.store) as store:
        store.delete(store.select(f"run!={OTHER_RUN}").values("id"))
        used = {it.brick for it in store.records(Measurement)}
        store.table("bricks").remove(lambda described: described["key"] not in used)
        store.compact()
        store.add(system("elsewhere"))
    (data.store / "journal-0.jsonl").unlink()
    shutil.copytree(data.fleets / FLEET, data.fleets / OTHER_FLEET)
    state = data.fleets / OTHER_FLEET / "state.json"
    state.write_text(state.read_text().replace(FLEET, OTHER_FLEET))


def _complete(data: DataFolder, work: Path) -> None:
    """Write the kinds of files that a demonstration lacks, and those that the commands name."""
    (work / "FOLDER").mkdir()
    sample = next(SAMPLE_MODELS.glob("onnx/*.onnx"))
    shutil.copy(sample, work / "FOLDER")
    for words in (_ESTIMATE, _PREDICT, "results verify", "models add FOLDER", "models list"):
        outcome = run_command(data, words)
        assert outcome.status == 0, f"{words}: {outcome}"
    (data.path / "config.toml").write_text('[workbench]\ntheme = "light"\n')
    runtime = {"name": "other", "python": "/usr/bin/python3", "framework": "mxnet", "version": "1.9.1"}
    settings = {"threads": 2, "environment": [], "memory_limit_bytes": None, "precision": "f32"}
    listed = [{**runtime, "python_version": "3.11.2", "settings": settings}]
    (data.path / "runtimes.json").write_text(json.dumps({"schema": 1, "runtimes": listed}))
    (data.path / "input-shapes.json").write_text(json.dumps({"0" * 64: {"data": [1, 3, 224, 224]}}))
    (data.path / "prices.toml").write_text('[dollars_per_hour]\n"c5.xlarge" = 0.17\n')
    data.allowed_signers.write_text("ann@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAA\n")
    data.minisign_keys.mkdir()
    public = b64encode(b"Ed" + bytes(40)).decode()
    (data.minisign_keys / "ann.pub").write_text(f"untrusted comment: ann\n{public}\n")
    (work / "SIGNED.json").write_text("{}\n")
    (work / "SIGNED.json.minisig").write_text(f"untrusted comment: ann\n{public}\n")
    order = ProofOrder(ModelSource(MODEL, Path("net.onnx")), ())
    job = JobFolders(data.jobs).create((MODEL,), WorkKind.PROOF)
    store_request(job.request_file, order)
    # Its process tells rounds, and comes to its end.
    work_on(PROOF, job, data, lambda at_work: at_work.tell(RoundsDone("threads-1", 7, Gain(0.4, 0.3, 0.5), 12.0)))
    (work / "HOSTS.toml").write_text('[[host]]\nname = "another"\n')
    key = SuiteKey(_SUITE, "0" * 64, Level.FUSED, (MODEL,), {}, frozenset())
    write_key(key_path(data, _SUITE), key)
    (work / "SUITE.json").write_text(rendered(SuiteResults(_SUITE, "0" * 64, system(), ())))


# Far longer than any of the commands takes, so that only a command that hangs is stopped.
PATIENCE_SECONDS = 120
# Messages quote paths and reasons, and never a whole file.
_LONGEST_LINE = 1500
_CONTROL_CODES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_KNOWN = frozenset(map(int, Status))


class Hung(BaseException):
    """A command that waits for ever."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command: its status and output, and its fault if it has one."""

    status: int
    out: str
    told: str
    fault: str = ""


def run_command(data: DataFolder, words: str) -> Outcome:
    """Run a command on a data folder. A traceback, a hang and an unreadable message are faults."""
    out, told = io.StringIO(), io.StringIO()
    status, fault = -1, ""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(PATIENCE_SECONDS)
    try:
        with redirect_stdout(out), redirect_stderr(told):
            status = main(["--data-dir", str(data.path), *words.split()])
    except Hung:
        fault = "it hangs"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - each is a fault, and is counted
        fault = f"it raises {error!r}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return Outcome(status, out.getvalue(), told.getvalue(), fault or _fault(status, out.getvalue(), told.getvalue()))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def _fault(status: int, out: str, told: str) -> str:
    if status not in _KNOWN:
        return f"its status is {status}"
    if "fault of dlbricks" in told or "Traceback" in out + told:
        return f"it says: {told.strip()[-_LONGEST_LINE:]}"
    if status == Status.BAD_INPUT and not told.strip():
        return "it refuses without a word"
    if _CONTROL_CODES.search(out + told):
        return "it prints control codes"
    if any(len(line) > _LONGEST_LINE for line in told.splitlines()):
        return "a line of its messages is too long to read"
    return ""
