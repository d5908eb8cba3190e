"""The command line as a whole: errors, options with numbers, the config file, and interrupts."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.__main__ import main as whole_program
from dlbricks_tui.cli import jobs
from dlbricks_tui.cli.main import Command, command_parser, main
from dlbricks_tui.cli.output import narrate, show_parts, write_json
from dlbricks_tui.cli.parser import Handler, Parser, Typed, path_in
from dlbricks_tui.config.config import Sources
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from tests.cli.people import Command as Answers
from tests.models.onnx_models import saved, small


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


def test_the_version_is_printed_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"dlbricks {__version__}\n"


@pytest.mark.parametrize("command", ["results", "suite"])
def test_a_command_that_needs_an_action_prints_its_help_without_one(command: str, dlbricks: Answers) -> None:
    status, out, err = dlbricks(command)
    assert (status, err) == (0, "") and out.startswith(f"usage: dlbricks {command} ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["work", "--times", "x"], "argument --times: invalid int value: 'x' (see `dlbricks work --help`)"),
        (["work", "--tim", "2"], "unrecognized arguments: --tim 2 (see `dlbricks work --help`)"),
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
    def look(args: argparse.Namespace) -> int:
        return 7 if args.session.data.path == tmp_path / "a" else 0

    assert main([argument.format(tmp_path) for argument in arguments], [work(look)]) == 7


def test_commands_in_the_output_repeat_the_options_before_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, command = str(tmp_path / "it's"), "dlbricks runs list"

    def tell(args: argparse.Namespace) -> int:
        write_json({"command": command})
        show_parts([Sentence(f"see `{command}`")])
        narrate(f"or: {command}", f"`{command}` there", "`dlbricks runs --help`", f"/opt/{command}")
        raise UserError(f"`{command}` helps")

    whole = shlex.join(["dlbricks", "--data-dir", folder, "--set", "run.threads=2", "runs", "list"])
    about = Command("runs", "", work(tell).register)
    assert main(["--set", "run.threads=2", "runs", "--data-dir", folder], [about]) == 2
    found = capsys.readouterr()
    document, sentence = found.out.splitlines()
    assert json.loads(document) == {"command": whole}
    assert sentence == f"see `{whole}`"
    elsewhere = [f"`{command}` there", "`dlbricks runs --help`", f"/opt/{command}"]
    assert found.err.splitlines() == [f"or: {whole}", *elsewhere, f"dlbricks: error: `{whole}` helps"]
    assert main(["runs"], [about]) == 2
    assert whole not in "".join(capsys.readouterr())


@pytest.mark.parametrize("words", [["config", "--json", "list"], ["config", "list", "--json"], ["config", "--json"]])
def test_json_may_be_asked_for_before_and_behind_an_action(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), *words]) == 0
    assert "settings" in json.loads(capsys.readouterr().out)


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
        return 7

    arguments = [*(word.format(tmp_path) for word in before), str(tmp_path / "net.onnx")]
    assert main(arguments, [work(done)], workbench) == 7
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


def test_a_wrong_option_behind_the_name_of_a_model_is_told_in_any_data_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data-dir", str(tmp_path / "there")]
    assert main([*data, "models", "add", str(saved(tmp_path, small(), "mine"))]) == 0
    capsys.readouterr()
    assert main([*data, "mine", "--nonsense"]) == 2
    assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


def test_a_complaint_about_an_option_names_commands_on_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), "tree", "vgg16", "--runtime", ""]) == 2
    assert f"`dlbricks --data-dir {tmp_path} runtimes` lists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["qwen2.5-0.5b"], "qwen2.5-0.5b is a language model: `dlbricks llm qwen2.5-0.5b` tells its speed"),
        (["wrk", "--times", "2"], "no command 'wrk': did you mean `dlbricks work`?"),
        (["squeezenet"], "no command or model 'squeezenet': did you mean 'squeezenet1.1' or 'squeezenet1.0'?"),
        (
            ["help"],
            "no command or model 'help': give the path of a *-symbol.json or *.onnx file, table1:ID (1 to 50), or a "
            "name that `dlbricks models` lists; `dlbricks --help` lists the commands",
        ),
        (["table1:51"], "no Table 1 model '51': the numbers go from 1 to 50"),
        (["table1"], "table1 stands for 50 models; name one, such as table1:14"),
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
    for name, said in (("a net", f"`dlbricks tree '{tmp_path}/a net.onnx'`"), ("net", "net.onnx: no such file")):
        assert main([f"{tmp_path}/{name}.onnx"], [work(done)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line


NO_NUMBERS = [*["1e18", "nan", "inf", "-inf", "-1", "1e400", "-0.0", "x", "1_0x", "1,", "٣"], "", "9" * 30, "9" * 5000]


def is_numeric(action: argparse.Action) -> bool:
    return isinstance(action.type, Typed) and action.type.kind.is_number


def options(parser: Parser, name: str = "dlbricks") -> Iterator[tuple[str, argparse.Action]]:
    """Yield the options of a parser and of its commands, with the command line up to each."""
    parser.complete()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, found in action.choices.items():
                yield from options(found, f"{name} {command}")
        else:
            yield f"{name} {'/'.join(action.option_strings) or action.dest}", action


def test_numbers_beyond_the_limits_are_refused() -> None:
    found = dict(options(command_parser()))
    assert len([it for it in found.values() if is_numeric(it)]) > 40
    assert [name for name, it in found.items() if it.type in (int, float)] == []
    for name, action in found.items():
        if is_numeric(action) or action.type is jobs.budget:
            for text in NO_NUMBERS:
                if action.type is jobs.budget and text == "inf":
                    continue
                with pytest.raises(argparse.ArgumentTypeError, match="give a"):
                    assert callable(action.type) and action.type(text) is None, (name, text)


def test_no_option_takes_an_empty_path_for_the_working_folder() -> None:
    found = [it for _, it in options(command_parser()) if it.type in (Path, path_in)]
    assert len(found) > 20
    for action in found:
        with pytest.raises(argparse.ArgumentTypeError, match="the path is empty"):
            assert callable(action.type) and action.type("")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The config file of the data folder."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "config.toml"


def test_locate_prints_only_the_path_also_of_an_invalid_file(file: Path, dlbricks: Answers) -> None:
    status, out, told = dlbricks("config", "locate")
    assert (status, out) == (0, f"{file}\n") and "there is no such file yet" in told
    file.write_text("[")
    status, out, _ = dlbricks("config", "locate", "--json")
    found = {"config": str(file), "exists": True, "themes": str(file.parent / "themes")}
    assert (status, json.loads(out)) == (0, found)


def test_validate_prints_a_line_per_problem_or_reports_a_valid_file(file: Path, dlbricks: Answers) -> None:
    assert "so all settings have their defaults" in dlbricks("config", "validate")[2]
    file.write_text("[run]\nthreads = 2\n")
    status, _, told = dlbricks("config", "validate")
    assert status == 0 and "is valid" in told
    file.write_text("[run]\nthreads = 0\nmemory = 1\n")
    status, out, told = dlbricks("config", "validate")
    first, second = told.splitlines()
    assert (status, out) == (2, "")
    assert first == f"dlbricks: error: {file}:2: run.threads = 0: it has to be a whole number from 1 to 1,024"
    assert second.startswith(f"dlbricks: error: {file}:3: there is no setting run.memory; ")


def test_validate_names_a_theme_that_does_not_exist(file: Path, dlbricks: Answers) -> None:
    file.write_text('[workbench]\ntheme = "mine"\n')
    status, _, told = dlbricks("config", "validate")
    complaint = f"{file}:2: no theme is called mine; there are colour-blind,"
    assert status == 2 and told.startswith(f"dlbricks: error: {complaint}")
    status, out, told = dlbricks("config", "list")
    assert status == 0 and '"mine"' in out and told.startswith(complaint)
    theme = file.parent / "themes" / "mine.toml"
    theme.parent.mkdir()
    theme.touch()
    assert dlbricks("config", "validate")[0] == 0


def test_validate_names_a_runtime_that_does_not_exist(file: Path, dlbricks: Answers) -> None:
    file.write_text('[run]\nruntime = "default-onnx"\n')
    assert dlbricks("config", "validate")[0] == 0
    status, _, told = dlbricks("--set", "run.runtime=nope", "config", "validate")
    assert status == 2 and told.startswith("dlbricks: error: --set: no runtime is called nope; there are ")


def test_validate_names_keys_and_themes_that_the_workbench_refuses(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('[workbench]\ntheme = "mine"\n[keys]\nmodels.sort = "q"\n')
    theme = file.parent / "themes" / "mine.toml"
    theme.parent.mkdir()
    theme.write_text("dark = 1\n")
    monkeypatch.setattr("sys.argv", ["dlbricks", "--data-dir", str(file.parent), "config", "validate", "--json"])
    assert whole_program() == 2
    document = json.loads(capsys.readouterr().out)
    assert not document["valid"]
    of_theme, of_keys = document["problems"]
    assert of_theme.startswith(f"theme {theme}: it needs ") and of_keys.startswith(f"{file}:4: keys.models.sort: q ")


def test_an_invalid_config_file_stops_every_command_with_one_line(file: Path, dlbricks: Answers) -> None:
    file.write_text("[workbench]\nthem = 'x'\n")
    told = f"dlbricks: error: {file}:2: there is no setting workbench.them; did you mean workbench.theme?\n"
    assert dlbricks("models") == (2, "", told)
    assert dlbricks()[1].startswith("usage: dlbricks"), "help works with an invalid file"


def test_the_list_names_the_origin_of_each_setting(
    file: Path, dlbricks: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[run]\nthreads = 2\n[keys]\ntree.expand = 'x'\n")
    monkeypatch.setenv("DLBRICKS_WORKBENCH_MOUSE", "off")
    document = json.loads(dlbricks("--set", "cutting.cut=overlap", "config", "--json")[1])
    assert {name: document["settings"][name] for name in ("run.threads", "workbench.mouse", "cutting.cut")} == {
        "run.threads": {"value": 2, "from": f"{file}:2"},
        "workbench.mouse": {"value": "off", "from": "DLBRICKS_WORKBENCH_MOUSE"},
        "cutting.cut": {"value": "overlap", "from": "--set"},
    }
    assert document["settings"]["cutting.order"] == {"value": "branch", "from": "default"}
    assert document["keys"] == {"tree.expand": {"keys": ["x"], "from": f"{file}:4"}}
    assert 'workbench.theme       "dark"' in dlbricks("config")[1]


def test_a_command_line_option_overrides_all_settings(file: Path, dlbricks: Answers) -> None:
    file.write_text("[cutting]\ngranularity = 2\n")
    asked, given = ["tree", "vgg16", "--json"], ["--set", "cutting.granularity=3"]
    for arguments, granularity in ((asked, 2), ([*given, *asked], 3), ([*given, *asked, "-g", "4"], 4)):
        assert json.loads(dlbricks(*arguments)[1])["granularity"] == granularity


# The program with a finder of modules that sends SIGINT when a module is about to be imported.
INTERRUPTED = """
import os, signal, sys
wanted = sys.argv.pop(1)
sys.argv[0] = "dlbricks"

