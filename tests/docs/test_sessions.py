"""Commands on pages are commands of this version, and print what the pages show.

All commands in the code of a page are parsed. Output in blocks of the language `console` is compared: with the session
of the page (`tests/docs/sessions`) if that has the command, and else with what the command prints now, in the
demonstration's data folder. `python -m docs.sessions NAME` records a session.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from dlbricks_tui.api.demonstration import open_demonstration
from dlbricks_tui.cli.main import command_parser, main
from dlbricks_tui.cli.parser import Parser, UsageError, with_hyphens_joined
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE
from dlbricks_tui.host.noise import SOURCES
from docs.sessions import (
    ROOT,
    SESSIONS,
    Command,
    alike,
    equal,
    execute,
    form,
    is_about_this_run,
    mentioned_commands,
    printed_lines,
    resembles,
    session,
    shown_commands,
    stray_line,
    words_of,
    written_commands,
)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What was true of an earlier version stays in the log.
PRESENT = [it for it in PAGES if "log" not in it.parts]
WITH_OUTPUT = [it for it in PAGES if any(command.output for command in shown_commands(it.read_text(encoding="utf-8")))]
# Lines that resemble those of another host: some say which of two runtimes is faster here, or that a host is slower.
SHARE_ON_ANY_HOST = 0.8
# Sessions that need hosts which SSH reaches: they are not executed anew.
NEEDS_HOSTS = {"many-hosts"}
SESSION_FILES = sorted(SESSIONS.glob("*.txt"))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def recorded(page: Path) -> dict[str, tuple[str, ...]]:
    """Return the outputs of the session of a page by command."""
    file = SESSIONS / f"{page.stem}.txt"
    return {it.text: it.output for it in session(file.read_text(encoding="utf-8"))} if file.is_file() else {}


@pytest.fixture(scope="module")
def printed() -> Iterator[Callable[[str], tuple[str, ...]]]:
    """Return what a command prints about the demonstration in this process, on both streams."""
    with open_demonstration() as found:
        data = found.data.path

        # Several pages show the same commands, which only read.
        @cache
        def run(command: str) -> tuple[str, ...]:
            text = io.StringIO()
            with redirect_stdout(text), redirect_stderr(text), pytest.MonkeyPatch.context() as patch:
                patch.setenv(DATA_FOLDER_VARIABLE, str(data))
                main(words_of(command))
            return printed_lines(text.getvalue(), data)

        yield run


@cache
def parser() -> Parser:
    """Return the parser of all commands: each adds its options at its first use."""
    return command_parser()


def complaint(command: str) -> str | None:
    """Return what the parser of dlbricks says against a command."""
    words = words_of(command)
    # In place of a command, a model of the library or the path of one opens the workbench.
    if words[:1] and words[0].endswith((".onnx", "vgg16")):
        return None
    try:
        parser().parse_args(with_hyphens_joined(words))
    except UsageError as error:
        return str(error)
    except SystemExit:
        # Help, a version or a schema was printed.
        return None
    return None


@pytest.mark.parametrize("page", PRESENT, ids=name_of)
def test_commands_of_a_page_are_commands_of_this_version(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {command: complaint(command) for command in written_commands(page.read_text(encoding="utf-8"))}
    assert {command: said for command, said in found.items() if said is not None} == {}


@pytest.mark.parametrize("page", PRESENT, ids=name_of)
def test_sentences_name_commands_and_options_of_this_version(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Values may stand for others (`--threads N`), and arguments may be missing.
    unknown = ("unrecognized arguments", "invalid choice")
    found = {command: complaint(command) or "" for command in mentioned_commands(page.read_text(encoding="utf-8"))}
    assert {command: said for command, said in found.items() if any(it in said for it in unknown)} == {}


@pytest.mark.parametrize("page", WITH_OUTPUT, ids=name_of)
def test_a_page_shows_what_its_commands_print(page: Path, printed: Callable[[str], tuple[str, ...]]) -> None:
    known = recorded(page)
    for command in shown_commands(page.read_text(encoding="utf-8")):
        if not command.output:
            continue
        if command.text in known:
            stray = stray_line(command.output, known[command.text], equal)
        else:
            assert command.text.startswith("dlbricks "), f"record `{command.text}`: python -m docs.sessions {page.stem}"
            stray = stray_line(command.output, printed(command.text), alike)
        assert stray is None, f"`{command.text}` does not print this there: {stray}"


@pytest.mark.soak
@pytest.mark.parametrize("file", [it for it in SESSION_FILES if it.stem not in NEEDS_HOSTS], ids=lambda it: it.stem)
def test_a_session_prints_lines_like_those_recorded(file: Path, tmp_path: Path) -> None:
    commands = session(file.read_text(encoding="utf-8"))
    for before, now in zip(commands, execute(commands, tmp_path), strict=True):
        lasting = [line for line in before.output if not is_about_this_run(line)]
        missing = [line for line in lasting if not any(resembles(line, it) for it in now.output)]
        assert len(missing) <= (1 - SHARE_ON_ANY_HOST) * len(lasting), (before.text, missing, now.output)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("the key is suites/07439613be8bee9126e2ac8acf4b59f3.key.json", f"the key is suites/{'f' * 31}0.key.json"),
        (
            "evaluation nightly (nightly.toml, sha256 09d20221349d)",
            "evaluation nightly (nightly.toml, sha256 77d202213)",
        ),
        ("100├────────~~~~~────────┼──", "   ├──~~───────~~~──────┼──────"),
        ("240 bricks: 0 known, 240 to measure; about 89 s", "181 bricks: 0 known, 181 to measure; about 3 min"),
        ("MatMul 384  /encoder/layer.0/output/MatMul  2.153 ms", "MatMul 1536  /encoder/dense/MatMul  15.74 ms  7 %"),
    ],
)
def test_lines_of_another_host_resemble_these(here: str, there: str) -> None:
    assert form(here) == form(there) or resembles(here, there)
    assert not resembles(here, "nothing of the kind") and not is_about_this_run(here)
    assert is_about_this_run("0 of 240 bricks, 41 s left; Mul 1x3x256x256 and 239 others")


def test_a_session_belongs_to_a_page_that_shows_its_commands() -> None:
    pages = {it.stem: it.read_text(encoding="utf-8") for it in PAGES}
    for file in SESSIONS.glob("*.txt"):
        assert file.stem in pages, file
        shown = {it.text for it in shown_commands(pages[file.stem])}
        assert shown & {it.text for it in session(file.read_text(encoding="utf-8"))}, file


# The rest shows that the tests above find what is wrong.

PAGE = """
Text with `dlbricks no-command` in it.

    dlbricks estimate vgg16 --workers 4    # for four workers

