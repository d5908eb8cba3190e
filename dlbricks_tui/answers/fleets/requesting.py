"""Options of a fleet run, and the request that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine.scheduler import SECURE, check_address
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.folder import FleetFolder
from dlbricks_tui.fleet.request import FleetRequest, HostEntry
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import several
from dlbricks_tui.settings.fleets import PROBE, Question

_EXTRA = "pip install 'dlbricks-tui[fleet]'"
_NEEDED = ("distributed", "asyncssh", "cryptography")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Options of a fleet run: its hosts, by a hosts file or a dask scheduler, the question, and what to measure."""

    hosts: Path | None = None
    scheduler: str = ""
    question: Question = Question.EVERYTHING
    probe_seconds: float = 20.0
    # True: use a scheduler without TLS that other machines can reach.
    allow_plain: bool = False
    measuring: MeasureOptions = field(default_factory=MeasureOptions)


def fleet_request(options: FleetOptions, sources: Sequence[ModelSource], data: DataFolder) -> FleetRequest:
    """Return the request of a fleet run.

    Raise FleetError for options that do not fit together, a scheduler that cannot be used, or hosts that SSH refuses.
    """
    require_extra()
    if (options.hosts is None) is not bool(options.scheduler):
        raise FleetError("name either a hosts file (--hosts FILE) or a dask scheduler (--scheduler ADDRESS)")
    PROBE.require(options.probe_seconds, FleetError)
    if options.scheduler:
        _require_usable(options, data)
    # Only layers travel: no host can time a whole model.
    measuring = replace(options.measuring, end_to_end=False)
    run = run_request(measuring, sources, data)
    hosts = () if options.hosts is None else _hosts(options.hosts)
    return FleetRequest(
        # Unless they are given, each host starts its usual number of threads.
        run=run if several(measuring.threads) else run.with_runtimes(Registry(data.path).as_registered),
        hosts=hosts,
        scheduler=options.scheduler,
        question=options.question,
        probe_seconds=options.probe_seconds,
        allow_plain=options.allow_plain,
    )


def require_extra() -> None:
    """Raise FleetError if the packages of fleets are not installed."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        raise FleetError(f"fleets need {', '.join(lacking)}: {_EXTRA}")


def require_resumable(folder: FleetFolder) -> None:
    """Raise FleetError if a fleet run has nothing left to do, or if SSH refuses one of its hosts."""
    require_extra()
    if folder.is_complete:
        raise FleetError(f"fleet run {folder.run} is complete: there is nothing to resume")
    # Loaded here, as below.
    from dlbricks_tui.fleet.engine.ssh import check_hosts

    check_hosts(folder.entries())


def _hosts(path: Path) -> tuple[HostEntry, ...]:
    # Loaded here: other users of this module need neither a reader of TOML files nor SSH.
    from dlbricks_tui.fleet.engine.ssh import check_hosts
    from dlbricks_tui.fleet.hosts_file import read_hosts

    hosts = read_hosts(path)
    check_hosts(hosts)
    return hosts


def _require_usable(options: FleetOptions, data: DataFolder) -> None:
    """Raise FleetError before there is a fleet run if its scheduler cannot be used."""
    place = check_address(options.scheduler, options.allow_plain)
    if place.scheme == SECURE and not Certificates(data.certificates).authority.exists():
        raise FleetError(
            f"{options.scheduler[:80]} asks for certificates, and {data.certificates} has none: copy those that the "
            "scheduler was started with, or make some by `dlbricks fleet init` and start it with them"
        )
