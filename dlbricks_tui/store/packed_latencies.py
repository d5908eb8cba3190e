"""Latencies of many requests as a short text: nanoseconds in eight bytes each, compressed, in base64."""

import base64
import zlib
from array import array
from collections.abc import Iterable, Sequence

from dlbricks_tui.store.documents import BrokenDocumentError

# A day of 10,000 requests a second would be more; a text from elsewhere must not fill the memory.
_MOST_BYTES = 1 << 28


def pack_latencies(latencies_ns: Iterable[int]) -> str:
    """Return latencies as text."""
    packed = array("q", latencies_ns)
    return base64.b64encode(zlib.compress(packed.tobytes(), 9)).decode()


def unpack_latencies(text: str) -> Sequence[int]:
    """Return the latencies in a text; raise BrokenDocumentError if it holds none."""
    try:
        inflater = zlib.decompressobj()
        content = inflater.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise BrokenDocumentError("has latencies that cannot be read") from error
    if inflater.unconsumed_tail or not inflater.eof or len(content) % 8:
        raise BrokenDocumentError("has latencies that cannot be read")
    return array("q", content)
