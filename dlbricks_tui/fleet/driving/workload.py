"""The models of a fleet run, read and cut on this host, and the networks that travel for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.events import ModelLeftOut
from dlbricks_tui.fleet.messages import Parcel
from dlbricks_tui.fleet.parcels.packing import pack
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs import events as run_events
from dlbricks_tui.runs.provenance import model_digests
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.store.records import Facts


@dataclass(frozen=True, eq=False)
class FleetPart:
    """A runtime of a fleet run with its models, and the parcels that hold their bricks."""

    request: RunRequest
    models: tuple[CutModel, ...]
    # By the name of the model.
    parcels: Mapping[str, Parcel] = field(repr=False)

    @cached_property
    def jobs(self) -> Mapping[JobKey, Job]:
        """The bricks that any parcel holds, the most informative first."""
        found = plan(self.models, Known(), self.request.rule, False, (), self.request.method)
        return {job.key: job for job in found.jobs if self.holders(job)}

    def holders(self, job: Job) -> Sequence[Parcel]:
        """Return the parcels that hold a brick."""
        users = (self.parcels[use.model] for use in job.uses)
        return [parcel for parcel in users if job.key.brick in parcel.bricks]

    def keys_in(self, parcel: Parcel) -> Sequence[JobKey]:
        """Return the keys of the bricks that a parcel holds."""
        return self._keys.get(parcel.sha256, ())

    @cached_property
    def _keys(self) -> Mapping[str, Sequence[JobKey]]:
        found: dict[str, dict[JobKey, None]] = {}
        for key, job in self.jobs.items():
            for parcel in self.holders(job):
                found.setdefault(parcel.sha256, {})[key] = None
        return {sha256: tuple(keys) for sha256, keys in found.items()}


@dataclass(frozen=True)
class FleetWorkload:
    """All parts of a fleet run, and the SHA-256 of the model files by the keys of the models."""

    parts: tuple[FleetPart, ...]
    digests: Facts = ()


def read_workload(
    request: RunRequest, data: DataFolder, log: Path, tell: Callable[[Event], None], samples: Path = SAMPLE_MODELS
) -> FleetWorkload:
    """Cut the models, and pack the networks that travel. Models that cannot travel are left out, which is told.

    Raise the first of the reasons if no model is left.
    """
    refusals: list[UserError] = []
    parts: list[FleetPart] = []
    files: list[tuple[str, Path]] = []

    def tell_told(event: Event) -> None:
        if isinstance(event, run_events.ModelLeftOut):
            event = ModelLeftOut(model=event.model, reason=event.reason)
        tell(event)

    for part in request.parts:
        library = Library(samples, data.path, part.runtime.traits.format)
        try:
            packed = pack(part, library, data.cache, log, tell_told)
        except (ModelError, WorkerLostError, FleetError) as refusal:
            refusals.append(refusal)
            continue
        parcels = {it.model.name: it.parcel for it in packed}
        parts.append(FleetPart(part, tuple([it.model for it in packed]), parcels))
        paths = {choice.name: choice.path for choice in part.models}
        named = [(it.model.key, it.model.decomposition.graph.name) for it in packed]
        files += [(key, paths[name]) for key, name in named if name in paths]
    if not parts:
        raise refusals[0]
    return FleetWorkload(tuple(parts), model_digests(files))
