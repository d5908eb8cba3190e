"""How often a program runs untimed before each time that it is timed."""

import math

from dlbricks_tui.bricks.coldness import Caches

# What others ran in between has left the caches in a state that a model needs some runs to get over, and so long if it
# is quick; one that takes longer than the last of these fills them by itself.
_FEWEST_RUNS_OF_A_MODEL, _MODEL_SETTLES_MS, _MODEL_FILLS_CACHES_MS = 3, 40.0, 150.0
_MOST_RUNS_OF_A_MODEL = 20
_RUNS = 1
# What works on little more than the caches hold has to run some times until all of that is in them, as it is in the
# middle of a model: so have the copies that it reads.
_RUNS_OF_A_SHORT_BRICK, _SHORT_BRICK_MS = 3, 3.0
# Of what runs twice in one run, and once in what is taken off, the difference is small, and has to be of two states
# that are alike.
_RUNS_OF_A_PRIMED_BRICK = 12
# What takes longer than this need not run twice.
_LONG_MODEL_MS, _LONG_BRICK_MS = 1000.0, 50.0


def untimed_runs(latency_ms: float, *, whole: bool, caches: Caches = Caches.WARM) -> int:
    """Of a brick, or of a whole model, that takes about so long; before what is cold the caches are swept instead."""
    if whole:
        return _untimed_runs_of_a_model(latency_ms)
    if caches is Caches.COLD or latency_ms >= _LONG_BRICK_MS:
        return 0
    if latency_ms >= _SHORT_BRICK_MS:
        return _RUNS
    return _RUNS_OF_A_PRIMED_BRICK if caches is Caches.PRIMED else _RUNS_OF_A_SHORT_BRICK


def _untimed_runs_of_a_model(latency_ms: float) -> int:
    if latency_ms >= _LONG_MODEL_MS:
        return 0
    if latency_ms >= _MODEL_FILLS_CACHES_MS:
        return _RUNS
    if latency_ms * _MOST_RUNS_OF_A_MODEL <= _MODEL_SETTLES_MS:
        return _MOST_RUNS_OF_A_MODEL
    return max(_FEWEST_RUNS_OF_A_MODEL, math.ceil(_MODEL_SETTLES_MS / latency_ms))
