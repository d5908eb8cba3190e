"""The tasks of models in words."""

from __future__ import annotations

_TASKS = {
    "IC": "image classification",
    "IP": "image processing",
    "OD": "object detection",
    "RG": "regression",
    "SS": "semantic segmentation",
    "TD": "tabular data",
    "TE": "text embedding",
    "TG": "text generation",
    "TR": "text recognition",
    "VA": "voice activity",
}


def task_words(task: str | None) -> str:
    """Return a task in words; empty for models without one."""
    return _TASKS.get(task, task) if task else ""
