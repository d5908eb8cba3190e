"""Proofs in a separate process: it reads what-ifs from its standard input, and writes a line for each step."""

import json
import pickle
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from dlbricks_tui.analysis.proving import Listener, ProofProgress, Prover
from dlbricks_tui.analysis.what_if import Gain, WhatIf
from dlbricks_tui.answers.analysis.analysing import MeasuredGain, measured_gain
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.control import RunStopped, StopSignals
from dlbricks_tui.runs.launch import command_of, take_order
from dlbricks_tui.runs.work import Workplace

# A viewer that draws after each round would disturb the next one.
_SECONDS_BETWEEN_LINES = 1.0


@dataclass(frozen=True, slots=True)
class ProofOrder:
    """The what-ifs of a model to prove, and the shapes of its inputs."""

    source: ModelSource
    what_ifs: tuple[WhatIf, ...]
    inputs: Mapping[str, Shape] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the order as the process reads it."""
        return pickle.dumps(self)


@dataclass(frozen=True, slots=True)
class ProofWaits:
    """Other work comes first on this host, and the proof waits for its end."""

    holder: str


@dataclass(frozen=True, slots=True)
class RoundsDone:
    """The rounds so far of a what-if, and the gain that they show."""

    what_if: str
    rounds: int
    gain: Gain
    # None until there is a second round.
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class ProofDone:
    """The end of a proof: its gain, or the reason why there is none."""

    what_if: str
    gain: MeasuredGain | None
    failure: str


ProofMessage: TypeAlias = ProofWaits | RoundsDone | ProofDone


def encode(message: ProofMessage) -> bytes:
    """Return a message as a line."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes) -> ProofMessage:
    """Return the message of a line that a proof process wrote."""
    content = json.loads(line)
    kind = content.pop("kind")
    if kind == ProofWaits.__name__:
        return ProofWaits(**content)
    gain = content.pop("gain")
    if kind == RoundsDone.__name__:
        return RoundsDone(gain=Gain(**gain), **content)
    if gain is not None:
        gain = MeasuredGain(**{**gain, "interval": tuple(gain["interval"])})
    return ProofDone(gain=gain, **content)


def proof_command(data: DataFolder) -> list[str]:
    """Return the command of the process, which reads a `ProofOrder`."""
    return command_of(__name__, str(data.path))


class ProofLines(Listener):
    """Writes the steps of a proof, at most one a second between two proofs."""

    def __init__(self, write: Callable[[ProofMessage], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._what_if = ""
        # The time from which on the next line is written.
        self._next = 0.0

    def waiting(self, holder: str) -> None:
        self._write(ProofWaits(holder))

    def progress(self, so_far: ProofProgress) -> None:
        now = self._clock()
        if so_far.what_if != self._what_if or so_far.rounds == 1:
            self._what_if, self._next = so_far.what_if, now
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_LINES
            self._write(RoundsDone(so_far.what_if, so_far.rounds, so_far.gain, so_far.seconds_left))


def execute(order: ProofOrder, place: Workplace, write: Callable[[ProofMessage], None]) -> None:
    """Prove what-ifs until they are done or a signal ends it; the proofs until then are stored."""
    with StopSignals(ignore_hangup=False) as signals:
        prover = Prover(
            source=order.source, place=place, signals=signals, listener=ProofLines(write), inputs=order.inputs
        )
        try:
            for outcome in prover.prove_all(order.what_ifs, host_queue()):
                gain = None if outcome.proof is None else measured_gain(outcome.proof)
                write(ProofDone(outcome.what_if.id, gain, outcome.failure))
        except RunStopped:
            return


def main(data: str) -> None:
    """Prove the what-ifs of the order; the entry point of the process."""
    order, write = take_order()
    try:
        execute(order, Workplace(DataFolder(Path(data))), lambda message: write(encode(message)))
    except UserError as error:
        sys.exit(str(error))
