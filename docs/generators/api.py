"""The page of the Python API, from its signatures, docstrings and comments."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from dlbricks_tui import api
from dlbricks_tui.api import public
from docs.generators.fields import fields_of, sentence_of, values_of
from docs.generators.markdown import MARK, plain, table

_MARK, _INDENT = "\0", "\n    "
_WIDTH = 100
EXAMPLE = Path(__file__).with_name("api_example.py")
_NAMES: list[str] = vars(public)["__all__"]
HEAD = f"""{MARK}# Python API

`dlbricks_tui.api` does from Python what the [commands](commands.md) do: load a model, estimate it from stored results,
measure it, and read the results. The names on this page are stable; other modules of the package may change from one
version to the next.

```python
{EXAMPLE.read_text(encoding="utf-8")}```

- A model is a path, a name that `dlbricks models` lists, or `table1:ID`.
- `data` is a [data folder](files.md#your-data), or a `Session`; the default is the folder of the commands. The config file
  does not count: pass options instead.
- `measure`, `probe`, `check`, `evaluate` and `fleet` work in the calling process, and in its main thread only: SIGINT,
  SIGTERM and SIGHUP end the run after the current round, and the `State` of the result says so.
- `scenario`, `trace` and `language` measure in a process of their own, so they work in any thread, and in notebooks.
- Results are frozen dataclasses with the keys of the [JSON documents](json.md) of the command with the same name.

"""


def page() -> str:
    """Return the text of the page."""
    found = {name: getattr(api, name) for name in _NAMES}
    errors = {name: it for name, it in found.items() if isinstance(it, type) and issubclass(it, Exception)}
    enums = {name: it for name, it in found.items() if isinstance(it, type) and issubclass(it, Enum)}
    classes = {name: it for name, it in found.items() if isinstance(it, type) and name not in {*errors, *enums}}
    options = {name: it for name, it in classes.items() if name.endswith("Options")}
    results = {name: it for name, it in classes.items() if name not in options}
    functions = {name: it for name, it in found.items() if not isinstance(it, type)}
    return "".join(
        [
            HEAD,
            "## Functions\n\n",
            *map(_function, functions.values()),
            "## Options\n\nAll fields have defaults, unless the table has none.\n\n",
            *(_class(name, it) for name, it in options.items()),
            "## Results\n\n",
            *(_class(name, it) for name, it in results.items()),
            "## Enumerations\n\n",
            *(_enumeration(name, it) for name, it in enums.items()),
            "## Errors\n\nEvery error is a `UserError` with a message that says what to do. All other exceptions are "
            "faults of dlbricks.\n\n",
            table(("exception", "cause"), ((f"`{name}`", plain(sentence_of(it))) for name, it in errors.items())),
        ]
    )


def _function(function: Callable[..., Any]) -> str:
    return f"### {function.__name__}\n\n```python\n{signature(function)}\n```\n\n{_text(function)}\n\n"


def signature(function: Callable[..., Any]) -> str:
    """Return a signature as its source spells it, with a line for each parameter if it is long."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} is no function")
    if tree.args.args and tree.args.args[0].arg == "self":
        tree.args.args.pop(0)
    result = "" if tree.returns is None else f" -> {ast.unparse(tree.returns)}"
    for each in (*tree.args.args, *tree.args.kwonlyargs):
        # A mark that no annotation has, to divide the parameters at.
        each.arg = f"{_MARK}{each.arg}"
    parts = ast.unparse(tree.args).replace(f"*, {_MARK}", f"{_MARK}*, {_MARK}").split(_MARK)
    parameters = [it.removesuffix(", ").replace("=", " = ", 1) for it in parts[1:]]
    line = f"{tree.name}({', '.join(parameters)}){result}".replace("'", '"')
    if len(line) <= _WIDTH:
        return line
    return f"{tree.name}({_INDENT}{f',{_INDENT}'.join(parameters)},\n){result}"


def _text(documented: Any) -> str:
    return inspect.cleandoc(documented.__doc__ or "")


def _class(name: str, kind: type) -> str:
    parts = [f"### {name}\n\n{plain(_text(kind))}\n\n"]
    if dataclasses.is_dataclass(kind):
        rows = [(f"`{it.name}`", f"`{it.type}`", _default(it.default), plain(it.about)) for it in fields_of(kind)]
        parts.append(table(("field", "type", "default", "meaning"), rows) + "\n")
    # The methods of options are for the package itself.
    if not name.endswith("Options") and (members := list(_members(kind))):
        parts.append(table(("member", "does"), members) + "\n")
    return "".join(parts)


def _default(written: str) -> str:
    return f"`{written}`" if written else ""


def _members(kind: type) -> Iterable[tuple[str, str]]:
    """Return the public properties and methods that the package itself declares."""
    for base in kind.__mro__:
        if not base.__module__.startswith("dlbricks_tui"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in _NAMES:
                continue
            if isinstance(member, property) and member.__doc__:
                yield f"`{name}`", plain(sentence_of(member))
            elif inspect.isfunction(member) and member.__doc__:
                yield f"`{' '.join(signature(member).split())}`", plain(sentence_of(member))


def _enumeration(name: str, kind: type[Enum]) -> str:
    values = values_of(kind)
    head = f"### {name}\n\n{plain(_text(kind))}\n\n"
    names = {str(it.value): it.name for it in kind}
    if any(about for _, about in values):
        rows = [(f"`{names[value]}`", f'`"{value}"`', plain(about)) for value, about in values]
        return head + table(("name", "value", "meaning"), rows) + "\n"
    return head + ", ".join(f'`{names[value]}` (`"{value}"`)' for value, _ in values) + ".\n\n"
