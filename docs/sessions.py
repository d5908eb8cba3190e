"""Commands on pages with what they print, and the recordings of commands that take long.

usage: python -m docs.sessions NAME    execute the commands of tests/docs/sessions/NAME.txt, and keep what they print

A page shows a command and its output in a block of the language `console`:

    ```console
    $ dlbricks estimate vgg16      # a comment
    vgg16
    ...
    ```

A line `...` stands for lines that are left out, and ` ...` at the end of a line for the rest of it. The session of a
page has the same form, without comments and without `...`.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, SAMPLE_MODELS

ROOT = Path(__file__).parents[1]
SESSIONS = ROOT / "tests" / "docs" / "sessions"
LEFT_OUT = "..."
# What pages call the folder of the user's data, which differs between platforms and users.
DATA_NAME = "~/.local/share/dlbricks"
# Lines that resemble each other share so many of their words.
SHARED_WORDS = 0.6
# At most this share of a figure may differ from the page: other versions of NumPy round other digits.
TOLERANCE = 0.05

_PROMPT = "$ "
_CODE = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$|(?P<indented>(?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
_PROGRAM = re.compile(r"(?:\.venv/bin/|\$ )*dlbricks(?= |$)")
_MENTIONED = re.compile(r"`(dlbricks (?!COMMAND)[^`\n]+)`")
# Names that differ between hosts and runs: systems, runs, keys, digests, days and times.
_IDS = re.compile(
    r"\b[a-z]\w*(?:-\w+)*-\d+c-[0-9a-f]{8}\b|\b\d{8}-\d{6}-[0-9a-f]{4}\b|\b(?=[a-f]*\d)[0-9a-f]{8,64}\b"
    r"|\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d\b"
)
_AGE = re.compile(r"\b\d+ (?:s|min|h|d|y) ago\b|\bnow\b")
_FIGURE = re.compile(r"(?<![\w.])[-+~]*\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
_DRAWN = re.compile(r"[─-▟]+|\[[#=.c?]+\]|-{3,}")
# A line of a plot: its axis, and what is drawn beside it.
_PLOTTED = re.compile(r"^ *[\d.,]* *[│┤├└][─│┼┬┴~o.:x\- \d]*$")
# The numbers below a plot.
_NUMBERED = re.compile(r"^ {3,}[\d.,]+(?: +[\d.,]+)+$")

# The names of layers, models and shapes, and words.
_NAME, _WORD = re.compile(r"\S*[\d/#]\S*"), re.compile(r"[^\W\d_]{3,}")
_PROGRESS = re.compile(r"noise: |\d+ of \d+ (?:bricks|results)\b")


@dataclass(frozen=True)
class Command:
    """A command after a prompt, and the lines below it."""

    text: str
    output: tuple[str, ...] = ()


def shown_commands(page: str) -> tuple[Command, ...]:
    """Return the commands of a page's console blocks, without comments."""
    blocks = (it["text"] for it in _CODE.finditer(page) if it["language"] == "console")
    return tuple(command for block in blocks for command in session(block, comments=True))


def written_commands(page: str) -> Iterator[str]:
    """Yield each command of dlbricks in the code of a page, shown with output or not."""
    for code in _CODE.finditer(page):
        if code["language"] in (None, "", "console", "sh", "bash"):
            text = code["indented"] or code["text"]
            for line in text.replace("\\\n", " ").splitlines():
                if (found := _PROGRAM.match(line.strip())) is not None:
                    yield "dlbricks" + line.strip()[found.end() :]


def mentioned_commands(page: str) -> Iterator[str]:
    """Yield each command of dlbricks in the sentences and tables of a page; they may lack arguments."""
    yield from (found.replace("\\|", "|") for found in _MENTIONED.findall(_CODE.sub("", page)))


def session(text: str, *, comments: bool = False) -> tuple[Command, ...]:
    """Return the commands of a text, in which each follows a prompt and comes before its output."""
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith(_PROMPT):
            command = line.removeprefix(_PROMPT)
            found.append((_without_comment(command) if comments else command, []))
        elif found and line.strip():
            found[-1][1].append(line.rstrip())
    return tuple(Command(command, tuple(output)) for command, output in found)


def _without_comment(command: str) -> str:
    return re.sub(r"\s+#\s.*$", "", command).strip()


