import pytest

from dlbricks_tui.wording.checks import what_if_words


@pytest.mark.parametrize(
    ("what_if", "words"),
    [
        ("parallel-2", "run 2 branches at once"),
        ("kernels-avx2", "use avx2 kernels"),
        ("kernels-default", "use all kernels"),
        ("kernels-basic", "optimise less: basic"),
        ("runtime-onnxruntime", "run it in ONNX Runtime"),
        ("runtime-mix", "mix the fastest runtimes"),
        ("runtime-default-engine", "use the default engine"),
        ("fusion", "fuse more layers"),
        ("fusion-off", "fuse no layers"),
        ("precision-int8", "compute in int8"),
        ("threads-1", "use 1 thread"),
        ("batch-8", "use batches of 8"),
        ("runtime-of-a-later-version", "runtime-of-a-later-version"),
    ],
)
def test_a_what_if_is_told_in_plain_words(what_if: str, words: str) -> None:
    assert what_if_words(what_if) == words
