"""The memory that the C library keeps for the process."""

import ctypes
from contextlib import suppress

# From malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024


def return_large_blocks() -> None:
    """Let glibc return large blocks of memory to the system when they are freed.

    Otherwise it raises the size from which it does so to that of the largest block freed so far. It would keep the
    columns of each closed store, once for each thread. Other C libraries lack the setting.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
