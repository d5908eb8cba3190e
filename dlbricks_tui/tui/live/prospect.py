"""What a run would have to do, before it is started."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.host.contention import competing_threads
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_lock import Holder, host_lock
from dlbricks_tui.measure.jobs import subject_of
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.runs.calibration import calibration_seconds, levels_due
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.store.records import utc_now
from dlbricks_tui.tui.opened import Wish
from dlbricks_tui.tui.session import Session


@dataclass(frozen=True, slots=True)
class Prospect:
    """How much there is to run, as far as the models have been read before."""

    unread: tuple[str, ...] = ()
    bricks: int = 0
    whole_models: int = 0
    reused: int = 0
    failed_before: int = 0
    seconds: float = 0.0
    # The part of them that calibrates the runtime afterwards.
    calibration_seconds: float = 0.0
    # The run that this one would have to wait for.
    holder: str = ""


def foresee(session: Session, wishes: Sequence[Wish], request: RunRequest) -> Prospect:
    """What the run would do if it began now; models that only the framework could read are named and left out."""
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    subjects, unread = [], []
    for wish in wishes:
        decomposition = session.opener.glance(wish)
        if decomposition is None:
            unread.append(wish.source.name)
        else:
            subjects.append(subject_of(decomposition))
    since = utc_now() if request.again else ""
    known = session.judge.known(conditions, keys_of(subjects, request.end_to_end, request.method), since)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(subjects, known, request.rule, request.end_to_end, method=request.method)
    measuring = expected_seconds(request.method, request.rule, found.jobs, competing_threads())
    with session.store.held() as store:
        uncalibrated = levels_due(request, subjects, found.jobs, conditions, store.generation, measuring)
    calibrating = calibration_seconds(uncalibrated)
    budget = math.inf if request.time_budget_seconds is None else request.time_budget_seconds
    holder = host_lock().holder()
    return Prospect(
        tuple(unread),
        sum(not job.whole for job in found.jobs),
        sum(job.whole for job in found.jobs),
        len(found.reused),
        len(found.failed),
        min(calibrating + measuring, budget),
        min(calibrating, budget),
        str(holder) if holder is not None and _is_there(holder) else "",
    )


def _is_there(holder: Holder) -> bool:
    """Whether that process still runs: one that was killed leaves its note behind."""
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
