"""Files of evaluations: reading, writing, and files that are none."""

import gzip
import hashlib
import os
import random
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Evaluation, EvaluationError, Measuring
from dlbricks_tui.evaluations.file import MOST_BYTES, read_evaluation, write_evaluation
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.runtime.variant import Precision, several
from tests.evaluations.example import EVALUATION, FULL, MINIMAL

ROOT = Path(__file__).parents[2]


def fault_of(content: bytes, folder: Path) -> str:
    """Return the one line about a file."""
    file = folder / "evaluation.toml"
    file.write_bytes(content)
    with pytest.raises(EvaluationError) as raised:
        read_evaluation(file)
    message = str(raised.value)
    assert message.isprintable()
    assert len(message) < 600
    return message.removeprefix(str(file))


def test_a_file_with_every_key_is_read(tmp_path: Path) -> None:
    file = tmp_path / "full.toml"
    file.write_text(FULL)
    assert read_evaluation(file) == replace(EVALUATION, sha256=hashlib.sha256(FULL.encode()).hexdigest())


def test_a_minimal_file_leaves_all_else_to_the_program(tmp_path: Path) -> None:
    file = tmp_path / "minimal.toml"
    file.write_text(MINIMAL)
    found = read_evaluation(file)
    assert replace(found, sha256="") == Evaluation(
        name="smallest",
        models=(EvaluatedModel(name="squeezenet1.1"),),
        runtimes=(EvaluatedRuntime(framework="onnxruntime"),),
        measuring=Measuring(),
    )
    assert found.label == f"smallest@{hashlib.sha256(MINIMAL.encode()).hexdigest()[:12]}"


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode())
    assert replace(read_evaluation(file), sha256="") == EVALUATION
    message = fault_of(b"\xef\xbb\xbf" + FULL.replace("[measure]", "[mesure]").replace("\n", "\r\n").encode(), tmp_path)
    assert message.startswith(", line 30, column 2: there is no key mesure")


def test_values_are_listed_once(tmp_path: Path) -> None:
    file = tmp_path / "twice.toml"
    file.write_text(f"{MINIMAL}threads = [2, 1, 2]\nprecision = ['f32', 'f32']\nbatch = 2.0\n")
    (runtime,) = read_evaluation(file).runtimes
    assert (runtime.threads, runtime.batch, runtime.precision) == ((2, 1), (2,), (Precision.F32,))
    assert all(type(number) is int for number in (*several(runtime.threads), *several(runtime.batch)))


def test_the_first_of_several_faults_in_the_file_is_reported(tmp_path: Path) -> None:
    text = FULL.replace("sr = 16000", "sr = true").replace("threads = [1, 2]", "threads = 0").replace("[system]", "[x]")
    assert fault_of(text.encode(), tmp_path).startswith(", line 11, column 12: sr = true")


def test_an_evaluation_measures_something(tmp_path: Path) -> None:
    text = f"{MINIMAL}[measure]\nend_to_end = false\nbricks = false\n"
    message = fault_of(text.encode(), tmp_path)
    assert message == (
        ", line 11, column 1: bricks and end_to_end are both false, and there is no [[scenario]]: set one to true"
    )
    file = tmp_path / "scenario.toml"
    file.write_text(f'{text}[[scenario]]\nkind = "single"\n')
    assert len(read_evaluation(file).scenarios) == 1


