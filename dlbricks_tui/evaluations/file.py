"""Files of evaluations: TOML, read with limits and checked, and written completely or not at all."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import tomlkit

from dlbricks_tui.evaluations.evaluation import FORMAT, TABLES, Evaluation, EvaluationError, FileTable
from dlbricks_tui.evaluations.faults import Fault, excess, offset_of, offsets_of, position_at, shown
from dlbricks_tui.evaluations.validation import broken_rules, faults_of
from dlbricks_tui.files import NotRegularError, open_regular, parsed_toml, write_named
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.loads import SERVING
from dlbricks_tui.settings.setting import plain
from dlbricks_tui.settings.variant import KERNELS

_HEADER = """\
# An evaluation of dlbricks. `dlbricks evaluate FILE` measures it, and `dlbricks evaluate FILE --compare` says whether
# the results equal those below. `dlbricks evaluate --schema` prints the JSON schema of this file for editors.
"""
# Above the first table of a name.
_COMMENTS = {
    "model": "# The models by their content. Copies with another name or in another place will do.",
    "runtime": "# The runtimes. Each combination of the values of a runtime is measured.",
    "measure": "# How the models are cut and timed.",
    "scenario": "# How requests arrive. Each runtime runs these with its first variant.",
    "system": "# Requirements on the system.",
    "result": "# The results of the earlier run, with all samples of the whole models in milliseconds.",
}
_SAMPLES_IN_A_LINE = 10
# The fields that have a table of their own below the others.
_FACTS = ("packages", "host")
# The fields that say nothing with their default.
_SILENT = (*(it.field for it in (*SERVING, *KERNELS)), "quiet")


def text_of(evaluation: Evaluation) -> str:
    """Return an evaluation as the text of its file."""
    head = {"format": FORMAT, "name": evaluation.name, "about": evaluation.about}
    lines = [f"{key} = {_value(value)}" for key, value in head.items() if value]
    return "\n".join([_HEADER, *lines, *(line for name in TABLES for line in _tables(name, evaluation)), ""])


def _tables(name: str, evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines of the tables of a name; the first has a comment."""
    table = TABLES[name]
    held = getattr(evaluation, table.field)
    for number, section in enumerate(held if table.together else (held,)):
        lines = list(_lines(name, section))
        if lines:
            header = f"[[{name}]]" if table.together else f"[{name}]"
            yield from ("", *([_COMMENTS[name]] if number == 0 else []), header, *lines)


def _lines(name: str, section: Any) -> Iterator[str]:
    """Yield the lines of a table: its keys, then the tables in it."""
    below: list[str] = []
    usual = {it.name: it.default for it in fields(section)}
    for key in TABLES[name].keys:
        value = getattr(section, key)
        if value in (None, "", (), {}) or (key in _SILENT and value == usual[key]):
            continue
        if key in _FACTS:
            below += ["", f"[{name}.{key}]", *(f"{_key(fact)} = {_value(it)}" for fact, it in value if it is not None)]
        elif key == "samples_ms":
            rows = [value[begin : begin + _SAMPLES_IN_A_LINE] for begin in range(0, len(value), _SAMPLES_IN_A_LINE)]
            yield from (f"{key} = [", *(f"    {', '.join(map(_value, row))}," for row in rows), "]")
        else:
            yield f"{key} = {_field(key, value)}"
    yield from below


def _field(key: str, value: object) -> str:
    """Return the value of a field as TOML; a list of one item is written as the item."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{_key(name)} = {_several(item, key == 'inputs')}" for name, item in value.items())
        return f"{{ {items} }}"
    if key in ("cores", "memory_gib"):
        return str(value) if str(value).isdecimal() and str(int(str(value))) == str(value) else _value(str(value))
    return _several(value, is_list=False)


def _several(value: object, is_list: bool) -> str:
    if not isinstance(value, tuple):
        return _value(value)
    items: Iterable[str] = map(_value, value)
    return next(iter(items)) if len(value) == 1 and not is_list else f"[{', '.join(items)}]"


def _value(value: object) -> str:
    text: str = tomlkit.item(plain(value)).as_string()
    return text


def _key(name: str) -> str:
    return tomlkit.key(name).as_string()


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
    if sum(text.count(sign) for sign in ",=[{") > MOST_VALUES:
        raise EvaluationError(f"{file} holds more than {MOST_VALUES:,} values; leave samples out, or split it")
    found = excess(text)
    if found is not None:
        raise error_at(file, position_at(text, found[0]), found[1])
    try:
        return parsed_toml(text)
    except ValueError as error:
        raise _syntax_error(str(error), text, file) from None


def _syntax_error(message: str, text: str, file: str) -> EvaluationError:
    """Return the parser's error in the form of all others."""
    found = _WHERE.search(message)
    known = found is not None and found[1] is not None
    where = f"line {found[1]}, column {found[2]}" if found is not None and known else position_at(text, len(text))
    # Names are tuples in some messages.
    plain = _NAMES.sub(lambda names: names[1].replace("', '", "."), _WHERE.sub("", message))
    problem = printable(plain)
    cure = next((cure for beginning, cure in _CURES.items() if message.startswith(beginning)), "")
    return error_at(
        file, where, f"this is not TOML ({problem[:1].lower()}{problem[1:80]}); {cure or 'correct it here'}"
    )


