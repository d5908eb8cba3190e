"""MXNet's profiler: the time of each operator of a symbol in each run.

It reports the kind of an operator and not its node. So operators must run in the order of the graph: in the calling
thread, by MXNet's `NaiveEngine`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dlbricks_tui.runtime.inside.backend import OperatorsOfRuns, OperatorTime, ProfiledNetwork, RefusalError
from dlbricks_tui.runtime.inside.symbol_file import ALIAS
from dlbricks_tui.runtime.protocol import Reason, TracedOperator

_EVENT = re.compile(r'"name": "([^"]*)",\s*"cat": "operator",\s*"ph": "([BE])",\s*"ts": (\d+)')
_NANOSECONDS_PER_MICROSECOND = 1000
# MXNet appends to its file only if periodic dumps are on. With this period none happens.
_NEVER_SECONDS = 1e7


class _Recorder:
    """The profiler of the process, which writes all events to one file."""

    def __init__(self, mxnet: Any) -> None:
        self._profiler = mxnet.profiler
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "profile.json"
        self._read = 0
        mxnet.profiler.set_config(
            profile_symbolic=True,
            profile_imperative=False,
            profile_memory=False,
            profile_api=False,
            aggregate_stats=False,
            continuous_dump=True,
            dump_period=_NEVER_SECONDS,
            filename=str(self._file),
        )

    def start(self) -> None:
        self._profiler.set_state("run")

    def stop(self) -> str:
        """Stop, and return the events since the last stop."""
        self._profiler.set_state("stop")
        self._profiler.dump(finished=False)
        with self._file.open() as file:
            file.seek(self._read)
            text = file.read()
            self._read = file.tell()
        return text


@lru_cache(maxsize=1)
def _recorder_of(mxnet: Any) -> _Recorder:
    return _Recorder(mxnet)


class ProfiledSymbol(ProfiledNetwork):
    """An executor that runs its operators one by one."""

    def __init__(self, mxnet: Any, executor: Any, operators: Iterable[tuple[str, str]]) -> None:
        """`operators` are the aliases and kinds, in the order of execution."""
        self._mxnet = mxnet
        self._executor = executor
        self._operators = [(_number(alias), op) for alias, op in operators]
        self._recorder = _recorder_of(mxnet)

    def run(self, warm: int, repeat: int, before: Callable[[], None]) -> list[list[OperatorTime]]:
        """Run the symbol, and return the operator times of the last `repeat` runs."""
        for _ in range(warm):
            before()
            self._run()
        runs = []
        for _ in range(repeat):
            before()
            self._recorder.start()
            self._run()
            runs.append(matched(self._operators, events_in(self._recorder.stop())))
        return runs

    def trace(self, warm: int, repeat: int, watch: Callable[[Callable[[], None]], int]) -> OperatorsOfRuns:
        """Run the symbol; MXNet reads the clock of the host, too."""
        for _ in range(warm):
            self._run()
        kinds = dict(self._operators)
        runs = []
        for _ in range(repeat):
            self._recorder.start()
            begin = watch(self._run)
            times = matched(self._operators, events_in(self._recorder.stop()))
            # It counts whole microseconds, so an operator may seem to start before the run.
            runs.append(
                [TracedOperator(it.node, kinds[it.node], max(0, it.start_ns - begin), it.duration_ns) for it in times]
            )
        return OperatorsOfRuns(runs, has_starts=True)

    def _run(self) -> None:
        self._executor.forward(is_train=False)
        self._mxnet.nd.waitall()


def events_in(text: str) -> list[tuple[str, int, int]]:
    """Return the operators in the order of their starts: kind, start and duration in nanoseconds."""
    return sorted(_intervals(text), key=lambda event: event[1])


def _intervals(text: str) -> Iterator[tuple[str, int, int]]:
    began = 0
    for name, phase, at in _EVENT.findall(text):
        now = int(at) * _NANOSECONDS_PER_MICROSECOND
        if phase == "B":
            began = now
        else:
            yield name, began, now - began


def matched(operators: Sequence[tuple[int, str]], events: Iterable[tuple[str, int, int]]) -> list[OperatorTime]:
    """Assign the events to nodes. An operator that only passes on memory is skipped by MXNet and has no event."""
    found: list[OperatorTime] = []
    waiting = iter(operators)
    for name, start, duration in events:
        node = next((number for number, op in waiting if op == name), None)
        if node is None:
            raise RefusalError(Reason.UNBUILDABLE, f"the profiler shows a {name} that the graph does not have there")
        found.append(OperatorTime(node, start, duration))
    return found


def _number(alias: str) -> int:
    match = ALIAS.match(alias)
    if match is None:
        raise RefusalError(Reason.UNBUILDABLE, f"MXNet has added an operator {alias}")
    return int(match[1])
