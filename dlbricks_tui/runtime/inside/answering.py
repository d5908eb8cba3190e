"""Reads requests, answers each, never stops because of one."""

from __future__ import annotations

from typing import Any, BinaryIO

from dlbricks_tui.runtime.inside.framework import describe, load_mxnet
from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.protocol import (
    Describe,
    Fuse,
    Infer,
    ProtocolError,
    Reason,
    Refused,
    Reply,
    Request,
    decode_request,
    encode,
)


def answer_all(requests: BinaryIO, replies: BinaryIO) -> None:
    """One reply a request, in order."""
    for line in requests:
        replies.write(encode(_answer(line)))
        replies.flush()


def _answer(line: bytes) -> Reply:
    try:
        return _perform(decode_request(line))
    except RefusalError as refusal:
        return refusal.refused
    except ProtocolError as error:
        return Refused(Reason.MALFORMED, str(error))


def _perform(request: Request[Any]) -> Reply:
    mxnet = load_mxnet()
    # These import numpy, which is sure to be there only now.
    from dlbricks_tui.runtime.inside.fuse import fuse
    from dlbricks_tui.runtime.inside.infer import infer

    if isinstance(request, Infer):
        return infer(mxnet, request)
    if isinstance(request, Fuse):
        return fuse(mxnet, request)
    if isinstance(request, Describe):
        return describe(mxnet)
    raise ProtocolError(f"{type(request).__name__} is not for this worker")
