"""Measure a scenario in a separate process, and follow its messages."""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import IO

from dlbricks_tui.answers.scenarios import ScenarioAnswer
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.scenarios.messages import (
    LoadDone,
    LoadFailed,
    LoadMessage,
    LoadTestDone,
    ScenarioOrder,
    decode,
)
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest

# The process ends its workers before it ends itself.
_SECONDS_TO_END = 10.0


class LoadProcessError(ScenarioError):
    """The process that measures a scenario cannot be started, or ended before the scenario was measured."""


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """A load test as it was stored, all tests of LoadGen that led to it, and warnings about it."""

    test: LoadTest
    tests: tuple[LoadTestDone, ...]
    warnings: tuple[str, ...]


def order_of(answer: ScenarioAnswer, *, is_system_named: bool) -> ScenarioOrder:
    """Return the order to measure a scenario; raise ScenarioError where this host cannot measure it."""
    # Loaded here: predictions need no LoadGen.
    from dlbricks_tui.scenarios.loadgen import require_loadgen

    if answer.order is not None:
        require_loadgen()
        return answer.order
    if is_system_named:
        raise ScenarioError("scenarios are measured on this host: name no system, or predict only")
    raise ScenarioError(f"no runtime of this host runs {answer.source.name}; `dlbricks runtimes` lists them")


def measure(order: ScenarioOrder, data: DataFolder, take: Callable[[LoadMessage], None]) -> MeasuredTest:
    """Measure a scenario, and pass on the messages of the process; raise LoadProcessError if it fails."""
    from dlbricks_tui.scenarios.process import scenario_command

    done: LoadDone | None = None
    tests: list[LoadTestDone] = []
    with closing(follow(scenario_command(data), order, data)) as messages:
        for message in messages:
            take(message)
            if isinstance(message, LoadFailed):
                raise LoadProcessError(message.reason)
            if isinstance(message, LoadTestDone):
                tests.append(message)
            elif isinstance(message, LoadDone):
                done = message
    if done is None:
        raise LoadProcessError("the process that measures ended without a result")
    with ResultsDatabase(data.store) as store:
        test = store.load_test(done.uuid)
    if test is None:
        raise LoadProcessError("the process that measures stored no result")
    return MeasuredTest(test, tuple(tests), done.warnings)


def follow(command: Sequence[str], order: ScenarioOrder, data: DataFolder) -> Generator[LoadMessage, None, None]:
    """Start the process that measures a scenario, and yield its messages.

    If the iterator is closed, or an exception such as KeyboardInterrupt is raised in it, the process ends with all of
    its workers.
    """
    log = data.log / "scenario-process.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as narration:
            # A session of its own: ctrl+c in the terminal reaches only this process, which ends the other one.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=narration, start_new_session=True
            )
    except OSError as error:
        raise LoadProcessError(f"the process that measures cannot be started: {error.strerror}") from error
    try:
        if process.stdin is not None:
            # It may have ended already; its log says why.
            with suppress(BrokenPipeError), closing(process.stdin) as opened:
                opened.write(order.encoded())
        if process.stdout is not None:
            yield from _messages(process.stdout)
        status = process.wait()
    finally:
        _end(process)
    if status:
        lines = [it for it in log.read_text(errors="replace").split("\n") if it.strip()]
        why = lines[-1] if lines else f"it ended with status {status}"
        raise LoadProcessError(f"the scenario was not measured: {why}")


def _messages(output: IO[bytes]) -> Iterator[LoadMessage]:
    with output:
        for line in output:
            try:
                message = decode(line)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise LoadProcessError("the process that measures wrote a line that is no message") from error
            yield message


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and wait for it; kill it with its workers if it does not end, or if there is no time to wait."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_SECONDS_TO_END)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
