"""Makes estimates from the store; screens ask from threads."""

from collections.abc import Iterable

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.explanation import by_type, parallel_gain, residual
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import Conditions, Known, known_in
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.queries import counts, runtimes, select, systems
from dlbricks_tui.store.records import Measurement, System
from dlbricks_tui.store.store import Store
from dlbricks_tui.tui.choices import Available, Choices
from dlbricks_tui.tui.shared_store import SharedStore
from dlbricks_tui.tui.widgets.details.subject import Measurements
from dlbricks_tui.tui.widgets.estimate.view import EstimateView


class Judge:
    """Judges one model at a time, whichever threads ask."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._host: System | None = None

    def available(self) -> Available:
        """The systems and runtimes of the store, and this host."""
        with self._store.held() as store:
            generation = store.generation
            counted = counts(generation)
            return Available(
                self._this_host().id,
                tuple(systems(generation).values()),
                tuple(runtimes(generation).values()),
                counted["measurements"] + counted["end_to_end"],
            )

    def state(self) -> str:
        """What tells this host with these results from others: estimates of the same state are the same."""
        with self._store.held() as store:
            return repr((self._this_host().id, store.generation.covered))

    def judge(self, decomposition: Decomposition, choices: Choices) -> SystemEstimate:
        """What the store knows of the model, by the measurements that the choices name."""
        with self._store.held() as store:
            return self._answer(_inquiry(store, decomposition, choices), choices)

    def view(self, decomposition: Decomposition, choices: Choices) -> EstimateView:
        """The same with what explains it, and which other systems have something to say."""
        with self._store.held() as store:
            inquiry = _inquiry(store, decomposition, choices)
            judged = self._answer(inquiry, choices)
            others = {offer.way.system for offer in inquiry.offers} - {judged.way.system}
            known = systems(store.generation) if others else {}
        composed = judged.estimate.composed
        return EstimateView(
            judged,
            parallel_gain(composed) if composed else 1.0,
            by_type(decomposition.graph, judged.estimate),
            residual(judged),
            tuple(sorted(known[system].name if system in known else system for system in others)),
        )

    def measurements(self, pair: Pair, way: Way) -> Measurements | None:
        """What was measured of a brick in a context, in one way: the newest good samples and the values over time."""
        with self._store.held() as store:
            asked = where(brick=pair[0], context=pair[1], of="brick", good=True, system=way.system)
            asked += where(runtime=way.runtime, level=way.level.value, protocol=way.protocol)
            found = select(store.generation, asked)
            newest = found.result(len(found) - 1) if len(found) else None
            if not isinstance(newest, Measurement):
                return None
            return Measurements(newest, tuple(found.values("trimmed_mean_ms")))

    def known(self, conditions: Conditions, targets: Iterable[JobKey], since: str = "") -> Known:
        """What a run under these conditions would not have to measure."""
        with self._store.held() as store:
            store.refresh()
            return known_in(store.generation, conditions, targets, since)

    def refresh(self) -> bool:
        """Reads what other processes have stored since, and says whether that was anything."""
        with self._store.held() as store:
            return store.refresh()

    def _answer(self, inquiry: Inquiry, choices: Choices) -> SystemEstimate:
        system = choices.system or self._this_host().id
        return inquiry.on(system, choices.runtime) or inquiry.empty(system, choices.runtime or "")

    def _this_host(self) -> System:
        if self._host is None:
            self._host = fingerprint()
        return self._host


def _inquiry(store: Store, decomposition: Decomposition, choices: Choices) -> Inquiry:
    return Inquiry(store.generation, decomposition, Options(workers=choices.workers))
