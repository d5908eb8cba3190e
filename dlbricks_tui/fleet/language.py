"""Language models in a fleet: their bricks need no parcel, as each host writes them from the sizes of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.fleet.parcels import FleetPart
from dlbricks_tui.language.composing import PROTOCOL, StepTime, memory_need, step_time, steps_time
from dlbricks_tui.language.decoder import Decoder, Extent, Step, distinct_blocks
from dlbricks_tui.language.orders import LanguageOrder, LanguageQuestion
from dlbricks_tui.language.predicting import BrickPredictor, HostRates, measured_steps
from dlbricks_tui.measure.jobs import Job, JobKey, Use, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import Plan
from dlbricks_tui.runtime.variant import stated_threads

if TYPE_CHECKING:
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.records import System

# Which prompt can be measured in seconds is decided at home, for a host with so many threads.
_THREADS = 4


class LanguageOnHost(NamedTuple):
    """A language model on a host: its steps, how many bricks were measured there and are predicted, and its memory."""

    prefill: StepTime
    decode: StepTime
    measured: int
    predicted: int
    fits: bool


@dataclass(frozen=True, eq=False)
class LanguagePart(FleetPart):
    """A language model of a fleet run in a runtime."""

    asked: LanguageQuestion

    @classmethod
    def of(cls, asked: LanguageQuestion, request: RunRequest) -> LanguagePart:
        """Return the part for a question; the other settings are those of a request."""
        # Inside of networks, as carriers are: a brick is done as soon as it has a result.
        own = replace(request, models=(), others=(), runtime=asked.runtime, method=Method.INSIDE)
        return cls(own, (), {}, asked)

    @property
    def name(self) -> str:
        """The model as estimates name it: they are about one generated token."""
        return f"{self.asked.model.name}, {self.asked.precision.value}, per token"

    @property
    def protocol(self) -> str:
        return PROTOCOL

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        return measured_steps(self.asked, BrickPredictor(HostRates.guessed(self.asked.threads or _THREADS)))

    @cached_property
    def jobs(self) -> Mapping[JobKey, Job]:
        """The bricks of its steps."""
        found: dict[JobKey, Job] = {}
        for decoder in map(self.asked.decoder, self._steps):
            for layer, count in zip(decoder.graph.layers, decoder.counts, strict=True):
                brick = brick_of(decoder.graph, (layer.index,))
                job = Job(
                    key=JobKey(brick=brick.key),
                    label=layer.name,
                    canonical=brick.canonical,
                    graph=decoder.graph,
                    layers=(layer.index,),
                    uses=(Use(self.name, count),),
                    expected_ms=expected_ms(brick.canonical),
                    memory_bytes=memory_bytes([layer]),
                    number=len(found),
                )
                found.setdefault(job.key, job)
        return found

    @cached_property
    def _probed(self) -> frozenset[str]:
        blocks = distinct_blocks(self.asked.sizes, fewest=True)
        steps = (self._steps[0], self._steps[-1])
        return frozenset(key for it in steps for key in self.asked.decoder(it, blocks, extent=Extent.BLOCKS).keys)

    def chosen(self, free: Mapping[JobKey, Job], *, is_probe: bool) -> tuple[Job, ...]:
        """Return the bricks of the next task: all that are free, or of a probe those of a block."""
        return tuple([job for key, job in free.items() if not is_probe or key.brick in self._probed])

    def order(self, *, is_probe: bool) -> LanguageOrder:
        """Return what a host has to do for a task."""
        steps = (self._steps[0], self._steps[-1]) if is_probe else self._steps
        return LanguageOrder((self.asked,), probe=is_probe, steps=steps)

    def plan(self, known: Known) -> Plan:
        jobs = self.jobs.items()
        return Plan(
            jobs=tuple([job for key, job in jobs if key not in known.measured and key not in known.failed]),
            reused=frozenset(key for key, _ in jobs if key in known.measured),
            failed={job: known.failed[key] for key, job in jobs if key in known.failed and key not in known.measured},
        )

    def on_host(self, store: ResultsDatabase, system: System, runtime: str) -> LanguageOnHost:
        """Return the answer of a host by its results in a store, and by those of others."""
        host = BrickPredictor.of_system(store, system, runtime, stated_threads(runtime) or 0)
        found = [self._decoder(it, host) for it in self.asked.steps]
        prefill, *decoding = [step_time(it, host.time_of) for it in found]
        decode = steps_time((0.5, decoding[0]), (0.5, decoding[-1]))
        keys = {key for it in found for key in it.keys}
        measured = len(keys & host.known.keys())
        fits = memory_need(self.asked, found[0]).total <= system.memory_bytes
        return LanguageOnHost(prefill, decode, measured, len(keys) - measured, fits)

    def _decoder(self, step: Step, host: BrickPredictor) -> Decoder:
        # As answers of one host do: the second block differs by its first norm, which counts where it was measured.
        blocks: Sequence[int] | None = distinct_blocks(self.asked.sizes, fewest=True)
        return self.asked.decoder(step, None if host.known else blocks)
