"""Settings of dask for a fleet: one task per host, never repeated or moved, and workers that are quiet while idle."""

from collections.abc import Mapping
from typing import Any

# Each worker has one of it, and each task needs it.
RESOURCE = "host"
# Milliseconds between two heartbeats of a worker; dask's own answer would be half a second.
HEARTBEAT_MS = 10_000.0
# A host whose worker says nothing for so long is lost.
TIME_TO_LIVE = "90s"

SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    # The task of a worker that died is given up, and not tried on any other.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": TIME_TO_LIVE,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.monitor-interval": "60s",
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "10m",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.comm.timeouts.connect": "20s",
    "distributed.comm.retry.count": 2,
}