class Interrupting:
    def find_spec(self, name, *_):
        if name == wanted:
            sys.meta_path.remove(self)
            {act}

sys.meta_path.insert(0, Interrupting())
from dlbricks_tui.__main__ import main
sys.exit(main())
"""
SEND = "os.kill(os.getpid(), signal.SIGINT)"
# Extension modules raise an ImportError of their own when one of their imports is interrupted.
REPLACE = f"""
            try:
                {SEND}
            except KeyboardInterrupt:
                raise ImportError("numpy cannot be imported") from None
"""
# Python prints the exceptions of finalizers, and goes on.
IGNORE = f"""
            class Finalized:
                def __del__(self):
                    {SEND}
            Finalized()
"""


def interrupted(act: str, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line that is interrupted while it imports a module."""
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(act=act), module, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("act", "module", "command"),
    [
        (SEND, "dlbricks_tui.cli", "models"),
        (SEND, "argparse", "models"),
        (REPLACE, "dlbricks_tui.cli.models", "models"),
        (IGNORE, "dlbricks_tui.models.library", "models"),
        (SEND, "dlbricks_tui.cli.estimate", "estimate squeezenet1.1"),
        (REPLACE, "numpy", "estimate squeezenet1.1"),
        (IGNORE, "dlbricks_tui.cli.progress", "run squeezenet1.1 --runtime onnxruntime"),
        *(
            pytest.param(act, module, "estimate squeezenet1.1", marks=pytest.mark.soak)
            for act in (REPLACE, IGNORE)
            for module in ("dlbricks_tui.cli", "argparse", "dlbricks_tui.cli.estimate")
        ),
    ],
)
def test_an_interrupted_import_is_one_line_and_status_130(act: str, module: str, command: str, tmp_path: Path) -> None:
    ended = interrupted(act, module, *command.split(), "--data-dir", str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "dlbricks: interrupted\n")


def test_an_interrupt_after_the_command_is_no_traceback_either(tmp_path: Path) -> None:
    program = "import sys, dlbricks_tui.__main__ as door, os, signal, atexit\n"
    program += f"atexit.register(lambda: {SEND})\nsys.argv = ['dlbricks', '--version']\nsys.exit(door.main())"
    script = tmp_path / "dlbricks"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (130, "dlbricks: interrupted\n")