```console
$ dlbricks models --json | head -n 1
$ dlbricks estimate vgg16 \\
    --quick      # a comment
vgg16, 20 ms

...
done ...
```
"""


def test_commands_are_read_from_code_with_their_output() -> None:
    assert shown_commands(PAGE) == (
        Command("dlbricks models --json | head -n 1"),
        Command("dlbricks estimate vgg16      --quick", ("vgg16, 20 ms", "...", "done ...")),
    )
    assert [words_of(it) for it in written_commands(PAGE)] == [
        ["estimate", "vgg16", "--workers", "4"],
        ["models", "--json"],
        ["estimate", "vgg16", "--quick"],
    ]


def test_commands_in_sentences_are_read_too() -> None:
    assert list(mentioned_commands(PAGE)) == ["dlbricks no-command"]
    assert "invalid choice" in (complaint("dlbricks no-command") or "")
    assert "unrecognized" in (complaint("dlbricks estimate vgg16 --guess") or "")


@pytest.mark.parametrize(
    ("shown", "stray"),
    [
        (["a", "b", "c"], None),
        (["a", "...", "c"], None),
        (["...", "b", "..."], None),
        (["a", "..."], None),
        (["..."], None),
        (["b", "c"], "b"),
        (["a", "c"], "c"),
        (["...", "c", "b"], "c"),
        (["...", "b"], "b"),
        (["a", "...", "d", "..."], "d"),
        (["a", "b"], "... is missing after 'b': 'c' was printed there"),
    ],
)
def test_lines_that_were_not_printed_are_found(shown: list[str], stray: str | None) -> None:
    assert stray_line(shown, ["a", "b", "c"], equal) == stray


def test_lines_are_alike_if_only_their_figures_differ_and_only_a_little() -> None:
    line = "vgg16 on amd-epyc-2c-11afb085  20.00 ms  ██▌  +5.0 %  2 threads, measured 3 h ago"
    assert alike(line, "vgg16 on intel-xeon-4c-78e6b1a6  20.40 ms  ██▎  +5.1 %  2 threads, measured 12 d ago")
    assert not alike(line, line.replace("20.00", "25.00"))
    assert not alike(line, line.replace("2 threads", "3 threads"))
    assert not alike(line, line.replace("vgg16", "vgg19"))
    assert not alike(line, line.replace("measured", "predicted"))
    assert not alike("20.00 ms", "20.00 s")
    assert alike("vgg16 on ...", line)
    assert not alike("vgg19 on ...", line)


def test_the_session_with_hosts_has_the_words_of_the_doctor() -> None:
    told = " ".join((SESSIONS / "many-hosts.txt").read_text(encoding="utf-8").split())
    found = [it for it in SOURCES if f"! {it.name}" in told]
    assert found and all(it.cure in told for it in found)