def error_at(file: str, where: str, message: str) -> EvaluationError:
    """Return an error that tells where a fault is."""
    return EvaluationError(f"{file}, {where}: {message}")


_MOST_FAULTS = 100
_Table = Mapping[str, Any]


def evaluation_of(text: str, sha256: str, file: str) -> Evaluation:
    """Return the evaluation in a text; raise EvaluationError for the first fault. `file` names it in messages."""
    text = text.replace("\r\n", "\n")
    document = parsed(text, file)
    found = document.get("format")
    if "format" in document and type(found) is int and found > FORMAT:
        where = position_at(text, offsets_of(text)["format",])
        raise error_at(
            file,
            where,
            f"format = {shown(found)} was written by a newer dlbricks, and this one reads format {FORMAT}; "
            "update dlbricks",
        )
    without_faults(faults_of(document) or list(islice(broken_rules(document), _MOST_FAULTS)), text, file)
    tables = {it.field: loaded(it, document.get(name)) for name, it in TABLES.items() if name in document}
    return Evaluation(name=document["name"], about=document.get("about", ""), sha256=sha256, **tables)


def without_faults(faults: Sequence[Fault], text: str, file: str) -> None:
    """Raise EvaluationError for the first of the faults in a text, if there is any."""
    if faults:
        offsets = offsets_of(text)
        first = min(faults, key=lambda fault: offset_of(fault.place, offsets))
        raise error_at(file, position_at(text, offset_of(first.place, offsets)), first.message)


def loaded(table: FileTable, value: Any) -> Any:
    """Return the dataclass of a table, or of each table of a name."""
    if isinstance(value, list):
        return tuple([loaded(table, each) for each in value])
    return table.kind(**{name: key.read(value[name]) for name, key in table.keys.items() if name in value})


# About 1,500 results with a hundred samples each.
MOST_BYTES = 4 * 2**20
_LONGEST_PATH = 300
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_evaluation(path: Path) -> Evaluation:
    """Return the evaluation in a file; raise EvaluationError, one line with line and column, for the first fault."""
    file = shown_path(path)
    content = content_of(
        path,
        missing="`dlbricks evaluate --from RUN -o FILE` writes one",
        wanted="an evaluation, a TOML file",
        too_large="leave samples out, or split it",
    )
    return evaluation_of(text_in(content, file), hashlib.sha256(content).hexdigest(), file)


def write_evaluation(evaluation: Evaluation, path: Path) -> Evaluation:
    """Write an evaluation to a file, and return it with the hash of the file.

    Raise EvaluationError if that fails, or if `read_evaluation` would refuse the file.
    """
    file, text = shown_path(path), text_of(evaluation)
    content = text.encode()
    try:
        if len(content) > MOST_BYTES:
            raise EvaluationError(f"it has more than {MOST_BYTES // 2**20} MiB; leave samples out, or split it")
        evaluation_of(text, "", "its text")
    except EvaluationError as error:
        raise EvaluationError(f"{file} is not written, because it could not be read again: {error}") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_named(path, lambda stream: stream.write(content))
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error.strerror}; choose another file") from None
    except ValueError as error:
        raise EvaluationError(f"{file} is not a path: {error}") from None
    return replace(evaluation, sha256=hashlib.sha256(content).hexdigest())


def shown_path(path: Path) -> str:
    """Return a path as messages show it."""
    text = printable(str(path))
    return text if len(text) <= _LONGEST_PATH else f"...{text[-_LONGEST_PATH:]}"


def content_of(path: Path, *, missing: str, wanted: str, too_large: str) -> bytes:
    """Return the bytes of a regular file.

    The texts say what to do if there is none, what the path has to name, and what to do about a file that is too large.
    """
    file = shown_path(path)
    try:
        with open_regular(path) as stream:
            # A large file is refused unread: a sparse file could fill the memory.
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
    except FileNotFoundError:
        raise EvaluationError(f"{file} does not exist; {missing}") from None
    except NotRegularError as error:
        raise EvaluationError(f"{file} is {error.what}; give the path of {wanted}") from None
    except OSError as error:
        raise EvaluationError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise EvaluationError(f"{file} is not a path: {error}") from None
    if max(size, len(content)) > MOST_BYTES:
        raise EvaluationError(f"{file} has more than {MOST_BYTES // 2**20} MiB; {too_large}")
    return content


def text_in(content: bytes, file: str) -> str:
    """Return the text of a file; a byte order mark of UTF-8 is left out."""
    if content.startswith(_OF_UTF16):
        raise error_at(file, "line 1, column 1", "this is UTF-16 text; save the file as UTF-8")
    content = content.removeprefix(_BYTE_ORDER_MARK)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        raise error_at(
            file, position_at(before, len(before)), "this is not UTF-8 text; save the file as UTF-8"
        ) from None
