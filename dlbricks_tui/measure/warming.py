"""Warm-up: the number of untimed runs before each timed run of a program."""

import math

# The programs before a model leave the caches in a foreign state. A model needs some runs to refill them, for about
# 40 ms if it is quick; one that takes longer than 150 ms refills them within a run.
_FEWEST_RUNS_OF_A_MODEL, _MODEL_SETTLES_MS, _MODEL_FILLS_CACHES_MS = 3, 40.0, 150.0
_MOST_RUNS_OF_A_MODEL = 20
_RUNS = 1
# A short brick runs several times until its data and its inputs' copies are in the caches, as in the middle of a model.
_RUNS_OF_A_SHORT_BRICK, _SHORT_BRICK_MS = 3, 3.0
# Longer programs need no untimed run.
_LONG_MODEL_MS, _LONG_BRICK_MS = 1000.0, 50.0


def untimed_runs(latency_ms: float, *, whole: bool, cold: bool = False) -> int:
    """Return the number for a brick or whole model of this latency; cold bricks get a cache sweep instead."""
    if whole:
        return _untimed_runs_of_a_model(latency_ms)
    if cold or latency_ms >= _LONG_BRICK_MS:
        return 0
    return _RUNS if latency_ms >= _SHORT_BRICK_MS else _RUNS_OF_A_SHORT_BRICK


def _untimed_runs_of_a_model(latency_ms: float) -> int:
    if latency_ms >= _LONG_MODEL_MS:
        return 0
    if latency_ms >= _MODEL_FILLS_CACHES_MS:
        return _RUNS
    if latency_ms * _MOST_RUNS_OF_A_MODEL <= _MODEL_SETTLES_MS:
        return _MOST_RUNS_OF_A_MODEL
    return max(_FEWEST_RUNS_OF_A_MODEL, math.ceil(_MODEL_SETTLES_MS / latency_ms))
