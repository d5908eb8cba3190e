"""The line at the foot of a screen that says which keys do what, here and now."""

from textual.screen import Screen

from dlbricks_tui.tui.actions.registry import ACTIONS
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, width_of
from dlbricks_tui.tui.widgets.ink import LineBar

# Help leads to all others, so it is there however narrow the line is.
_ALWAYS = ("app.show_help", "app.quit")


class KeyBar(LineBar):
    """Keys in the order of the registry: those of the focused panel first, and as many as there is room for."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_updated)

    def lines(self, width: int) -> tuple[Line, ...]:
        shown = {
            active.binding.id
            for active in self.screen.active_bindings.values()
            if active.enabled and active.binding.show
        }
        offered = [(action.id, _key(key(action.id), action.label)) for action in ACTIONS if action.id in shown]
        kept = {name: spans for name, spans in offered if name in _ALWAYS}
        room = width - sum(width_of(spans) for spans in kept.values())
        for name, spans in offered:
            if name not in kept and width_of(spans) <= room:
                kept[name] = spans
                room -= width_of(spans)
        return (tuple(span for name, _ in offered if name in kept for span in kept[name]),)

    def _bindings_updated(self, screen: Screen[object]) -> None:
        if self.is_attached and self.app.screen is self.screen:
            self.refresh()


def _key(shown: str, label: str) -> Line:
    return (Span(f" {shown}", "accent"), Span(f" {label} ", "muted"))
