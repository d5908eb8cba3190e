"""The schema of stored documents, and the steps that bring older ones up to it."""

from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]
Step = Callable[[Document], Document]

# Every document carries the schema that it was written in.
SCHEMA = 3


def _with_occurrence(document: Document) -> Document:
    """Schema 2: a measurement may say which layer of which model it is of."""
    if document["table"] != "measurements":
        return document
    *fields, samples = document.items()
    return dict([*fields, ("occurrence", {}), samples])


def _with_densities(document: Document) -> Document:
    """Schema 3: a calibration says how dense its networks were; of older ones nobody knows."""
    return document if document["table"] != "calibrations" else {**document, "densities": {}}


# Step n turns a document of schema n into one of schema n + 1, with its fields in the order in which records have them:
# the same record has the same bytes, whenever it was written.
STEPS: Mapping[int, Step] = {1: _with_occurrence, 2: _with_densities}


def upgraded(document: Document, steps: Mapping[int, Step] = STEPS, schema: int = SCHEMA) -> Document:
    """The document in the schema of this dlbricks; the caller has made sure that it is not newer."""
    while (written_in := document["schema"]) < schema:
        document = {**steps[written_in](document), "schema": written_in + 1}
    return document
