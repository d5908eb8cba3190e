"""Files of evaluations: reading, writing, and files that are none; each fault gets one line with its place."""

import gzip
import hashlib
import os
import random
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.evaluations.evaluation import (
    TABLES,
    EvaluatedModel,
    EvaluatedRuntime,
    Evaluation,
    EvaluationError,
    Measuring,
    Requirements,
)
from dlbricks_tui.evaluations.faults import MOST_LEVELS, Place, excess, offsets_of
from dlbricks_tui.evaluations.file import MOST_BYTES, evaluation_of, read_evaluation, text_of, write_evaluation
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.runtime.variant import Precision, several
from dlbricks_tui.settings.setting import plain
from tests.documents.snapshots import check
from tests.evaluations.example import FULL, MINIMAL

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


def read(text: str) -> Evaluation:
    return evaluation_of(text, "", "file")


EVALUATION = read(FULL)


def spelled(value: Any) -> Any:
    """Return a value of a file or of a dataclass as texts: a single value as a list of one."""
    if isinstance(value, Mapping):
        return {name: spelled(it) for name, it in value.items()}
    if isinstance(value, list | tuple):
        is_facts = bool(value) and isinstance(value[0], tuple)
        return spelled(dict(value)) if is_facts else [text for it in value for text in spelled(it)]
    return [str(plain(value)).removesuffix(".0")]


def test_a_file_with_every_key_is_read(tmp_path: Path) -> None:
    file = tmp_path / "full.toml"
    file.write_text(FULL)
    assert read_evaluation(file) == replace(EVALUATION, sha256=hashlib.sha256(FULL.encode()).hexdigest())
    document = tomllib.loads(FULL)
    assert (EVALUATION.name, EVALUATION.about) == (document["name"], document["about"])
    for name, table in TABLES.items():
        sections, stated = getattr(EVALUATION, table.field), document[name]
        for section, keys in zip(*((sections, stated) if table.together else ([sections], [stated])), strict=True):
            assert {key: spelled(getattr(section, key)) for key in keys} == spelled(keys)
            default = {it.name: it.default for it in fields(table.kind) if it.name not in keys}
            assert all(getattr(section, key) == it for key, it in default.items() if it is not MISSING)


def test_a_minimal_file_leaves_all_else_to_the_program(tmp_path: Path) -> None:
    file = tmp_path / "minimal.toml"
    file.write_text(MINIMAL)
    models, runtimes = (EvaluatedModel(name="squeezenet1.1"),), (EvaluatedRuntime(framework="onnxruntime"),)
    assert read(MINIMAL) == Evaluation(name="smallest", models=models, runtimes=runtimes, measuring=Measuring())
    assert read_evaluation(file).label == f"smallest@{hashlib.sha256(MINIMAL.encode()).hexdigest()[:12]}"


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode())
    assert replace(read_evaluation(file), sha256="") == EVALUATION
    message = fault_of(b"\xef\xbb\xbf" + FULL.replace("[measure]", "[mesure]").replace("\n", "\r\n").encode(), tmp_path)
    assert message.startswith(", line 30, column 2: there is no key mesure")


def test_values_are_listed_once() -> None:
    (runtime,) = read(f"{MINIMAL}threads = [2, 1, 2]\nprecision = ['f32', 'f32']\nbatch = 2.0\n").runtimes
    assert (runtime.threads, runtime.batch, runtime.precision) == ((2, 1), (2,), (Precision.F32,))
    assert all(type(number) is int for number in (*several(runtime.threads), *several(runtime.batch)))


