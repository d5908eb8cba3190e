"""Memory: blocks that the C library keeps, and garbage collections at a time when nobody notices them."""

import gc
import time
from contextlib import suppress

# From malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024


def return_large_blocks() -> None:
    """Let glibc return large blocks of memory to the system when they are freed.

    Otherwise it raises the size from which it does so to that of the largest block freed so far. It would keep the
    columns of each closed store, once for each thread. Other C libraries lack the setting.
    """
    # Loaded here: the first picture needs none of it.
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


# More collections of the younger objects than there ever are.
_NEVER = 1 << 30
# After as many of those Python itself would collect all objects.
_WORTH_IT = 10
_IDLE_SECONDS = 2.0


class IdleCollections:
    """Collections of all objects between keys. Each takes a tenth of a second, in which no key is answered."""

    def __init__(self) -> None:
        self._last_key = 0.0
        gc.set_threshold(*gc.get_threshold()[:2], _NEVER)

    def key_pressed(self) -> None:
        """Put the next collection off."""
        self._last_key = time.monotonic()

    def collect_if_idle(self) -> None:
        """Collect all objects if that is due, and no key was pressed lately."""
        if gc.get_count()[2] >= _WORTH_IT and time.monotonic() - self._last_key >= _IDLE_SECONDS:
            gc.collect()
