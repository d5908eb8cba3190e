"""The page of all programs in `benchmarks/`: what each one does, and the entries of the experiment log that it led to."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from docs.generators.markdown import MARK, plain, table
from docs.log_index import Entry, entries, pages

PROGRAMS = Path(__file__).parents[2] / "benchmarks"
HEAD = f"""{MARK}# Benchmarks

Programs that check what is promised about dlbricks: `.venv/bin/python -m benchmarks.NAME`, with `--help` for options. `make
bench` runs those that need no quiet host. Figures and verdicts are in the [experiment log](../log/README.md).

"""
_CODE = re.compile(r"`(?:python -m benchmarks\.)?(\w+)[^`]*`")


def page() -> str:
    """Return the page."""
    found = _entries_by_program(summaries())
    rows = ((f"`{name}`", plain(summary), "; ".join(found.get(name, ()))) for name, summary in summaries().items())
    return HEAD + table(("program", "does", "found"), rows)


def summaries() -> Mapping[str, str]:
    """Return the first sentence of each program; other modules are parts of programs."""
    return dict(_summaries(sorted(PROGRAMS.glob("*.py"))))


def _summaries(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        text = file.read_text(encoding="utf-8")
        description = ast.get_docstring(ast.parse(text)) or ""
        if "usage:" in description:
            yield file.stem, description.partition("\n\n")[0]


def _entries_by_program(programs: Iterable[str]) -> Mapping[str, list[str]]:
    """Return links to the entries whose command names a program, by program."""
    known = set(programs)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for log in pages():
        for entry in entries(log.read_text(encoding="utf-8")):
            for name in known.intersection(_CODE.findall(entry.command)):
                found[name].append(_link(log, entry))
    return found


def _link(log: Path, entry: Entry) -> str:
    return f"[{plain(entry.question)}](../log/{log.name}#{entry.anchor})"
