"""The notation of files that users write, TOML: a text to a document, with a line that says what to correct."""

import re
import sys
from typing import Any

from dlbricks_tui.evaluations.errors import EvaluationError
from dlbricks_tui.evaluations.positions import Position, excess, position_at
from dlbricks_tui.printable import printable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Small values take up to 30 times the memory of their text.
MOST_VALUES = 200_000
_WHERE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAMES = re.compile(r"\('([^()]*)',?\)")
# What to do about faults in the notation, by the beginning of the parser's message.
_CURES = {
    "Invalid value": 'write text in quotes, as in name = "text", and close lists with ]',
    "Expected '=' after a key": "write key = value",
    "Cannot overwrite a value": "this key is there already: keep one of them",
    "Cannot declare": "keep one of them, or write [[name]] where several tables are allowed",
    "Cannot mutate": "keep one of them",
    "Cannot redefine": "this key is there already: keep one of them",
    "Duplicate inline table key": "this key is there already: keep one of them",
    "Expected newline or end of document": "write one key = value in a line",
    "Invalid statement": "write key = value, or the name of a table, such as [name]",
    "Invalid initial character": "a key has letters, digits, - and _, or quotes around it",
    "Expected ']]'": "add the closing ]]",
    "Expected ']'": "add the closing ]",
    "Unclosed array": "add the closing ]",
    "Unclosed inline table": "add the closing }",
    "Unterminated string": "add the closing quote",
    "Unescaped '\\'": "write two backslashes, or single quotes around the text",
    "Illegal character '\\n'": "close the text with a quote on the same line",
    "Illegal character": "remove it",
    "Found invalid character": "remove it",
}


def parsed(text: str, file: str) -> dict[str, Any]:
    """Return the document in a text; raise EvaluationError with line and column. `file` names it in messages."""
    found = excess(text)
    if found is not None:
        raise error_at(file, position_at(text, found.offset), found.message)
    if sum(text.count(sign) for sign in ",=[{") > MOST_VALUES:
        raise EvaluationError(f"{file} holds more than {MOST_VALUES:,} values; leave samples out, or split it")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise EvaluationError(f"{file}: the values nest too deep; write them flatter") from None
    except ValueError as error:
        raise _syntax_error(str(error), text, file) from None


def _syntax_error(message: str, text: str, file: str) -> EvaluationError:
    """Return the parser's error in the form of all others."""
    found = _WHERE.search(message)
    known = found is not None and found[1] is not None
    where = Position(int(found[1]), int(found[2])) if found is not None and known else position_at(text, len(text))
    # Names are tuples in some messages.
    plain = _NAMES.sub(lambda names: names[1].replace("', '", "."), _WHERE.sub("", message))
    problem = printable(plain)
    cure = next((cure for beginning, cure in _CURES.items() if message.startswith(beginning)), "")
    return error_at(
        file, where, f"this is not TOML ({problem[:1].lower()}{problem[1:80]}); {cure or 'correct it here'}"
    )


def error_at(file: str, where: Position, message: str) -> EvaluationError:
    """Return an error that tells where a fault is."""
    return EvaluationError(f"{file}, {where.in_words}: {message}")