def test_an_evaluation_measures_something_and_tells_models_of_one_name_apart(tmp_path: Path) -> None:
    text = f"{MINIMAL}[measure]\nend_to_end = false\nbricks = false\n"
    words = "bricks and end_to_end are both false, and there is no [[scenario]]: set one to true"
    assert fault_of(text.encode(), tmp_path) == f", line 11, column 1: {words}"
    assert len(read(f'{text}[[scenario]]\nkind = "single"\n').scenarios) == 1
    text = MINIMAL.replace('"squeezenet1.1"\n', f'"x"\nsha256 = "{"a" * 64}"\n[[model]]\nname = "x"\n')
    assert "another [[model]] has this name" in fault_of(text.encode(), tmp_path)
    assert len(read(text.replace('name = "x"\n\n', f'name = "x"\nsha256 = "{"b" * 64}"\n\n')).models) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ", line 1, column 1: the file lacks format: add format = 1"),
        (b"\xff\xfe" + FULL.encode("utf-16-le"), ", line 1, column 1: this is UTF-16 text; save the file as UTF-8"),
        (b'format = 1\nname = "caf\xe9"\n', ", line 2, column 12: this is not UTF-8 text; save the file as UTF-8"),
        ("format = 1\nabout = 'é' # ".encode() + b"\xff", ", line 2, column 15: this is not UTF-8 text"),
        (gzip.compress(FULL.encode()), ", line 1, column 2: this is not UTF-8 text"),
        (bytes(4096), ", line 1, column 1: this is not TOML"),
        (b"\x7fELF\x02\x01\x01\x00", ", line 1, column 1: this is not TOML"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    assert fault_of(content, tmp_path).startswith(words)


TOO_MANY = f"{MINIMAL}x = [{'1,' * 200_000}]"


def huge_files() -> dict[str, tuple[str, str]]:
    """Return huge and deeply nested files by name, each with the beginning of its message."""
    many = 2_000
    shortest = MINIMAL.removesuffix("\n")
    return {
        "lists in lists": (f"x = {'[' * many}", ", line 1, column 21: the values nest more than 16 levels deep"),
        "tables in tables": (f"x = {'{a=' * many}", ", line 1, column 53: the values nest more than 16 levels deep"),
        "a dotted key": (f"{'a.' * many}a = 1", ", line 1, column 34: the values nest more than 16 levels deep"),
        "digits": (f"x = 1{'0' * many}", ", line 1, column 5: a number or key has more than 200"),
        "a long key": (f"{'k' * many} = 1", ", line 1, column 1: "),
        "a long text": (shortest.replace("smallest", "n" * 10 * many), ", line 2, column 1: name = "),
        "a text that is not closed": (f'format = 1\nname = "{"n" * 10 * many}', ", line 2, column "),
        "escapes": (f'format = 1\nname = "{2 * many * (2 * chr(92))}', ", line 2, column "),
        "models": (MINIMAL + "[[model]]\nname = 'x'\n" * many, ", line 4, column 3: model has "),
        "numbers": (f"{MINIMAL}threads = [{'1,' * many}]", ", line 9, column 1: threads has "),
        "keys": ("".join(f"k{number} = 1\n" for number in range(many)), ", line 1, column 1: "),
        "variables": (f"{MINIMAL}variables = {{{','.join(f'K{it}=1' for it in range(many))}}}", ", line 9, column 1: "),
        "comments": ("#\n" * 10 * many, ", line 1, column 1: the file lacks format"),
    }


@pytest.mark.parametrize("name", huge_files())
def test_a_huge_or_deeply_nested_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, words = huge_files()[name]
    assert fault_of(text.encode(), tmp_path).startswith(words)


def test_a_file_beyond_the_limits_is_not_parsed(tmp_path: Path) -> None:
    for text, held in ((" " * (MOST_BYTES + 1), "has more than 4 MiB"), (TOO_MANY, "holds more than 200,000 values")):
        assert fault_of(text.encode(), tmp_path) == f" {held}; leave samples out, or split it"


def test_a_long_list_of_samples_is_read_and_a_fault_in_it_found(tmp_path: Path) -> None:
    head, _, rest = FULL.partition("samples_ms = [")
    many = f"{head}samples_ms = [{'1.25, 2, ' * 200}\n"
    assert len(read(f"{many}{rest}").results[0].samples_ms) == 403
    message = fault_of(f"{many} 3, -1.5, {rest}".encode(), tmp_path)
    assert message.startswith(", line 77, column 5: samples_ms has the item -1.5: it has to be a number above 0")
    message = fault_of(f"{head}samples_ms = [{'1, ' * 100_000}{rest}".encode(), tmp_path)
    assert message.startswith(", line 76, column 1: samples_ms has 100,003 items: the limit is 100,000")


def test_no_change_of_single_characters_gives_anything_but_one_line(tmp_path: Path) -> None:
    chance = random.Random(0)
    file = tmp_path / "evaluation.toml"
    refused = 0
    for _ in range(60):
        place = chance.randrange(len(FULL))
        typed = chance.choice("[]{}\"'=.,#\n\r\x00\x1b\u202e0a ")
        file.write_bytes((FULL[:place] + typed + FULL[place + chance.randint(0, 3) :]).encode())
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
            (tmp_path / "a\x1b[2J\nb.toml", r"a\\x1b\[2J\\nb.toml does not exist"),
        ):
            with pytest.raises(EvaluationError, match=words) as raised:
                read_evaluation(path)
            assert str(raised.value).isprintable()


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
    for name, words in ((".", "cannot be written: "), ("a\0b", "is not a path")):
        with pytest.raises(EvaluationError, match=words):
            write_evaluation(EVALUATION, tmp_path / name)


