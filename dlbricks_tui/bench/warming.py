"""How often a program runs untimed before each time that it is timed."""

# What others ran in between has left the caches in a state that a model needs some runs to get over; one that takes
# longer than this fills them by itself.
_RUNS_OF_A_MODEL, _MODEL_FILLS_CACHES_MS = 3, 150.0
# Code that ran long ago is slow at first, which counts where there is little else to do.
_RUNS, _RUNS_OF_A_SMALL_BRICK, _SMALL_BRICK_MS = 1, 3, 0.2
# What takes longer than this need not run twice.
_LONG_MODEL_MS, _LONG_BRICK_MS = 1000.0, 50.0


def untimed_runs(latency_ms: float, *, whole: bool) -> int:
    """Of a brick, or of a whole model, that takes about so long."""
    if latency_ms >= (_LONG_MODEL_MS if whole else _LONG_BRICK_MS):
        return 0
    if whole:
        return _RUNS_OF_A_MODEL if latency_ms < _MODEL_FILLS_CACHES_MS else _RUNS
    return _RUNS_OF_A_SMALL_BRICK if latency_ms < _SMALL_BRICK_MS else _RUNS
