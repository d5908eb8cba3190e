"""Give a process, and all that it starts, another number of processors than this machine has: another system."""

import os

_CORES = frozenset(range(int(os.environ["DLBRICKS_TEST_CORES"])))
os.sched_getaffinity = lambda _pid: set(_CORES)
