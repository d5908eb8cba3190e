"""The kernels of an analysed model, as the runtime of this host tells them."""

import time
from collections.abc import Callable

from dlbricks_tui.analysis.kernels import KernelsError, TimedKernel, explain
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.bricks.programs import ProgramError
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import NAP_SECONDS, HostQueue, QueuedWork, WorkKind, host_queue
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.process import Worker


def kernels_of(
    found: Analysis,
    data: DataFolder,
    queue: HostQueue,
    tell_waiting: Callable[[str], None],
    check: Callable[[], None] = lambda: None,
    started: Callable[[Worker], None] = lambda _: None,
) -> tuple[TimedKernel, ...]:
    """Return the kernel of each layer, with the time of the layer, once it is their turn on this host.

    `check` may raise to end the waiting. `started` takes the process that loads the model, and may interrupt it.
    """

    def nap() -> None:
        check()
        time.sleep(NAP_SECONDS)

    if recorded_host() is not None:
        raise KernelsError(f"the kernels were not recorded; {NOTHING_IS_MEASURED}")
    baseline, name = found.baseline, found.source.name
    runtime = baseline.execution.runtime
    if found.system != fingerprint().id:
        raise KernelsError(f"{name} was measured on {found.system}, and only that host tells its kernels")
    if not runtime.python:
        raise KernelsError(f"{name} was measured by {baseline.found.way.runtime}, which is not installed here any more")
    ticket = queue.join(QueuedWork(WorkKind.KERNELS, [name], data.path))
    ticket.wait(tell_waiting, nap)
    try:
        kernels = explain(baseline.graph, runtime, data.log / "kernels.log", started=started)
    finally:
        ticket.leave()
    times_ms = [0.0] * len(baseline.graph.layers)
    for part in baseline.parts:
        # The layers of a longer sequence share its time.
        for layer in part.layers:
            times_ms[layer] += milliseconds(part.paid_ps) / len(part.layers)
    return tuple([TimedKernel(it, baseline.graph.layers[it.layer].name, times_ms[it.layer]) for it in kernels])


def kernels_or_none(
    found: Analysis, data: DataFolder, tell_waiting: Callable[[str], None], tell: Callable[[str], None]
) -> tuple[TimedKernel, ...]:
    """Return the kernels of a model's layers; none, with a remark, if the runtime does not tell them."""
    try:
        return kernels_of(found, data, host_queue(), tell_waiting)
    except (KernelsError, ProgramError, WorkerError) as error:
        tell(f"no kernels of {found.source.name}: {error}")
        return ()