def words_of(command: str) -> list[str]:
    """Return the words after `dlbricks`, up to the first pipe, redirection or comment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;<>&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;<>&"):
            break
        words.append(word)
    return words[1:]


def stray_line(shown: Sequence[str], printed: Sequence[str], same: Callable[[str, str], bool]) -> str | None:
    """Return the first of the shown lines that was not printed there, None if all were.

    Nothing may be left out without `...`: neither in front of a line, nor between two lines, nor at the end.
    """
    at, anywhere = 0, False
    parts = _parts(shown)
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        starts = range(at, len(printed) - len(part) + 1) if anywhere else range(at, at + 1)
        if is_last and part:
            # Without `...` behind it, the last part stands at the end.
            starts = range(max(at, len(printed) - len(part)), len(printed) - len(part) + 1) if anywhere else starts
        best = 0
        for start in starts:
            equal = 0
            while equal < len(part) and start + equal < len(printed) and same(part[equal], printed[start + equal]):
                equal += 1
            if equal == len(part):
                at = start + equal
                break
            best = max(best, equal)
        else:
            return part[best]
        anywhere = True
    if shown and shown[-1] != LEFT_OUT and at != len(printed):
        return f"{LEFT_OUT} is missing after {shown[-1]!r}: {printed[at]!r} was printed there"
    return None


def _parts(shown: Sequence[str]) -> list[list[str]]:
    """Return the lines between the marks of lines left out; the first part is empty if a mark comes first."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def equal(shown: str, printed: str) -> bool:
    """Return whether a line is the printed one, up to ` ...` at its end."""
    if shown.endswith(f" {LEFT_OUT}"):
        return printed.startswith(shown.removesuffix(f" {LEFT_OUT}"))
    return shown == printed


def alike(shown: str, printed: str) -> bool:
    """Return whether two lines have the same words, and figures that differ by at most five percent."""
    if shown.endswith(f" {LEFT_OUT}"):
        shown = shown.removesuffix(LEFT_OUT)
        return form(printed).startswith(form(shown))
    pairs = zip(_figures(shown), _figures(printed), strict=False)
    return form(shown) == form(printed) and all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) for a, b in pairs)


def form(line: str) -> str:
    """Return a line with its figures, drawings and the names of hosts and runs replaced."""
    line = _NUMBERED.sub("PLOT", _PLOTTED.sub("PLOT", _IDS.sub("ID", _AGE.sub("AGE", line))))
    return " ".join(_FIGURE.sub("#", _DRAWN.sub(" ", line)).split())


def is_about_this_run(line: str) -> bool:
    """Return whether a line tells how far a run is, or how noisy its host: other runs may tell nothing of it."""
    return _PROGRESS.match(line) is not None


def resembles(line: str, other: str) -> bool:
    """Return whether two lines share most words: which layers, models or hosts a row names depends on their speed."""
    here, there = (set(_WORD.findall(_NAME.sub("", form(it)))) for it in (line, other))
    return len(here & there) >= SHARED_WORDS * len(here | there)


def _figures(line: str) -> list[float]:
    found = _FIGURE.findall(_IDS.sub("ID", _AGE.sub("AGE", line)))
    return [float(it.replace(",", "").lstrip("+-~")) for it in found]


def execute(commands: Sequence[Command], folder: Path) -> Iterator[Command]:
    """Execute commands one after another in a folder, whose part `data` is the data folder; yield what they print."""
    environment = {
        **os.environ,
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        DATA_FOLDER_VARIABLE: str(folder / "data"),
        "SAMPLES": str(SAMPLE_MODELS),
        "PYTHONUNBUFFERED": "1",
    }
    status = 0
    for command in commands:
        # A command may print the exit status of the one before.
        done = subprocess.run(
            f"(exit {status}); {command.text}",
            shell=True,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        status = done.returncode
        yield Command(command.text, printed_lines(done.stdout, folder / "data"))


def printed_lines(text: str, data: Path) -> tuple[str, ...]:
    """Return the lines of an output as pages show them."""
    named = {str(data): DATA_NAME, str(ROOT): "~/dlbricks_tui", str(data.parent): "~", str(Path.home()): "~"}
    for name, instead in named.items():
        text = text.replace(name, instead)
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())


def main(name: str) -> None:
    """Execute a session anew, and write what it prints."""
    file = SESSIONS / f"{name}.txt"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for command in execute(session(file.read_text(encoding="utf-8")), Path(folder).resolve()):
            print(_PROMPT + command.text, *command.output, sep="\n", flush=True)
            found.append("\n".join((_PROMPT + command.text, *command.output)) + "\n")
    file.write_text("\n".join(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
