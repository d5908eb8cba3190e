import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.cli.main import Command, main
from dlbricks_tui.cli.parser import Handler, Parser
from dlbricks_tui.config.reading import Sources
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from tests.cli.people import Command as Answers
from tests.cli.people import one_line


def work(handler: Handler) -> Command:
    """A command `work` with this handler."""

    def register(parser: Parser) -> None:
        parser.add_argument("--times", type=int)
        parser.set_defaults(handler=handler)

    return Command("work", "do what the test wants", register)


def done(args: argparse.Namespace) -> int:
    return 0


def failing(error: BaseException) -> Command:
    def fail(args: argparse.Namespace) -> int:
        raise error

    return work(fail)


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: dlbricks ")


def test_help_lists_each_command_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"], [work(done)])
    assert end.value.code == 0
    assert ["work", "do", "what", "the", "test", "wants"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]


def test_the_version_is_printed_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"dlbricks {__version__}\n"


@pytest.mark.parametrize("status", [0, 1])
def test_a_command_sets_the_exit_status(status: int) -> None:
    assert main(["work"], [work(lambda args: status)]) == status


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["work", "--times", "x"], "argument --times: invalid int value: 'x' (see `dlbricks work --help`)"),
        (["work", "--tim", "2"], "unrecognized arguments: --tim 2 (see `dlbricks --help`)"),
        (["--data-dir"], "argument --data-dir: expected one argument (see `dlbricks --help`)"),
    ],
)
def test_an_invalid_command_line_is_one_line_and_status_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, [work(done)]) == 2
    assert capsys.readouterr() == ("", f"dlbricks: error: {complaint}\n")


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (UserError("vgg.json: no such file; see `tree`"), 2, "dlbricks: error: vgg.json: no such file; see `tree`\n"),
        (UserError("a\nb\x1b[2J\udc80: no file"), 2, "dlbricks: error: a\\nb\\x1b[2J\\udc80: no file\n"),
        (OSError(36, "File name too long", "xxx.onnx"), 2, "dlbricks: error: xxx.onnx: File name too long\n"),
        (KeyboardInterrupt(), 130, "dlbricks: interrupted\n"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    error: BaseException, status: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["work", "--data-dir", str(tmp_path)], [failing(error)]) == status
    assert capsys.readouterr() == ("", told)


def test_a_missing_data_folder_is_not_created(tmp_path: Path) -> None:
    assert main(["work", "--data-dir", str(tmp_path / "new")], [work(done)]) == 0
    assert not (tmp_path / "new").exists()


def test_a_file_that_cannot_be_used_is_one_line_and_no_fault(dlbricks: Answers) -> None:
    assert one_line(dlbricks("models", "add", 300 * "x")) == f"dlbricks: error: {300 * 'x'}: File name too long\n"


def test_an_internal_error_is_one_line_that_names_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["--data-dir", str(tmp_path), "work"], [failing(KeyError("shape"))]) == 1
    log = tmp_path / "log" / "errors.log"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("dlbricks: error: unexpected KeyError: 'shape'") and lines[0].endswith(str(log))
    assert log.read_text().count("Traceback (most recent call last)") == 2


