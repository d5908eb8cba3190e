"""A form for the shapes of a model's inputs."""

from collections.abc import Mapping
from functools import partial

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import parse_input
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.field import Field
from dlbricks_tui.tui.widgets.said import Said

_IMAGE: Shape = (1, 3, 224, 224)


class InputShapesScreen(Dialog[dict[str, Shape]]):
    """One field an input; gives the shapes by name."""

    BINDINGS = bindings(Scope.FORM)
    ABOUT = "A shape is written like 1,3,224,224: one image of three channels, 224 by 224 pixels."

    def __init__(
        self, model: str, known: Mapping[str, Shape | None], examples: Mapping[str, Shape], reason: str = ""
    ) -> None:
        super().__init__()
        self._model = model
        self._reason = reason
        self._problem = ""
        self._examples = {name: _spelled(examples.get(name) or shape or _IMAGE) for name, shape in known.items()}
        self._fields = {name: _field(shape, self._examples[name]) for name, shape in known.items()}
        self._below = Said(self._below_lines)

    def compose(self) -> ComposeResult:
        with Box(f"Shapes of the inputs of {self._model}", [Scope.FORM, Scope.DIALOG]):
            with VerticalScroll(can_focus=False):
                for name, field in self._fields.items():
                    yield Said(partial(_label, name), classes="field-name")
                    yield field
            yield self._below

    def on_input_submitted(self) -> None:
        self.action_submit()

    def on_input_changed(self) -> None:
        self._problem = ""
        self._below.refresh(layout=True)

    def action_next_field(self) -> None:
        self.focus_next(Field)

    def action_previous_field(self) -> None:
        self.focus_previous(Field)

    def action_submit(self) -> None:
        shapes: dict[str, Shape] = {}
        for name, field in self._fields.items():
            try:
                shapes[name] = parse_input(f"{name}={field.value}")[1]
            except ModelError:
                self._problem = f"{name}: write its shape like {self._examples[name]}"
                self._below.refresh(layout=True)
                field.focus()
                return
        self.dismiss(shapes)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        return tuple(wrapped(line(Span(self._problem or self._reason, "bad" if self._problem else "muted")), width))


def _label(name: str, width: int) -> tuple[Line, ...]:
    return (line(Span(name, "strong")),)


def _field(shape: Shape | None, example: str) -> Field:
    return Field(_spelled(shape or ()), hint=example)


def _spelled(shape: Shape) -> str:
    return ",".join(map(str, shape))
