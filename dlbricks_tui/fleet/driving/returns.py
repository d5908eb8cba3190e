"""What hosts return for their tasks: checked, stored, and then told as events."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from dlbricks_tui.fleet.deciding.estimates import FleetEstimates
from dlbricks_tui.fleet.driving.host_work import HostWork
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.driving.storing import FleetResults
from dlbricks_tui.fleet.driving.validation import ImpossibleError, MessageMeter, check_progress, check_result, shown
from dlbricks_tui.fleet.encoding import message_from, outcome_from
from dlbricks_tui.fleet.errors import MessageError
from dlbricks_tui.fleet.events import HostBrickFailed, ResultStored
from dlbricks_tui.fleet.messages import HostMessage, ResultFound, TaskEnded, TaskNote, TaskProgress
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.store.records import Statistics


class Returns:
    """Takes what hosts send while they carry out tasks, and what their tasks return.

    All methods raise ImpossibleError for something that no honest host sends; then nothing of that is stored.
    """

    def __init__(self, results: FleetResults, estimates: FleetEstimates, tell: Callable[[Event], None]) -> None:
        self._results = results
        self._estimates = estimates
        self._tell = tell

    def take(self, host: HostWork, texts: Iterable[str]) -> bool:
        """Take messages of a host, and return True if any brick has a new result or failure."""
        meter, messages = _meter_of(host), []
        for text in texts:
            meter.count(text)
            try:
                messages.append(message_from(text))
            except MessageError as error:
                raise ImpossibleError(f"a message that {shown(str(error)[:200])}") from None
        return self._taken(host, messages)

    def take_outcome(self, host: HostWork, text: str) -> bool:
        """Take everything that a task has found once more, as messages may be lost; as `take`."""
        meter = _meter_of(host)
        meter.count(text)
        try:
            messages = outcome_from(text)
        except MessageError as error:
            raise ImpossibleError(f"an outcome that {shown(str(error)[:200])}") from None
        meter.count_more(len(messages))
        return self._taken(host, messages)

    def tell_failed(self, pool: BrickPool, host: HostWork, failed: Mapping[JobKey, Job]) -> None:
        """Tell which bricks of a pool cannot be measured."""
        for key, job in failed.items():
            reason = pool.failed[key]
            self._tell(HostBrickFailed(host=host.name, brick=key.brick, label=job.label, reason=reason))
        if failed:
            self._estimates.note(pool, failed)

    def _taken(self, host: HostWork, messages: Sequence[HostMessage]) -> bool:
        current = host.current
        if current is None:
            return False
        # Those about earlier tasks of the host say nothing new.
        messages = [message for message in messages if message.task == current.task.id]
        records = [check_result(it.record, current.allowed) for it in messages if isinstance(it, ResultFound)]
        for message in messages:
            match message:
                case TaskProgress():
                    current.progress = check_progress(message)
                case TaskNote():
                    current.note = shown(message.text)
                case TaskEnded():
                    current.ended = TaskEnded(task=message.task, state=message.state, reason=shown(message.reason))
                case ResultFound():
                    pass
        if not records:
            return False
        pool = current.pool
        stored = self._results.keep(host.name, records, pool.part.jobs)
        current.has_results |= bool(stored.measured or stored.failed)
        new = pool.learn(stored.measured)
        for key, job in new.items():
            self._tell(_stored(host, job, stored.measured[key]))
        failed = pool.give_up(stored.failed)
        self.tell_failed(pool, host, failed)
        self._estimates.note(pool, stored.measured)
        return bool(new or failed)


def _meter_of(host: HostWork) -> MessageMeter:
    return host.stray if host.current is None else host.current.meter


def _stored(host: HostWork, job: Job, statistics: Statistics) -> ResultStored:
    return ResultStored(
        host=host.name,
        brick=job.key.brick,
        label=job.label,
        trimmed_mean_ms=statistics.trimmed_mean_ms,
        low_ms=statistics.low_ms,
        high_ms=statistics.high_ms,
    )
