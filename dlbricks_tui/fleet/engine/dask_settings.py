"""Settings of dask for a fleet: one task per host, never repeated or moved, and workers that are quiet while idle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Between two heartbeats of a worker; dask's own answer would be half a second.
HEARTBEAT_SECONDS = 10.0
# A host whose worker says nothing for so long is lost.
TIME_TO_LIVE = "90s"

SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    # The task of a worker that died is given up, and not tried on any other.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": TIME_TO_LIVE,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.events-cleanup-delay": "1m",
    # Pages about the scheduler and the workers, which ask for no certificate.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Statistical profilers: threads that look at the others a hundred times a second.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.monitor-interval": "60s",
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "10m",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.diagnostics.nvml": False,
    # The scheduler keeps this many messages of hosts in memory.
    "distributed.admin.log-length": 100,
    # A parcel may be larger than what dask warns of.
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.comm.retry.count": 2,
}

_LOG_BYTES = 1 << 20


def set_up(log: Path | None = None) -> None:
    """Load dask with the settings above, and write its warnings to a file instead of the standard error."""
    import logging
    import warnings
    from logging.handlers import RotatingFileHandler

    import dask.config

    # Before `distributed` is loaded: it reads some of them once, and sets up its log.
    dask.config.set(SETTINGS)
    import distributed

    handler: logging.Handler = logging.NullHandler()
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(log, maxBytes=_LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    packages = (distributed.__name__, "tornado", "asyncio", "bokeh")
    # Dask gives some of their parts handlers of their own.
    parts = [name for name in logging.root.manager.loggerDict if "." in name and name.partition(".")[0] in packages]
    for name in (*packages, *parts):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET if "." in name else logging.WARNING)
        logger.propagate = "." in name
        logger.handlers = [] if "." in name else [handler]
    # Such as that of other versions of packages, which matter to none of our texts.
    warnings.filterwarnings("ignore", module=r"distributed(\.|$)")
