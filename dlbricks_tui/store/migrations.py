"""The schema of stored documents, and the steps that bring older ones up to it."""

from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]
Step = Callable[[Document], Document]

# Every document carries the schema that it was written in.
SCHEMA = 1

# Step n turns a document of schema n into one of schema n + 1.
STEPS: Mapping[int, Step] = {}


def upgraded(document: Document, steps: Mapping[int, Step] = STEPS, schema: int = SCHEMA) -> Document:
    """The document in the schema of this dlbricks; the caller has made sure that it is not newer."""
    while (written_in := document["schema"]) < schema:
        document = {**steps[written_in](document), "schema": written_in + 1}
    return document