def test_the_sample_evaluation_and_the_examples_of_the_documentation_are_read() -> None:
    found = read_evaluation(SAMPLE_MODELS / "evaluation.toml")
    assert len(found.runtimes) == 2
    for model in found.models:
        assert model.sha256 == hashlib.sha256((SAMPLE_MODELS / model.path).read_bytes()).hexdigest()
    page = (ROOT / "docs" / "reference" / "evaluation-file.md").read_text(encoding="utf-8")
    examples = [block.partition("```")[0] for block in page.split("```toml\n")[1:]]
    assert examples and all(read(it).models for it in examples)


class Mutation(NamedTuple):
    """A change of one place in the example, the position of the fault, and the words of the message."""

    old: str
    new: str
    position: tuple[int, int]
    words: str


UNKNOWN_KEYS = [
    Mutation('about = "Two', 'abuot = "Two', (3, 1), "there is no key abuot in the file; did you mean about?"),
    Mutation("[system]", "[host]", (51, 2), "the keys of the file are format, name, about, model, runtime, measure"),
    Mutation("[result.host]", "[result.hosts]", (89, 9), "no key hosts in [[result]]; did you mean host?"),
    Mutation('optimisation = "extended"', 'o."p"."\\u0071" = 1', (22, 1), "no key o in [[runtime]]"),
    Mutation("cpu = ", f"{'c' * 150} = ", (54, 1), f"there is no key {'c' * 57}... in [system]"),
]
MISSING_KEYS = [
    Mutation("format = 1\n", "", (1, 1), "the file lacks format: add format = 1"),
    Mutation('name = "nightly"\n', "", (1, 1), "the file lacks name: add it, text in one line that is not empty"),
    Mutation('framework = "openvino"\n', "", (25, 3), '[[runtime]] lacks framework: add it, one of "mxnet", "onnxru'),
    Mutation('when = "2026-11-26T08:30:00.123456+00:00"\n', "", (62, 3), "[[result]] lacks when: add it, text in quot"),
]
WRONG_VALUES = [
    Mutation("format = 1", "format = -1", (1, 1), "format = -1: it has to be 1"),
    Mutation("format = 1", "format = 2", (1, 1), "format = 2 was written by a newer dlbricks, and this one reads form"),
    Mutation('name = "nightly"', 'name = "a\\nb"', (2, 1), 'name = "a\\nb": it has to be text in one line'),
    Mutation('name = "nightly"', f'name = "{"n" * 201}"', (2, 1), "it has 201 characters, the limit is 200"),
    Mutation(f'"{"0123456789abcdef" * 4}"\npath', '"abc"\npath', (8, 1), 'sha256 = "abc": it has to be 64 hexadecimal'),
    Mutation("[1, 512]", "[1, 0]", (10, 20), "x has the item 0: it has to be a whole number from 1 to 2,147,483,647"),
    Mutation("sr = 16000", "sr = []", (11, 12), "sr has no items: give at least one"),
    Mutation("[1, 512]", f"[{'1, ' * 33}]", (10, 12), "x has 33 items: the limit is 32"),
    Mutation("sr = 16000", 'sr = "16000"', (11, 12), 'sr = "16000": it has to be a number, or a list of such values'),
    Mutation("sr = 16000", "sr = inf", (11, 12), "sr = inf: it has to be a finite number of at most 20 digits"),
    Mutation("sr = 16000", f"sr = 1{'0' * 99}", (11, 12), "it has to be a finite number of at most 20 digits"),
    Mutation('"onnxruntime"', '"onnx"', (17, 1), 'one of "mxnet", "onnxruntime", "openvino"; did you mean "onnxruntim'),
    Mutation('">=1.20,<2"', "1.20", (18, 1), "version = 1.2: it has to be text in quotes"),
    Mutation("threads = [1, 2]", "threads = 0", (19, 1), "threads = 0: it has to be a whole number from 1 to 1,024"),
    Mutation("threads = [1, 2]", 'threads = [1,\n  2, "all"]', (20, 6), 'threads has the item "all": it has to be'),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', "{ ORT_INTER_OP_THREADS = 2 }", (23, 15), "it has to be text in one li"),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', '{ LD_PRELOAD = "x.so" }', (23, 15), "LD_PRELOAD is not allowed here:"),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', '{ OMP_PLACES = "/etc/x" }', (23, 15), "text in one line without slash"),
    Mutation('level = "written"', 'level = "writen"', (31, 1), 'it has to be one of "written", "fused"; did you mean'),
    Mutation("bricks = true", 'bricks = "yes"', (36, 1), 'bricks = "yes": it has to be true or false'),
    Mutation("target_interval = 0.02", "target_interval = 2", (38, 1), "it has to be a number between 0 and 1"),
    Mutation("bound_ms = 50", "bound_ms = 0", (43, 1), "it has to be a number above 0, at most 1,000,000"),
    Mutation('cores = ">=4"', 'cores = "4 or more"', (52, 1), 'cores = "4 or more": it has to be a number, or a limit'),
    Mutation('["avx2", "avx512_core"]', '["avx2", "all"]', (56, 25), 'instructions has the item "all": it has to be o'),
    Mutation("    1.2, 1.25,", "    1.2, -1.25,", (77, 10), "samples_ms has the item -1.25: it has to be a number abo"),
]
WRONG_TABLES = [
    Mutation("format = 1\n", "format = 1\nmodel = []\n", (7, 8), "this is not TOML (cannot mutate immutable namespace"),
    Mutation("[system]", "[[system]]", (51, 3), "there is only one: write [system] with one bracket"),
    Mutation("[[result]]", "[result]", (62, 2), "there may be several: write [[result]] with two brackets"),
    Mutation("[result.host]", "[[result.host]]", (89, 10), "there is only one: write [host] with one bracket"),
]
TIMED = '[[result]]\nmodel = "yolov8n"\nframework = "openvino"\nversion = "2"\nwhen = "2026-11-{day}T08:30:00Z"\n'
BROKEN_RULES = [
    Mutation('"yolov8n"', '"silero_vad"', (14, 1), 'name = "silero_vad": another [[model]] has this name; choose anot'),
    Mutation('">=1.20,<2"', '">1.20 <2 or so"', (18, 1), "it has to be a version constraint, such as"),
    Mutation("x = [1, 512]", '"" = [1, 512]', (10, 12), "an input of inputs has no name"),
    Mutation("target_interval = 0.02", "target_interval = 0.02\nfixed_runs = 9", (39, 1), "exclude each other: remove"),
    Mutation("bound_ms = 50\n", "", (40, 3), "a server needs bound_ms, the bound of its latency, or rate: add one"),
    Mutation('kind = "single"', 'kind = "single"\nrate = 9', (50, 1), "kind single has no rate: remove it, or choose"),
    Mutation('kind = "single"', 'kind = "single"\nbatch = 2', (50, 1), "a single stream has one request at a time: re"),
    Mutation('model = "silero_vad"', 'model = "alexnet"', (63, 1), 'no [[model]] has this name; they have "silero_vad'),
    Mutation('"onnxruntime"\nversion = "1.', '"mxnet"\nversion = "1.', (64, 1), "no [[runtime]] has this framework"),
    Mutation('"2026-11-26T08:30:00.123456+00:00"', '"yesterday"', (72, 1), "it has to be a time with its time zone"),
    Mutation("low_ms = 1.2\nhigh", "low_ms = 1.9\nhigh", (74, 1), "low_ms = 1.9 is above high_ms: correct one"),
    Mutation("high_ms = 1.3\nsam", "sam", (74, 1), "low_ms without high_ms: give low_ms, measured_ms and high_ms, or"),
    Mutation("estimate_ms = 1.27\n", "", (80, 1), "estimate_low_ms without estimate_ms: give"),
    Mutation(
        '[[runtime]]\nframework = "openvino"',
        '[[runtime]]\nframework = "openvino"\ninstructions = ["avx2", "all"]\nthreads = 2\n\n'
        '[[runtime]]\nframework = "openvino"',
        (30, 3),
        "another [[runtime]] is the same: remove one of them",
    ),
    Mutation(
        "\n[[result]]",
        "\n" + TIMED.format(day=26) + "\n" + TIMED.format(day=27) + "\n[[result]]",
        (68, 3),
        "another [[result]] has the same model, runtime and variant: remove one of them",
    ),
]
NOT_TOML = [
    Mutation('name = "nightly"', "name = nightly", (2, 8), "this is not TOML (invalid value); write text in quotes, a"),
    Mutation('name = "nightly"', 'name: "nightly"', (2, 5), "write key = value"),
    Mutation('name = "nightly"', 'name = "nightly', (2, 16), "this is not TOML ("),
    Mutation("threads = 2\n", "threads = 2\nthreads = 2\n", (29, 12), "this key is there already: keep one of them"),
    Mutation(
        '[[runtime]]\nframework = "openvino"',
        '[runtime]\nframework = "openvino"',
        (25, 9),
        "cannot declare runtime twice); keep one of them, or write [[name]] where",
    ),
    Mutation("[system]", "[measure]", (51, 9), "cannot declare measure twice); keep one of them"),
    Mutation("    1.3,\n]", "    1.3,\n", (80, 1), "this is not TOML ("),
    Mutation("cpu = ", "\x00cpu = ", (54, 1), "this is not TOML ("),
    Mutation('"EPYC"', '"EP\x1bYC"', (54, 10), "'\\x1b'"),
    Mutation("quiet = true", "quiet = True", (60, 9), "write text in quotes"),
    Mutation("sr = 16000", "sr = " + "[" * 40 + "]" * 40, (11, 32), "nest more than 16 levels deep"),
    Mutation("sr = 16000", "sr = 1" + "0" * 250, (11, 17), "a number or key has more than 200 characters: shorten it"),
    Mutation("[system]", f"[{'a.' * 40}a]", (51, 35), "nest more than 16 levels deep"),
]
ALL = [*UNKNOWN_KEYS, *MISSING_KEYS, *WRONG_VALUES, *WRONG_TABLES, *BROKEN_RULES, *NOT_TOML]