def test_models_of_one_name_are_told_apart_by_their_content(tmp_path: Path) -> None:
    text = MINIMAL.replace('"squeezenet1.1"\n', f'"x"\nsha256 = "{"a" * 64}"\n[[model]]\nname = "x"\n')
    assert "another [[model]] has this name" in fault_of(text.encode(), tmp_path)
    file = tmp_path / "two.toml"
    file.write_text(text.replace('name = "x"\n\n', f'name = "x"\nsha256 = "{"b" * 64}"\n\n'))
    assert len(read_evaluation(file).models) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ", line 1, column 1: the file lacks format: add format = 1"),
        (b"\n\n# nothing\n", ", line 1, column 1: the file lacks format"),
        (b"\xff\xfe" + FULL.encode("utf-16-le"), ", line 1, column 1: this is UTF-16 text; save the file as UTF-8"),
        (b"\xfe\xff" + FULL.encode("utf-16-be"), ", line 1, column 1: this is UTF-16 text; save the file as UTF-8"),
        (b'format = 1\nname = "caf\xe9"\n', ", line 2, column 12: this is not UTF-8 text; save the file as UTF-8"),
        ("format = 1\nabout = 'é' # ".encode() + b"\xff", ", line 2, column 15: this is not UTF-8 text"),
        (gzip.compress(FULL.encode()), ", line 1, column 2: this is not UTF-8 text"),
        (bytes(4096), ", line 1, column 1: this is not TOML"),
        (b'{"format": 1}', ", line 1, column 1: this is not TOML"),
        (b"\x7fELF\x02\x01\x01\x00", ", line 1, column 1: this is not TOML"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    assert fault_of(content, tmp_path).startswith(words)


def huge_files(scale: int) -> dict[str, tuple[str, str]]:
    """Return huge and deeply nested files by name, each with the beginning of its message."""
    many = 2_000 * scale
    shortest = MINIMAL.removesuffix("\n")
    return {
        "lists in lists": (f"x = {'[' * many}", ", line 1, column 21: the values nest more than 16 levels deep"),
        "tables in tables": (f"x = {'{a=' * many}", ", line 1, column 53: the values nest more than 16 levels deep"),
        "a dotted key": (f"{'a.' * many}a = 1", ", line 1, column 34: the values nest more than 16 levels deep"),
        "a dotted header": (f"[{'a.' * many}a]", ", line 1, column 35: the values nest more than 16 levels deep"),
        "digits": (f"x = 1{'0' * many}", ", line 1, column 5: a number or key has more than 200"),
        "hexadecimal digits": (f"x = 0x{'f' * many}", ", line 1, column 5: "),
        "a long key": (f"{'k' * many} = 1", ", line 1, column 1: "),
        "a long text": (shortest.replace("smallest", "n" * 10 * many), ", line 2, column 1: name = "),
        "a text that is not closed": (f'format = 1\nname = "{"n" * 10 * many}', ", line 2, column "),
        "escapes": (f'format = 1\nname = "{2 * many * (2 * chr(92))}', ", line 2, column "),
        "models": (MINIMAL + "[[model]]\nname = 'x'\n" * many, ", line 4, column 3: model has "),
        "headers": (MINIMAL + "[[model]]\n" * many, ", line 4, column 3: model has "),
        "numbers": (f"{MINIMAL}threads = [{'1,' * many}]", ", line 9, column 1: threads has "),
        "true": (f"{MINIMAL}threads = [{'true,' * many}]", ", line 9, column 1: threads has "),
        "keys": ("".join(f"k{number} = 1\n" for number in range(many)), ", line 1, column 1: "),
        "variables": (f"{MINIMAL}variables = {{{','.join(f'K{it}=1' for it in range(many))}}}", ", line 9, column 1: "),
        "comments": ("#\n" * 10 * many, ", line 1, column 1: the file lacks format"),
    }


@pytest.mark.parametrize("name", huge_files(1))
def test_a_huge_or_deeply_nested_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, words = huge_files(1)[name]
    assert fault_of(text.encode(), tmp_path).startswith(words)


@pytest.mark.soak
@pytest.mark.parametrize("name", huge_files(1))
def test_a_file_near_the_limits_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, words = huge_files(30)[name]
    assert fault_of(text.encode(), tmp_path).startswith(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" " * (MOST_BYTES + 1), " has more than 4 MiB; leave samples out, or split it"),
        (f"{MINIMAL}x = [{'1,' * 200_000}]", " holds more than 200,000 values; leave samples out, or split it"),
    ],
    ids=["bytes", "values"],
)
def test_a_file_beyond_the_limits_is_not_parsed(text: str, words: str, tmp_path: Path) -> None:
    assert fault_of(text.encode(), tmp_path) == words


