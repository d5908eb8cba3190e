"""What this host can do for the analysis of a model: prove what-ifs, measure what they lack, and tell kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.analysis.proving import PeaksOrder, ProofOrder
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api import analysing
from dlbricks_tui.api.analysing import MeasuringPlan, ProvingError, plan_of
from dlbricks_tui.api.followed_jobs import PeaksJob, ProofJob
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlbricks_tui.analysis.kernels import TimedKernel
    from dlbricks_tui.analysis.what_if import WhatIf
    from dlbricks_tui.api.analysing import Analysis
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.process import Worker


def _require_this_host(found: Analysis) -> None:
    """Raise ProvingError if a model was analysed on another system."""
    if found.system != fingerprint().id:
        raise ProvingError(f"{found.source.name} was analysed on another system, and models run on this host.")


def proof_job(
    found: Analysis, source: ModelSource, what_ifs: tuple[WhatIf, ...], inputs: Mapping[str, Shape], data: DataFolder
) -> ProofJob:
    """Return the job that proves what-ifs; raise ProvingError if they are of another system."""
    _require_this_host(found)
    return ProofJob(ProofOrder(source, what_ifs, inputs), data)


def peaks_job(threads: int, data: DataFolder) -> PeaksJob:
    """Return the job that measures the peaks of this host."""
    return PeaksJob(PeaksOrder(threads), data)


def measuring_plan(found: Analysis, data: DataFolder, inputs: Mapping[str, Shape]) -> MeasuringPlan:
    """Return what the what-ifs of a model lack on this host; raise a UserError where nothing can be measured."""
    _require_this_host(found)
    return plan_of(found, tuple(WhatIfKind), data, inputs, {})


def kernels_here(
    found: Analysis,
    data: DataFolder,
    tell_waiting: Callable[[str], None],
    check: Callable[[], None],
    started: Callable[[Worker], None],
) -> Sequence[TimedKernel]:
    """Return the kernel of each layer in its turn on this host; raise a UserError where the runtime tells none."""
    return analysing.kernels_of(found, data, host_queue(), tell_waiting, check, started)
