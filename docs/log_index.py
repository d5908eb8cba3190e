"""The experiment log: the form of its entries, and the page that lists all questions.

usage: python -m docs.log_index
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOG = Path(__file__).parent / "log"
INDEX = LOG / "README.md"
MOST_LINES = 15
# The hosts that the log names, as in the table below.
HOSTS = ("AMD-512", "AMD", "AMD EPYC", "Intel", "EC2", "not noted")
_HEADING = re.compile(r"^## (?P<question>.+\?)$")
_CIRCUMSTANCES = re.compile(r"^(?P<date>\d{4}-\d\d-\d\d) · (?P<hosts>[^·`]+) · (?P<command>`[^`]+`.*|by hand.*)$")
_ENDS = re.compile(r"[.;:](?= |$)|$")
# The least number of words that an answer has in the list of questions, if its sentence has more.
ENOUGH_WORDS = 5

INTRODUCTION = """# Experiment log

What was tried, what came out, and which decision followed. Each entry answers one question. `python -m docs.log_index`
writes this page.

An entry has the date on which it was measured or noted, the host, and the command (*by hand*: without a program in
`benchmarks/`). Programs whose question is closed were deleted; `git log --diff-filter=D --stat -- benchmarks` lists
them. Unless an entry says otherwise, figures are of MXNet 1.9.1 at G = 1, and errors are estimate over end to end,
minus one. *Noisy* means that the reference convolution varied by a third and more within minutes, *quiet* that it did
not. All hosts are virtual machines that others share:

| name | host |
|---|---|
| AMD-512 | `amd-epyc-2c-c9a16c7c`: two cores of an AMD EPYC with AVX-512 |
| AMD | `amd-epyc-2c-11afb085`: two cores of an AMD EPYC without AVX-512, 1.5 times slower |
| AMD EPYC | one of these two; the entry does not say which |
| Intel | `intel-xeon-2c-78e6b1a6`: two cores of an Intel Xeon with AVX-512 and large caches |
| EC2 | the hosts of 2019 that the authors of the paper published |
| not noted | one of the first four |

To add an entry, put it at the top of its page: the question as a heading, then `date · host · command`, the figures,
and `Verdict: ...`, in at most fifteen lines. The first sentence of the verdict stands below.
"""


@dataclass(frozen=True)
class Entry:
    """A question of the log with its answer."""

    question: str
    date: str
    hosts: tuple[str, ...]
    command: str
    figures: tuple[str, ...]
    verdict: str
    # The number of lines that are not empty.
    lines: int

    @property
    def anchor(self) -> str:
        return anchor_of(self.question)

    @property
    def answer(self) -> str:
        """The first sentence of the verdict, up to a colon or semicolon if that says enough."""
        for end in _ENDS.finditer(self.verdict):
            answer = self.verdict[: end.start()]
            if _closed(answer) and (end.group() not in (";", ":") or len(answer.split()) >= ENOUGH_WORDS):
                break
        return answer


def main() -> None:
    """Write the page that lists all questions."""
    INDEX.write_text(index(), encoding="utf-8")


def pages() -> list[Path]:
    """Return the pages with entries."""
    return sorted(it for it in LOG.glob("*.md") if it != INDEX)


def index() -> str:
    """Return the page that lists all questions."""
    parts = [INTRODUCTION]
    for page in pages():
        text = page.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# Log: ")
        rows = [
            f"| {it.date} | [{it.question}]({page.name}#{it.anchor}) | {it.answer.replace('|', '/')} |"
            for it in entries(text)
        ]
        heading = f"## [{title[0].upper()}{title[1:]}]({page.name})"
        parts.append("\n".join([heading, "", "| date | question | answer |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def entries(text: str) -> list[Entry]:
    """Return the entries of a page; raise ValueError that names the one with another form."""
    _, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return [_entry(it.splitlines()) for it in sections]


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")


def _entry(section: Sequence[str]) -> Entry:
    lines = [line for line in section if line.strip()]
    heading = _HEADING.match(lines[0])
    if not heading:
        raise ValueError(f"{lines[0]!r} is no question")
    question = heading["question"]
    circumstances = _CIRCUMSTANCES.match(lines[1]) if len(lines) > 1 else None
    if not circumstances:
        raise ValueError(f"{question!r} lacks a line `date · host · command`")
    starts = [at for at, line in enumerate(lines) if line.startswith("Verdict: ")]
    if len(starts) != 1:
        raise ValueError(f"{question!r} needs one verdict, and has {len(starts)}")
    figures = tuple(lines[2 : starts[0]])
    if not any(re.search(r"\d", line) for line in figures):
        raise ValueError(f"{question!r} has no figures before its verdict")
    hosts = tuple(circumstances["hosts"].strip().split(", "))
    if unknown := set(hosts).difference(HOSTS):
        raise ValueError(f"{question!r} names the unknown host {', '.join(sorted(unknown))}")
    verdict = " ".join(lines[starts[0] :]).removeprefix("Verdict: ")
    return Entry(question, circumstances["date"], hosts, circumstances["command"], figures, verdict, len(lines))


def _closed(text: str) -> bool:
    """Return true if no bracket and no code is open at the end of a text."""
    return text.count("(") == text.count(")") and text.count("`") % 2 == 0 and text.count("[") == text.count("]")


if __name__ == "__main__":
    main()
