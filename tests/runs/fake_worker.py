"""A worker without a framework: it speaks the real protocol, invents latencies, and misbehaves on demand.

FAKE_MANNERS is a JSON object that says, by the name of an operator, how programs with that operator behave.
FAKE_NAP is how many seconds each request for samples takes, while the file FAKE_SLOW exists if that is set. FAKE_FACTOR
makes latencies longer than usual, FAKE_FACTOR_TO_PROFILE those with the settings for profiling, and FAKE_NOISE is the
share by which they vary.
FAKE_DIARY is a file that gets a line for each program that is sampled: its operators, untimed runs, timed runs,
and whether these operators may run side by side ("abreast").
"""

import ctypes
import json
import math
import os
import random
import signal
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.runtime.lines import decode, encode
from dlbricks_tui.runtime.protocol import (
    NULL_PROGRAM,
    Describe,
    Described,
    Fuse,
    Load,
    Loaded,
    Profile,
    Profiled,
    Program,
    Reason,
    Refused,
    Reply,
    Request,
    Said,
    Sample,
    Sampled,
    TracedOperator,
    TracedRun,
    TracedRuns,
    TraceRuns,
    Unload,
    Unloaded,
)

SET_PARENT_DEATH_SIGNAL = 1
REFERENCE = "reference"
REFUSALS = {
    "not finite": Reason.NOT_FINITE,
    "unbuildable": Reason.UNBUILDABLE,
    "not understood": Reason.MALFORMED,
    "no room": Reason.NO_ROOM,
}
# With the version of oneDNN, so that no run starts another worker to ask for it.
PACKAGES = {"python": "3.11.0", "mxnet": "1.9.1", "onednn": "2.4.0"}
NULL_CALL_NS = 12_500
PROFILER_NS = 3_000
# What printing a line takes.
LINE_NS = 1_000


class FakeWorker:
    """Answers as a worker would."""

    def __init__(self, manners: dict[str, str], nap_seconds: float) -> None:
        self._manners = manners
        self._nap_seconds = nap_seconds
        self._programs: dict[str, Program] = {}
        # The same in every worker, so that no test fails by chance.
        self._chance = random.Random(1)

    def answer(self, request: Request[Any]) -> bytes:
        if isinstance(request, Load):
            return self._load(request)
        if isinstance(request, Sample) and request.programs == (NULL_PROGRAM,):
            return encode(Sampled(((NULL_CALL_NS,) * request.repeat,)))
        if isinstance(request, Sample):
            for name in request.programs:
                if self._behave(self._programs[name], "sample") == "garbage":
                    return b"\xff{nonsense\n"
                write_diary(self._programs[name], request)
            self._nap()
            return encode(Sampled(tuple(self._durations(name, request.repeat) for name in request.programs)))
        if isinstance(request, Profile):
            if self._behave(self._programs[request.program], "profile") == "garbage":
                return b"\xff{nonsense\n"
            self._nap()
            return encode(self._profiled(request))
        if isinstance(request, TraceRuns):
            if self._behave(self._programs[request.program], "trace") == "garbage":
                return b"\xff{nonsense\n"
            self._nap()
            return encode(self._traced(request))
        return encode(self._plain(request))

    def _nap(self) -> None:
        slow = os.environ.get("FAKE_SLOW")
        if slow is None or Path(slow).exists():
            time.sleep(self._nap_seconds)

    def _plain(self, request: Request[Any]) -> Reply:
        if isinstance(request, Describe):
            return Described("3.11.0", "mxnet", "1.9.1", PACKAGES)
        if isinstance(request, Unload):
            for name in request.programs:
                self._programs.pop(name, None)
            return Unloaded()
        if isinstance(request, Fuse):
            return Refused(Reason.UNFUSABLE, "a fake fuses nothing")
        return Refused(Reason.MALFORMED, f"{type(request).__name__} is not for this worker")

    def _profiled(self, request: Profile) -> Profiled:
        """Return a profile: it adds a little to each operator, and misses the time between them."""
        nodes = json.loads(self._programs[request.program].network.symbol)["nodes"]
        operators = {number: node["op"] for number, node in enumerate(nodes) if node["op"] != "null"}
        row = tuple(operator_ns(op) + PROFILER_NS for op in operators.values())
        return Profiled(tuple(operators), (row,) * request.repeat, (row,) * request.repeat)

    def _traced(self, request: TraceRuns) -> TracedRuns:
        """Return runs one after another; one in ten operators prints no line."""
        program = self._programs[request.program]
        nodes = json.loads(program.network.symbol)["nodes"]
        numbers = [number for number, node in enumerate(nodes) if node["op"] != "null"]
        prints = request.lines and "DNNL_VERBOSE" in os.environ
        runs, start, host = [], time.monotonic_ns(), time.time_ns()
        for _ in range(request.repeat):
            operators, lines, at = [], [], 50_000
            for number in numbers:
                op = nodes[number]["op"]
                taken = operator_ns(op) + (PROFILER_NS if request.operators else 0) + (LINE_NS if prints else 0)
                operators.append(TracedOperator(number, op, at, taken))
                if prints and number % 10:
                    stamp = f"{(host + at) / 1e6:.6f}"
                    what = "forward_inference,src_f32::blocked:abcd:f0 dst_f32::blocked:acdb:f0,,,1x2"
                    lines.append(Said(f"dnnl_verbose,{stamp},exec,cpu,{op.lower()},jit:any,{what},{taken / 1e6}", None))
                at += taken
            runs.append(
                TracedRun(
                    start, host, at, tuple(operators) if request.operators else (), tuple(lines) if prints else ()
                )
            )
            start, host = start + at + 100_000, host + at + 100_000
        return TracedRuns(tuple(runs), True)

    def _load(self, request: Load) -> bytes:
        others = self._programs.keys() - {REFERENCE, request.program_id}
        manner = self._behave(request.program, "load", crowded=bool(others))
        if manner == "garbage":
            return b"what?\n"
        for refused, reason in REFUSALS.items():
            if manner == refused:
                return encode(Refused(reason, f"the operator is {refused}"))
        if manner == "too large beside others" and others:
            return encode(Refused(Reason.TOO_LARGE, "it does not fit"))
        self._programs[request.program_id] = request.program
        return encode(Loaded(0.001))

    def _behave(self, program: Program, moment: str, crowded: bool = False) -> str:
        for operator in operators_of(program):
            manner = self._manners.get(operator, "")
            if manner == f"crash on {moment}" or (manner == "crash beside others" and crowded):
                sys.stdout.write("the last words\n")
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGSEGV)
            if manner == f"hang on {moment}":
                time.sleep(600)
            if manner == f"garbage on {moment}":
                return "garbage"
            if moment == "load" and manner in (*REFUSALS, "too large beside others"):
                return manner
        return ""

    def _durations(self, name: str, count: int) -> tuple[int, ...]:
        usual_ns, noise = latency_ns(self._programs[name]), float(os.environ.get("FAKE_NOISE", "0.005"))
        return tuple(round(usual_ns * math.exp(self._chance.gauss(0, noise))) for _ in range(count))


