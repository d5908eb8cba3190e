import pytest

from dlbricks_tui.wording.layers import common_beginning, usual_beginning


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["net_conv0", "net_conv1"], "net_"),
        (["/a/b/c", "/a/bc"], "/a/"),
        (["net_conv0"], ""),
        (["conv", "relu"], ""),
        (["a.b", "a.c"], "a."),
        (["_a", "_b"], "_"),
        (["a_b", "a_b_c"], "a_"),
        ([], ""),
    ],
)
def test_the_words_that_all_names_begin_with_are_said_once(names: list[str], expected: str) -> None:
    assert common_beginning(names) == expected


def test_a_few_odd_names_do_not_count_for_the_usual_beginning() -> None:
    names = [f"net_conv{number}" for number in range(18)]
    assert usual_beginning(["data as acdb", *names, "output"]) == "net_"
    assert usual_beginning(["data as acdb", *names[:4]]) == ""
    assert usual_beginning(names[:1]) == usual_beginning([]) == ""
