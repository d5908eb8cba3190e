"""The service times of a model from a store: of its batch sizes, in one way of measuring."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tinydb import where

from dlbricks_tui.answers.answer import Answer
from dlbricks_tui.answers.estimating import Estimator
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.measure.carriers import PLACEMENT_SHARE
from dlbricks_tui.scenarios.service import (
    BrickSamples,
    ServiceSource,
    ServiceTime,
    composed_service,
    filled,
    streamed_service,
    timed_service,
)
from dlbricks_tui.store.records import LoadTest

# Predicted bricks with a larger share of an estimate count less than an interpolation between measured batch sizes.
_MOST_PREDICTED = 0.05


class StoredService:
    """The results of a model that tell how long an instance takes for a batch."""

    def __init__(self, estimator: Estimator, model: Answer, own_size: int, stream: LoadTest | None) -> None:
        self._estimator = estimator
        # At batch size 1.
        self._model = model
        # The batch size of the file.
        self._own_size = own_size
        self._stream = stream

    def of_sizes(self, sizes: Sequence[int], timed: Sequence[int]) -> tuple[ServiceTime, ...]:
        """Return the service times of the batch sizes for which there are results, or results of those around.

        `timed` has the sizes at which the model was timed end to end.
        """
        known: dict[int, ServiceTime] = {}
        doubtful: dict[int, ServiceTime] = {}
        for size in sizes:
            self._add(size, known, doubtful)
        if max(sizes) not in known:
            for size in [it for it in sorted(timed) if it > max(sizes)][:1]:
                self._add(size, known, doubtful)
        certain = {it.batch_size: it for it in filled(known, sizes)}
        return filled({**doubtful, **certain}, sizes)

    def _add(self, size: int, known: dict[int, ServiceTime], doubtful: dict[int, ServiceTime]) -> None:
        """Add the service time of a batch size to the known ones, or to the doubtful ones if much is predicted."""
        decomposition, found = self._model.decomposition, self._model.found
        if size != 1:
            estimator, way = self._estimator, found.way
            options = replace(estimator.options, batch=None if size == self._own_size else size)
            asked = replace(estimator, options=options).inquiry(self._model.source, self._model.reading)
            decomposition = asked.decomposition
            found = asked.on(way.system, way.runtime) or asked.empty(way.system, way.runtime)
        inquiry = Inquiry(self._estimator.store, decomposition, self._estimator.compositions)
        service = self._service_of(size, inquiry, found)
        if service is not None:
            is_estimate = service.source is ServiceSource.ESTIMATE
            is_doubtful = is_estimate and found.estimate.predicted_share > _MOST_PREDICTED
            (doubtful if is_doubtful else known)[size] = service

    def _service_of(self, size: int, inquiry: Inquiry, found: SystemEstimate) -> ServiceTime | None:
        """Return the service time from the newest end-to-end samples, else from a complete estimate; else None."""
        timed, stream = inquiry.timed(found.way), self._stream if size == 1 else None
        if stream is not None and (timed is None or timed.when < stream.when):
            return streamed_service(stream, PLACEMENT_SHARE)
        if timed is not None and found.end_to_end is not None:
            return timed_service(size, inquiry.end_to_end_samples_ms(found.way), found.end_to_end, PLACEMENT_SHARE)
        composed = found.estimate.composed
        if composed is None or found.estimate.is_partial:
            return None
        latency = Latency(composed.sequential_ms, composed.interval.low_ms, composed.interval.high_ms)
        return composed_service(size, latency, self._brick_samples(found))

    def _brick_samples(self, found: SystemEstimate) -> Iterator[BrickSamples]:
        """Yield the samples of each measured brick of an estimate."""
        times: dict[str, int] = {}
        for part in found.estimate.parts:
            for result in part.measured.results[:1] if part.measured is not None else ():
                times[result] = times.get(result, 0) + part.times
        selection = self._estimator.store.select(where("id").one_of(list(times)), order=())
        for place, summary in enumerate(selection):
            record = selection.result(place)
            # The reference is timed in each round: its latency tells the rounds apart.
            yield BrickSamples(f"{summary.run} {summary.reference_ms}", times[summary.id], record.samples_ms)