def write_diary(program: Program, request: Sample) -> None:
    """Note a request for samples of a program."""
    if diary := os.environ.get("FAKE_DIARY"):
        with Path(diary).open("a") as file:
            abreast = "abreast" if program.side_by_side else "in-turn"
            file.write(f"{'+'.join(operators_of(program))} {request.warm} {request.repeat} {abreast}\n")


def operators_of(program: Program) -> list[str]:
    """Return the operators that are timed, without those that wake up the framework."""
    nodes = json.loads(program.network.symbol)["nodes"]
    return [node["op"] for node in nodes if node["op"] != "null" and not node["name"].startswith("wake")]


def operator_ns(operator: str) -> int:
    """Return the latency of an operator."""
    return zlib.crc32(operator.encode()) % 950_000


def latency_ns(program: Program) -> int:
    """Return the latency of a program, 0.05 ms and up, by its operators."""
    usual = 50_000 + sum(map(operator_ns, operators_of(program)))
    profiles = os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine"
    slower = int(os.environ.get("FAKE_FACTOR_TO_PROFILE", "1")) if profiles else 1
    return usual * int(os.environ.get("FAKE_FACTOR", "1")) * slower


def main(kind: type[FakeWorker] = FakeWorker, options: Sequence[str] | None = None) -> None:
    options = sys.argv[1:] if options is None else options
    given = dict(zip(options[::2], options[1::2], strict=False))
    if "--die-with" in given:
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    worker = kind(json.loads(os.environ.get("FAKE_MANNERS", "{}")), float(os.environ.get("FAKE_NAP", "0")))
    with os.fdopen(int(given["--requests"]), "rb") as requests, os.fdopen(int(given["--replies"]), "wb") as replies:
        for line in requests:
            replies.write(worker.answer(decode(Request, line)))
            replies.flush()


if __name__ == "__main__":
    main()