def test_an_internal_error_without_a_writable_data_folder_is_logged_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("not a folder")
    assert main(["work", "--data-dir", str(tmp_path)], [failing(KeyError("shape"))]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    log = Path(line.rpartition("the details are in ")[2])
    assert "KeyError: 'shape'" in log.read_text()
    log.unlink()


@pytest.mark.parametrize(
    "arguments", [["--data-dir", "{}/a", "work"], ["work", "--data-dir", "{}/a"], ["work", "--data-dir={}/a"]]
)
def test_the_data_folder_may_be_named_before_and_after_the_command(arguments: list[str], tmp_path: Path) -> None:
    seen: list[Path] = []

    def look(args: argparse.Namespace) -> int:
        seen.append(args.data.path)
        return 0

    assert main([argument.format(tmp_path) for argument in arguments], [work(look)]) == 0
    assert seen == [tmp_path / "a"]


@pytest.mark.parametrize(
    "folder",
    ["{}/file", "{}/file/below", "{}/link", "{}/link/below", "{}/" + 300 * "long", "~nobody-of-this-name/data"],
)
def test_an_unusable_data_folder_is_bad_input(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert main(["work", "--data-dir", folder.format(tmp_path)], [work(done)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dlbricks: error: ") and line.endswith("--data-dir or DLBRICKS_DATA_DIR")


def test_an_empty_data_folder_is_never_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for variable, arguments in (("", []), (str(tmp_path / "named"), ["--data-dir", ""])):
        monkeypatch.setenv("DLBRICKS_DATA_DIR", variable)
        assert main([*arguments, "results", "delete", "--all", "--yes"]) == 2
        assert "is empty: name a folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def run_dlbricks(*arguments: str, stdout: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dlbricks_tui", *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True
    )


def test_a_reader_that_closes_the_pipe_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = run_dlbricks("--version", stdout=writing)
    os.close(writing)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no full device")
@pytest.mark.parametrize("arguments", [["--version"], ["config", "--json"], ["results", "list", "--csv"]], ids=" ".join)
def test_a_full_disk_is_reported_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        run = run_dlbricks(*arguments, stdout=full.fileno())
    assert run.returncode == 2
    assert run.stderr == (
        "dlbricks: error: standard output cannot be written: No space left on device; the output is cut off\n"
    )


def test_a_closed_standard_output_is_no_failure() -> None:
    run = subprocess.run(
        ["sh", "-c", '"$0" -m dlbricks_tui --version >&-', sys.executable], stderr=subprocess.PIPE, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("before", [[], ["--data-dir", "{}/data"], ["--set", "workbench.theme=light"]])
def test_the_path_of_a_model_in_place_of_a_command_opens_the_workbench_on_it(before: list[str], tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("")
    opened: list[ModelSource | Path | None] = []

    def workbench(data: DataFolder, sources: Sources, model: ModelSource | Path | None) -> int:
        opened.append(model)
        return 0

    arguments = [*(word.format(tmp_path) for word in before), str(tmp_path / "net.onnx")]
    assert main(arguments, [work(done)], workbench) == 0
    assert opened == [tmp_path / "net.onnx"]


@pytest.mark.parametrize(
    ("word", "name"),
    [("squeezenet1.1", "squeezenet1.1"), ("table1:14", "ResNet-50 Trained on ImageNet Competition Data")],
)
def test_the_name_of_a_model_in_place_of_a_command_opens_the_workbench_on_it(
    word: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def workbench(data: DataFolder, sources: Sources, model: ModelSource | Path | None) -> int:
        assert isinstance(model, ModelSource) and data.path == tmp_path
        opened.append(model.name)
        return 0

    assert main(["--data-dir", str(tmp_path), word], [work(done)], workbench) == 0
    assert main([word], [work(done)._replace(name=word)], workbench) == 0, "a command keeps its name"
    assert opened == [name]
    assert main([word], [work(done)]) == 2
    assert f"`dlbricks tree {word}`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["wrk", "--times", "2"], "no command 'wrk': did you mean `dlbricks work`?"),
        (["squeezenet"], "no command or model 'squeezenet': did you mean 'squeezenet1.1' or 'squeezenet1.0'?"),
        (["table1:51"], "no Table 1 model '51': the numbers go from 1 to 50"),
        (["table1"], "table1 names 50 models: name one of them, such as table1:14"),
    ],
)
def test_a_word_that_names_no_command_and_no_model_is_one_line_with_what_is_close(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, [work(done)], lambda *_: 0) == 2
    assert capsys.readouterr() == ("", f"dlbricks: error: {complaint}\n")


def test_a_path_in_place_of_a_command_is_bad_input_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a net.onnx").write_text("")
    assert main([f"{tmp_path}/a net.onnx"], [work(done)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"`dlbricks tree '{tmp_path}/a net.onnx'`" in line
    assert main([f"{tmp_path}/net.onnx"], [work(done)]) == 2
    assert f"{tmp_path}/net.onnx: no such file" in capsys.readouterr().err