@pytest.mark.parametrize("mutation", ALL, ids=[f"{each.position[0]}-{each.new[:24]!r}" for each in ALL])
def test_a_fault_is_one_line_with_its_place(mutation: Mutation, tmp_path: Path) -> None:
    assert mutation.old in FULL
    message = fault_of(FULL.replace(mutation.old, mutation.new, 1).encode(), tmp_path)
    line, column = mutation.position
    assert message.startswith(f", line {line}, column {column}: ")
    assert mutation.words in message


LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
LATENCIES = st.floats(1e-6, 1e9)
# A TOML file has no word for nothing.
FACTS = st.dictionaries(TEXTS, st.booleans() | st.integers(-(2**40), 2**40) | LATENCIES | TEXTS, max_size=3).map(
    lambda facts: tuple(facts.items())
)


@given(LINES, TEXTS, st.text("a0 =,:{}\"'#"), FACTS, st.lists(LATENCIES, min_size=3, max_size=25).map(sorted))
def test_what_is_written_is_read_again(
    line: str, text: str, value: str, facts: tuple[tuple[str, Any], ...], latencies_ms: list[float]
) -> None:
    low_ms, measured_ms, high_ms, *samples_ms = latencies_ms
    (result,) = EVALUATION.results
    timed = replace(result, low_ms=low_ms, measured_ms=measured_ms, high_ms=high_ms, samples_ms=tuple(samples_ms))
    told = replace(timed, model=line, version=line, packages=facts, host=facts, variables={text: text})
    model = EvaluatedModel(name=line, path=line, inputs={line: (1, 2)}, values={line: (low_ms, 7)})
    changed = replace(
        EVALUATION,
        name=line,
        about=text,
        models=(model, *EVALUATION.models[1:]),
        runtimes=(replace(EVALUATION.runtimes[0], variables={"ORT_X1": value}), *EVALUATION.runtimes[1:]),
        system=replace(EVALUATION.system, cpu=line, instance_type=line, governor=line),
        results=(told,),
    )
    for evaluation in (changed, replace(changed, results=(), scenarios=(), system=Requirements())):
        assert read(text_of(evaluation)) == evaluation


