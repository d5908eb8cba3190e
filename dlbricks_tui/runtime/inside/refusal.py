"""The error that becomes a refusal."""

from __future__ import annotations

from dlbricks_tui.runtime.protocol import Reason, Refused


class RefusalError(Exception):
    """The request is answered with `refused`."""

    def __init__(self, reason: Reason, message: str, node: int | None = None) -> None:
        super().__init__(message)
        self.refused = Refused(reason, message, node)