def test_a_long_list_of_samples_is_read_and_a_fault_in_it_found(tmp_path: Path) -> None:
    file = tmp_path / "samples.toml"
    head, _, rest = FULL.partition("samples_ms = [")
    file.write_text(f"{head}samples_ms = [{'1.25, 2, ' * 200}\n{rest}")
    assert len(read_evaluation(file).results[0].samples_ms) == 403
    message = fault_of(f"{head}samples_ms = [{'1.25, 2, ' * 200}\n 3, -1.5, {rest}".encode(), tmp_path)
    assert message.startswith(", line 77, column 5: samples_ms has the item -1.5: it has to be a number above 0")
    message = fault_of(f"{head}samples_ms = [{'1, ' * 100_000}{rest}".encode(), tmp_path)
    assert message.startswith(", line 76, column 1: samples_ms has 100,003 items: the limit is 100,000")


def test_no_change_of_single_characters_gives_anything_but_one_line(tmp_path: Path) -> None:
    chance = random.Random(0)
    file = tmp_path / "evaluation.toml"
    refused = 0
    for _ in range(60):
        place = chance.randrange(len(FULL))
        changed = (
            FULL[:place] + chance.choice("[]{}\"'=.,#\n\r\x00\x1b\u202e0a ") + FULL[place + chance.randint(0, 3) :]
        )
        file.write_bytes(changed.encode())
        try:
            read_evaluation(file)
        except EvaluationError as error:
            refused += 1
            message = str(error)
            assert message.isprintable()
            assert ", line " in message and ", column " in message
    assert refused > 40


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path, words in (
            (tmp_path, "is a directory; give the path of an evaluation"),
            (pipe, "is not a regular file"),
            (tmp_path / "socket", "is not a regular file"),
            (Path("/dev/zero"), "is not a regular file"),
            (tmp_path / "missing.toml", "does not exist; `dlbricks evaluate --from RUN -o FILE` writes one"),
            (tmp_path / ("n" * 300), "cannot be read: File name too long"),
            (Path("nul\0byte"), "is not a path"),
        ):
            with pytest.raises(EvaluationError, match=words) as raised:
                read_evaluation(path)
            assert str(raised.value).isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "closed.toml"
    file.write_text(MINIMAL)
    file.chmod(0)
    with pytest.raises(EvaluationError, match="cannot be read: Permission denied"):
        read_evaluation(file)


def test_control_codes_of_a_path_are_spelled_out(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError) as raised:
        read_evaluation(tmp_path / "a\x1b[2J\nb.toml")
    assert "a\\x1b[2J\\nb.toml does not exist" in str(raised.value)


def test_a_file_that_is_written_is_read_as_the_same_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "new" / "written.toml"
    written = write_evaluation(EVALUATION, file)
    assert written == read_evaluation(file)
    assert replace(written, sha256="") == EVALUATION


def test_an_evaluation_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "refused.toml"
    tuned = EvaluatedRuntime(framework="mxnet", variables={"MXNET_HOME": "/home/me"})
    with pytest.raises(EvaluationError, match=r"refused.toml is not written, .*MXNET_HOME is not allowed here"):
        write_evaluation(replace(EVALUATION, runtimes=(tuned,), results=()), file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "words"), [(".", "cannot be written: "), ("a\0b", "is not a path")])
def test_a_file_that_cannot_be_written_is_named(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=words):
        write_evaluation(EVALUATION, tmp_path / name)


def test_the_sample_evaluation_names_the_files_of_the_library() -> None:
    found = read_evaluation(SAMPLE_MODELS / "evaluation.toml")
    assert len(found.runtimes) == 2
    for model in found.models:
        content = (SAMPLE_MODELS / model.path).read_bytes()
        assert model.sha256 == hashlib.sha256(content).hexdigest()


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "evaluation-file.md"
    blocks = page.read_text(encoding="utf-8").split("```toml\n")[1:]
    examples = [block.partition("```")[0] for block in blocks]
    assert examples
    for number, text in enumerate(examples):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        assert read_evaluation(file).models
