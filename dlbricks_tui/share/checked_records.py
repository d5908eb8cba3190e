"""Records in documents from others: of the expected kind, and with texts of a bounded length."""

from collections.abc import Iterator
from typing import Any, TypeVar

from dlbricks_tui.store.documents import to_document, to_record
from dlbricks_tui.store.records import Record

LONGEST_TEXT = 1000

Kind = TypeVar("Kind", bound=Record)


def checked_record(kind: type[Kind], document: Any) -> Kind:
    """Return the record in a document; raise ValueError or BrokenDocumentError, whose message completes "it ..."."""
    if not isinstance(document, dict):
        raise ValueError(f"has a {kind.__name__} that is not an object")
    record = to_record(document)
    if not isinstance(record, kind):
        raise ValueError(f"has a {type(record).__name__} where a {kind.__name__} belongs")
    texts = [text for text in _texts(to_document(record)) if len(text) > LONGEST_TEXT]
    if texts:
        raise ValueError(f"has a {kind.__name__} with a text of {len(texts[0]):,} letters")
    return record


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
