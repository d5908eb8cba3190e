"""Proofs in a separate process, which reads what-ifs and writes a line for each step, and the choice of what-ifs."""

import json
import pickle
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from dlbricks_tui.analysis.proving import Listener, ProofProgress, Prover
from dlbricks_tui.analysis.what_if import Gain, WhatIf, WhatIfKind
from dlbricks_tui.answers.analysis.analysing import Analysis, MeasuredGain, measured_gain
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.control import RunStopped, StopSignals, command_of, take_order
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.wording.numbers import names_of

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


ALL = "all"


class ProvingError(UserError):
    """There is no what-if of that id, or its model was analysed on another system."""


def refuse_other_system(found: Sequence[Analysis]) -> None:
    """Raise ProvingError if a model was analysed on another system than this host."""
    here = fingerprint().id
    for each in found:
        if each.system != here:
            raise ProvingError(
                f"{each.source.name} was analysed on another system, and models run on this host: leave out --system"
            )


class AskedProofs(NamedTuple):
    """The what-ifs of a model that are to be proved, and the ids that it does not have."""

    found: Analysis
    what_ifs: tuple[WhatIf, ...]
    unknown: tuple[str, ...]


def asked_what_ifs(
    found: Sequence[Analysis], ids: Collection[str], kinds: Collection[WhatIfKind]
) -> tuple[AskedProofs, ...]:
    """Return the what-ifs with these ids, or with `all` those that can be run; refuse an id that no model has."""
    asked = tuple([_asked(each, tuple(dict.fromkeys(ids)), kinds) for each in found])
    missing = set.intersection(*(set(each.unknown) for each in asked)) if asked else set()
    for each in (it for it in ids if it in missing):
        provable = (it for one in found for it in one.what_ifs if it.kind in kinds and it.change is not None)
        known = dict.fromkeys(it.id for it in provable)
        there = f"there are {', '.join(known)}" if known else "there are none: --measure measures what they lack"
        models = names_of(list(dict.fromkeys(it.source.name for it in found)))
        raise ProvingError(f"no what-if {each[:60]!r} of {models}; {there}")
    if not any(each.what_ifs for each in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    return asked


def _asked(found: Analysis, ids: Sequence[str], kinds: Collection[WhatIfKind]) -> AskedProofs:
    known = {it.id: it for it in found.what_ifs if it.kind in kinds}
    if ALL in ids:
        return AskedProofs(found, tuple(it for it in known.values() if it.change is not None), ())
    return AskedProofs(
        found, tuple(known[each] for each in ids if each in known), tuple(it for it in ids if it not in known)
    )
