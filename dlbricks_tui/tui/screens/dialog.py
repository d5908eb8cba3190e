"""The base of screens that stand in front of another one."""

from typing import ClassVar, Generic, TypeVar

from textual.screen import ModalScreen

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.screens.asking import AskingScreen

Result = TypeVar("Result")


class Dialog(AskingScreen[Result], ModalScreen[Result], Generic[Result]):
    """A box in the middle; closing it gives None."""

    scope: ClassVar[Scope] = Scope.DIALOG
    BINDINGS = bindings(Scope.DIALOG)

    def action_close(self) -> None:
        self.dismiss(None)

    async def action_show_help(self) -> None:
        # What stands in front keeps the keys of the application from being seen.
        await self.run_action("app.show_help")

    def action_leave(self) -> None:
        self.app.exit()
