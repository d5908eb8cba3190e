"""Mutated evaluations: each gets one line with the place of the fault, and what to do about it."""

from pathlib import Path
from typing import NamedTuple

import pytest

from dlbricks_tui.evaluations.evaluation import EvaluationError
from dlbricks_tui.evaluations.file import read_evaluation
from tests.evaluations.example import FULL

AT_THE_END = (94, 1)


class Mutation(NamedTuple):
    """A change of one place in the example, the position of the fault, and the words of the message."""

    old: str
    new: str
    position: tuple[int, int]
    words: str


UNKNOWN_KEYS = [
    Mutation('about = "Two', 'abuot = "Two', (3, 1), "there is no key abuot in the file; did you mean about?"),
    Mutation("[measure]", "[measuring]", (30, 2), "no key measuring in the file; did you mean measure?"),
    Mutation("[system]", "[host]", (51, 2), "the keys of the file are format, name, about, model, runtime, measure"),
    Mutation('[[scenario]]\nkind = "single"', '[[scenarios]]\nkind = "single"', (48, 3), "did you mean scenario?"),
    Mutation("threads = [1, 2]", "thread = [1, 2]", (19, 1), "no key thread in [[runtime]]; did you mean threads?"),
    Mutation("threads = 2\n\n[measure]", "Threads = 2\n\n[measure]", (28, 1), "did you mean threads?"),
    Mutation("path = ", "  url = ", (9, 3), "no key url in [[model]]; the keys of [[model]] are name, sha256, path"),
    Mutation("granularity", "granulartiy", (32, 1), "in [measure]; did you mean granularity?"),
    Mutation("bound_ms", "bound-ms", (43, 1), "no key bound-ms in [[scenario]]; did you mean bound_ms?"),
    Mutation("governor", "goveror", (57, 1), "in [system]; did you mean governor?"),
    Mutation("measured_ms", "mean_ms", (73, 1), "no key mean_ms in [[result]]"),
    Mutation("[result.host]", "[result.hosts]", (89, 9), "no key hosts in [[result]]; did you mean host?"),
    Mutation('optimisation = "extended"', 'o."p"."\\u0071" = 1', (22, 1), "no key o in [[runtime]]"),
    Mutation("cpu = ", '"cpu\\u001b[2J" = ', (54, 1), "no key cpu\\x1b[2J in [system]; did you mean cpu?"),
    Mutation("cpu = ", f"{'c' * 150} = ", (54, 1), f"there is no key {'c' * 57}... in [system]"),
]
MISSING_KEYS = [
    Mutation("format = 1\n", "", (1, 1), "the file lacks format: add format = 1"),
    Mutation('name = "nightly"\n', "", (1, 1), "the file lacks name: add it, text in one line that is not empty"),
    Mutation('name = "yolov8n"\n', "", (13, 3), "[[model]] lacks name: add it"),
    Mutation('framework = "openvino"\n', "", (25, 3), '[[runtime]] lacks framework: add it, one of "mxnet", "onnxru'),
    Mutation('kind = "single"\n', "", (48, 3), '[[scenario]] lacks kind: add it, one of "single", "multi", "serv'),
    Mutation('model = "silero_vad"\n', "", (62, 3), "[[result]] lacks model: add it"),
    Mutation(
        'when = "2026-11-26T08:30:00.123456+00:00"\n', "", (62, 3), "[[result]] lacks when: add it, text in quotes"
    ),
]
WRONG_VALUES = [
    Mutation("format = 1", "format = 0", (1, 1), "format = 0: it has to be 1"),
    Mutation("format = 1", "format = -1", (1, 1), "format = -1: it has to be 1"),
    Mutation("format = 1", 'format = "1"', (1, 1), 'format = "1": it has to be 1'),
    Mutation("format = 1", "format = true", (1, 1), "format = true: it has to be 1"),
    Mutation(
        "format = 1", "format = 2", (1, 1), "format = 2 was written by a newer dlbricks, and this one reads format 1"
    ),
    Mutation('name = "nightly"', "name = 7", (2, 1), "name = 7: it has to be text in one line that is not empty"),
    Mutation('name = "nightly"', 'name = ""', (2, 1), 'name = "": it has to be text in one line'),
    Mutation('name = "nightly"', 'name = "a\\nb"', (2, 1), 'name = "a\\nb": it has to be text in one line'),
    Mutation('name = "nightly"', 'name = "nightly\\n"', (2, 1), "it has to be text in one line"),
    Mutation('name = "nightly"', f'name = "{"n" * 201}"', (2, 1), "it has 201 characters, the limit is 200"),
    Mutation('name = "nightly"', "name = 2026-11-27", (2, 1), "name = 2026-11-27: it has to be text"),
    Mutation(f'"{"0123456789abcdef" * 4}"\npath', '"abc"\npath', (8, 1), 'sha256 = "abc": it has to be 64 hexadecimal'),
    Mutation("[1, 512]", "[1, 0]", (10, 20), "x has the item 0: it has to be a whole number from 1 to 2,147,483,647"),
    Mutation("[1, 512]", '"1,512"', (10, 12), 'x = "1,512": it has to be a list, each item a whole number'),
    Mutation("sr = 16000", "sr = []", (11, 12), "sr has no items: give at least one"),
    Mutation("[1, 512]", f"[{'1, ' * 33}]", (10, 12), "x has 33 items: the limit is 32"),
    Mutation("[2, 1, 128]", "[2, [1], 128]", (10, 43), "state in has the item [1]: it has to be a whole number"),
    Mutation("sr = 16000", 'sr = "16000"', (11, 12), 'sr = "16000": it has to be a number, or a list of such values'),
    Mutation("sr = 16000", "sr = inf", (11, 12), "sr = inf: it has to be a finite number of at most 20 digits"),
    Mutation("sr = 16000", "sr = [1, nan]", (11, 21), "sr has the item nan: it has to be a finite number"),
    Mutation("sr = 16000", f"sr = 1{'0' * 99}", (11, 12), "it has to be a finite number of at most 20 digits"),
    Mutation("sr = 16000", "sr = {}", (11, 12), "sr = a table: it has to be a number, or a list of such values"),
    Mutation(
        '"onnxruntime"', '"onnx"', (17, 1), 'one of "mxnet", "onnxruntime", "openvino"; did you mean "onnxruntime"?'
    ),
    Mutation('">=1.20,<2"', "1.20", (18, 1), "version = 1.2: it has to be text in quotes"),
    Mutation("threads = [1, 2]", "threads = 0", (19, 1), "threads = 0: it has to be a whole number from 1 to 1,024"),
    Mutation(
        "threads = [1, 2]", "threads = 1.5", (19, 1), "threads = 1.5: it has to be a whole number from 1 to 1,024"
    ),
    Mutation("threads = [1, 2]", "threads = true", (19, 1), "threads = true: it has to be a whole number"),
    Mutation("threads = [1, 2]", "threads = [1, 2000]", (19, 15), "threads has the item 2000: it has to be a whole"),
    Mutation("threads = [1, 2]", 'threads = [1,\n  2, "all"]', (20, 6), 'threads has the item "all": it has to be'),
    Mutation(
        "batch = [1, 8]", "batch = -8", (20, 1), "batch = -8: it has to be a whole number from 1 to 2,147,483,647"
    ),
    Mutation('["f32", "int8"]', '["fp32"]', (21, 14), 'precision has the item "fp32": it has to be one of "f32"'),
    Mutation('["f32", "int8"]', '"FP32"', (21, 1), 'or a list of such values; did you mean "f32"?'),
    Mutation(
        '"extended"\nvariables = { ORT',
        '"max"\nvariables = { ORT',
        (22, 1),
        'one of "all", "extended", "basic", "none"',
    ),
    Mutation(
        '{ ORT_INTER_OP_THREADS = "2" }', "{ ORT_INTER_OP_THREADS = 2 }", (23, 15), "it has to be text in one line"
    ),
    Mutation(
        '{ ORT_INTER_OP_THREADS = "2" }', '{ LD_PRELOAD = "x.so" }', (23, 15), "LD_PRELOAD is not allowed here: it has"
    ),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', '{ PATH = "." }', (23, 15), "to be a variable that tunes a framework"),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', '{ MXNET_LIBRARY_PATH = "x" }', (23, 15), "and names no file"),
    Mutation('{ ORT_INTER_OP_THREADS = "2" }', '{ OMP_TOOL_LIBRARIES = "x" }', (23, 15), "and names no file"),
    Mutation(
        '{ ORT_INTER_OP_THREADS = "2" }', '{ OMP_PLACES = "/etc/x" }', (23, 15), "text in one line without slashes"
    ),
    Mutation(
        'level = "written"',
        'level = "writen"',
        (31, 1),
        'it has to be one of "written", "fused"; did you mean "written"?',
    ),
    Mutation(
        "granularity = 2", "granularity = 0", (32, 1), "granularity = 0: it has to be a whole number from 1 to 999"
    ),
    Mutation("bricks = true", 'bricks = "yes"', (36, 1), 'bricks = "yes": it has to be true or false'),
    Mutation("target_interval = 0.02", "target_interval = 2", (38, 1), "it has to be a number between 0 and 1"),
    Mutation("percentile = 99.9", "percentile = 100", (42, 1), "it has to be a number between 0 and 100"),
    Mutation("bound_ms = 50", "bound_ms = 0", (43, 1), "it has to be a number above 0, at most 1,000,000"),
    Mutation("bound_ms = 50", "bound_ms = 1e999", (43, 1), "bound_ms = inf: it has to be a finite number"),
    Mutation(
        'cores = ">=4"',
        'cores = "4 or more"',
        (52, 1),
        'cores = "4 or more": it has to be a number, or a limit such as ">=4"',
    ),
    Mutation('cores = ">=4"', "cores = [4]", (52, 1), 'it has to be a number, or a limit such as ">=4"'),
    Mutation(
        '["avx2", "avx512_core"]', '["avx2", "all"]', (56, 25), 'instructions has the item "all": it has to be one of'
    ),
    Mutation("turbo = false", 'turbo = "off"', (58, 1), 'turbo = "off": it has to be true or false'),
    Mutation(
        "    1.2, 1.25,", "    1.2, -1.25,", (77, 10), "samples_ms has the item -1.25: it has to be a number above 0"
    ),
    Mutation("    1.3,\n]", '    "1.3",\n]', (78, 5), 'samples_ms has the item "1.3"'),
    Mutation("cores = 4", "cores = [4]", (91, 1), "cores = [4]: it has to be text, a number, or true or false"),
]
WRONG_TABLES = [
    Mutation(
        "format = 1\n",
        "format = 1\nmodel = []\n",
        (7, 8),
        "this is not TOML (cannot mutate immutable namespace model); keep one",
    ),
    Mutation("[system]", "[[system]]", (51, 3), "there is only one: write [system] with one bracket"),
    Mutation("[measure]", "[[measure]]", (30, 3), "there is only one: write [measure] with one bracket"),
    Mutation("[[result]]", "[result]", (62, 2), "there may be several: write [[result]] with two brackets"),
    Mutation("[result.host]", "[[result.host]]", (89, 10), "there is only one: write [host] with one bracket"),
]
TIMED = '[[result]]\nmodel = "yolov8n"\nframework = "openvino"\nversion = "2"\nwhen = "2026-11-{day}T08:30:00Z"\n'
BROKEN_RULES = [
    Mutation(
        '"yolov8n"', '"silero_vad"', (14, 1), 'name = "silero_vad": another [[model]] has this name; choose another'
    ),
    Mutation('">=1.20,<2"', '">1.20 <2 or so"', (18, 1), "it has to be a version constraint, such as"),
    Mutation(
        '">=1.20,<2"', '"1.20"', (18, 1), 'version = "1.20": it has to be a version constraint, such as ">=1.20,<2"'
    ),
    Mutation("x = [1, 512]", '"" = [1, 512]', (10, 12), "an input of inputs has no name"),
    Mutation(
        "target_interval = 0.02", "target_interval = 0.02\nfixed_runs = 9", (39, 1), "exclude each other: remove one"
    ),
    Mutation("bound_ms = 50\n", "", (40, 3), "a server needs bound_ms, the bound of its latency, or rate: add one"),
    Mutation(
        'kind = "single"',
        'kind = "single"\nrate = 9',
        (50, 1),
        'kind single has no rate: remove it, or choose kind = "ser',
    ),
    Mutation(
        'kind = "single"',
        'kind = "single"\nbatch = 2',
        (50, 1),
        "a single stream has one request at a time: remove batch",
    ),
    Mutation(
        'model = "silero_vad"', 'model = "alexnet"', (63, 1), 'no [[model]] has this name; they have "silero_vad", "yol'
    ),
    Mutation('"onnxruntime"\nversion = "1.', '"mxnet"\nversion = "1.', (64, 1), "no [[runtime]] has this framework"),
    Mutation('"2026-11-26T08:30:00.123456+00:00"', '"yesterday"', (72, 1), "it has to be a time with its time zone"),
    Mutation("123456+00:00", "123456", (72, 1), "it has to be a time with its time zone, such as"),
    Mutation("low_ms = 1.2\nhigh", "low_ms = 1.9\nhigh", (74, 1), "low_ms = 1.9 is above high_ms: correct one"),
    Mutation(
        "high_ms = 1.3\nsam", "sam", (74, 1), "low_ms without high_ms: give low_ms, measured_ms and high_ms, or none"
    ),
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
    Mutation(
        'name = "nightly"',
        "name = nightly",
        (2, 8),
        "this is not TOML (invalid value); write text in quotes, as in name =",
    ),
    Mutation('name = "nightly"', 'name: "nightly"', (2, 5), "write key = value"),
    Mutation('name = "nightly"', 'name = "nightly', (2, 16), "this is not TOML ("),
    Mutation("format = 1", "format = 1 2", (1, 12), "this is not TOML ("),
    Mutation("[measure]", "[measure", (30, 9), "this is not TOML ("),
    Mutation("threads = 2\n", "threads = 2\nthreads = 2\n", (29, 12), "this key is there already: keep one of them"),
    Mutation(
        '[[runtime]]\nframework = "openvino"',
        '[runtime]\nframework = "openvino"',
        (25, 9),
        "cannot declare runtime twice); keep one of them, or write [[name]] where",
    ),
    Mutation("[system]", "[measure]", (51, 9), "cannot declare measure twice); keep one of them"),
    Mutation("    1.3,\n]", "    1.3,\n", (80, 1), "this is not TOML ("),
    Mutation("memory_gib = 15.5\n", "memory_gib =", (93, 13), "this is not TOML ("),
    Mutation("cpu = ", "\x00cpu = ", (54, 1), "this is not TOML ("),
    Mutation('"EPYC"', '"EP\x1bYC"', (54, 10), "'\\x1b'"),
    Mutation("quiet = true", "quiet = True", (60, 9), "write text in quotes"),
    Mutation("quiet = true", "quiet true", (60, 7), "write key = value"),
    Mutation("bound_ms = 50", "bound_ms = 05", (43, 13), "this is not TOML ("),
    Mutation("sr = 16000", "sr = " + "[" * 40 + "]" * 40, (11, 32), "nest more than 16 levels deep"),
    Mutation("sr = 16000", "sr = 1" + "0" * 250, (11, 17), "a number or key has more than 200 characters: shorten it"),
    Mutation("[system]", f"[{'a.' * 40}a]", (51, 35), "nest more than 16 levels deep"),
]
ALL = [*UNKNOWN_KEYS, *MISSING_KEYS, *WRONG_VALUES, *WRONG_TABLES, *BROKEN_RULES, *NOT_TOML]


def fault_of(text: str, folder: Path) -> str:
    """Return the message about a file, which is one line."""
    file = folder / "evaluation.toml"
    file.write_bytes(text.encode())
    with pytest.raises(EvaluationError) as raised:
        read_evaluation(file)
    message = str(raised.value)
    assert message.isprintable()
    assert len(message) < 500
    assert message.startswith(str(file))
    return message.removeprefix(str(file))


@pytest.mark.parametrize("mutation", ALL, ids=[f"{each.position[0]}-{each.new[:24]!r}" for each in ALL])
def test_a_fault_is_one_line_with_its_place(mutation: Mutation, tmp_path: Path) -> None:
    assert mutation.old in FULL
    message = fault_of(FULL.replace(mutation.old, mutation.new, 1), tmp_path)
    line, column = mutation.position
    assert message.startswith(f", line {line}, column {column}: ")
    assert mutation.words in message
