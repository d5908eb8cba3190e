"""What the framework cannot do, carried up to the loop that answers for it."""

from __future__ import annotations

from dlbricks_tui.runtime.protocol import Reason, Refused


class RefusalError(Exception):
    """The request is answered with the refusal that this carries."""

    def __init__(self, reason: Reason, message: str, node: int | None = None) -> None:
        super().__init__(message)
        self.refused = Refused(reason, message, node)
