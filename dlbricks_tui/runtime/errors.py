"""Errors of workers and of the list of runtimes, each with a one-line message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError

if TYPE_CHECKING:
    from dlbricks_tui.runtime.protocol import Reason


class WorkerError(UserError):
    """The base of all errors of workers and runtimes."""


class FrameworkMissingError(WorkerError):
    """The interpreter cannot be started, or has no framework that can be imported and used; `reason` says why."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class WorkerLostError(WorkerError):
    """The worker is gone, for a reason that may lie in its last request."""


class WorkerDiedError(WorkerLostError):
    """The worker ended before it answered."""


class WorkerHungError(WorkerLostError):
    """The worker did not answer in time and was ended."""


class WorkerGarbledError(WorkerLostError):
    """The worker wrote something that is no answer and was ended."""


class WorkerRefusedError(WorkerError):
    """The framework rejected a request. `node` is the index of the node at fault, if one is known."""

    def __init__(self, reason: Reason, message: str, node: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.node = node


class RegistryError(WorkerError):
    """The list of runtimes cannot be read or written, or does not hold the runtime."""