def test_the_text_states_what_the_program_would_choose_and_results_come_last_without_facts_that_have_no_value() -> None:
    small = Evaluation(
        name="small", models=(EvaluatedModel(name="alexnet"),), runtimes=(EvaluatedRuntime(framework="mxnet"),)
    )
    assert read(text_of(small)) == small
    (result,) = EVALUATION.results
    told = replace(result, samples_ms=(1.25,) * 21, host=(("turbo", None), ("kernel", "6.1")))
    check("evaluation-file", {"small": text_of(small), "all": text_of(replace(EVALUATION, results=(told,)))})


NOTATIONS = (Path(__file__).parent / "notations.toml").read_text(encoding="utf-8")


def places_of(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of a document."""
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places_of(item, (*place, key))


@pytest.mark.parametrize("text", [NOTATIONS, FULL, "", "# only a comment", "a=1"])
def test_every_key_and_item_of_a_document_has_a_position(text: str) -> None:
    assert set(offsets_of(text)) == set(places_of(tomllib.loads(text)))


def test_a_position_is_that_of_the_key_or_the_item() -> None:
    offsets = offsets_of(NOTATIONS)
    for place, offset in offsets.items():
        key = place[-1]
        if isinstance(key, str):
            rest = NOTATIONS[offset:].lstrip("\"'")
            assert rest.startswith(key.replace("A", "\\u0041"))
    found = {
        ("list", 1, 1): "3]",
        ("list", 2, "b]", 0): "5]",
        ("list", 3): '"x,]"',
        ("list", 4): "1979",
        ("table", "key", "y", "z"): "z = [ ]",
        ("array", 0, "more", 0): "more]]",
        ("array", 1): "array]]\nkey = 2",
        ("array", 1, "inner", "key"): "key = 2\n",
    }
    for place, beginning in found.items():
        assert NOTATIONS[offsets[place] :].startswith(beginning)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=4)
VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=6) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=2), max_size=3), max_size=4))
def test_positions_agree_with_the_parser_in_any_document(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    assert set(offsets_of(text)) == set(places_of(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("a = " + "[" * (MOST_LEVELS + 1), 4 + MOST_LEVELS),
        ("a." * (MOST_LEVELS + 1), 2 * MOST_LEVELS + 1),
        ('"a" . ' * (MOST_LEVELS + 1), 6 * MOST_LEVELS + 4),
        ("a = 1" + "0" * 200, 4),
        ("a = " + "[" * MOST_LEVELS, None),
        ("a = [" + "1.5, " * 100, None),
        (f'a = "{"[" * 100}" # {"{" * 100}', None),
        (f"a = '''{'.' * 100}'''", None),
        ('a = "not closed ' + "[" * 100, None),
    ],
)
def test_deep_nesting_is_found_without_parsing(text: str, offset: int | None) -> None:
    found = excess(text)
    assert (None if found is None else found[0]) == offset
