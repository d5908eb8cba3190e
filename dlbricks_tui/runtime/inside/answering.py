"""Reads requests, answers each, never stops because of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from dlbricks_tui.runtime.inside.framework import describe, load_mxnet
from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.lines import ProtocolError, decode_request, encode
from dlbricks_tui.runtime.protocol import (
    Describe,
    Fuse,
    Infer,
    Load,
    NullCalls,
    Reason,
    Refused,
    Reply,
    Request,
    Sample,
    Unload,
)


def answer_all(requests: BinaryIO, replies: BinaryIO) -> None:
    """One reply a request, in order."""
    performers: dict[type[Request[Any]], Callable[[Any], Reply]] = {}
    for line in requests:
        replies.write(encode(_answer(line, performers)))
        replies.flush()


def _answer(line: bytes, performers: dict[type[Request[Any]], Callable[[Any], Reply]]) -> Reply:
    try:
        request = decode_request(line)
        if not performers:
            performers.update(_performers(load_mxnet()))
        return performers[type(request)](request)
    except RefusalError as refusal:
        return refusal.refused
    except ProtocolError as error:
        return Refused(Reason.MALFORMED, str(error))


def _performers(mxnet: Any) -> dict[type[Request[Any]], Callable[[Any], Reply]]:
    """Who performs which request."""
    # These import numpy, which is sure to be there only now.
    from dlbricks_tui.runtime.inside.fuse import fuse
    from dlbricks_tui.runtime.inside.infer import infer
    from dlbricks_tui.runtime.inside.measuring import Bench

    bench = Bench(mxnet)
    return {
        Describe: lambda request: describe(mxnet),
        Infer: lambda request: infer(mxnet, request),
        Fuse: lambda request: fuse(mxnet, request),
        Load: bench.load,
        Sample: bench.sample,
        NullCalls: bench.null_calls,
        Unload: bench.unload,
    }
