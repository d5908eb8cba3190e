"""The fields of dataclasses, with the comments above them."""

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any

from docs.generators.common_fields import COMMON
from docs.generators.markdown import plain, table

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class FieldText:
    """A field of a dataclass as its source says it."""

    name: str
    type: str
    default: str
    about: str


def field_table(kind: type) -> str:
    """Return a table of the fields of a dataclass."""
    rows = [(f"`{it.name}`", f"`{it.type}`", plain(it.about)) for it in fields_of(kind)]
    return table(("field", "type", "meaning"), rows)


def fields_of(kind: type) -> list[FieldText]:
    """Return the fields of a dataclass in their order, inherited ones first."""
    texts: dict[str, FieldText] = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base):
            texts |= _declared(base)
    # The source may name a number or a text that a reader wants to see.
    plain_values = {it.name: repr(it.default) for it in dataclasses.fields(kind) if type(it.default) in _PLAIN}
    return [
        replace(texts[it.name], default=plain_values.get(it.name, texts[it.name].default))
        for it in dataclasses.fields(kind)
        if it.init
    ]


def _default(written: ast.expr | None) -> str:
    """Return a default as the source spells it; a new object for each instance as a call without arguments."""
    if isinstance(written, ast.Call) and ast.unparse(written.func) == "field":
        given = {it.arg: it.value for it in written.keywords}
        factory = given.get("default_factory")
        if factory is not None:
            return f"{ast.unparse(factory)}()"
        written = given.get("default")
    return "" if written is None else ast.unparse(written)


def values_of(kind: type[Enum]) -> list[tuple[str, str]]:
    """Return the values of an enumeration, each with the comment above it."""
    lines, tree = _source(kind)
    about = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            about[statement.targets[0].id] = _comment_above(lines, statement.lineno)
    return [(str(it.value), about.get(it.name, "")) for it in kind]


def sentence_of(kind: Any) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())


@cache
def _declared(kind: type) -> dict[str, FieldText]:
    lines, tree = _source(kind)
    return {
        statement.target.id: FieldText(
            statement.target.id,
            ast.unparse(statement.annotation).strip("'\""),
            _default(statement.value),
            _comment_above(lines, statement.lineno) or _said_by(kind, statement.target.id),
        )
        for statement in tree.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _said_by(kind: type, name: str) -> str:
    """Return the common meaning of a field, unless the docstring of its class says what it is."""
    return "" if f"`{name}`" in (kind.__doc__ or "") else COMMON.get(name, "")


def _source(kind: type) -> tuple[list[str], ast.ClassDef]:
    source = textwrap.dedent(inspect.getsource(kind))
    (tree,) = ast.parse(source).body
    if not isinstance(tree, ast.ClassDef):
        raise TypeError(f"{kind} is no class")
    return source.splitlines(), tree


def _comment_above(lines: list[str], number: int) -> str:
    """Return the comment that ends in the line above; lines count from 1."""
    words: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#"):
            break
        words.insert(0, line.strip().lstrip("# "))
    return " ".join(words)
