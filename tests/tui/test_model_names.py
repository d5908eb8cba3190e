import string

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library
from dlbricks_tui.tui.model_names import FAMILY_INDENT, LEAST_WIDTH, family_rows, told_apart

# Names with common beginnings, wide characters and control codes.
NAMES = st.lists(
    st.lists(st.sampled_from(["CycleGAN", "Trained on", "ImageNet", "模型", "a", "b", "\n", "x" * 30]), min_size=1).map(
        " ".join
    )
    | st.text(max_size=60)
    | st.text(string.ascii_letters + "_-. ", max_size=40),
    unique=True,
    max_size=12,
)
LIBRARY = [it.name for it in Library(SAMPLE_MODELS, SAMPLE_MODELS.parent / "none").samples()]


@given(NAMES, st.integers(LEAST_WIDTH, 50))
@example(["A Trained on B", "A, B"], 40)
@example(["a" * 50, "a" * 51, "a" * 52, "a" * 49 + "#1"], LEAST_WIDTH)
def test_different_names_look_different_at_any_width(names: list[str], width: int) -> None:
    shown = told_apart(names, width)
    assert len(set(shown)) == len(names)
    assert all(cell_len(text) <= width and text.isprintable() for text in shown)


@given(NAMES, st.integers(LEAST_WIDTH + FAMILY_INDENT, 50))
def test_different_names_look_different_below_the_heads_of_their_families(names: list[str], width: int) -> None:
    rows = family_rows(names, width)
    assert [row.place for row in rows if row.place is not None] == list(range(len(names)))
    head, seen = "", list[tuple[str, str]]()
    for row in rows:
        assert cell_len(row.text) + (FAMILY_INDENT if row.in_family else 0) <= width
        if row.place is None:
            head = row.text
        else:
            seen.append((head if row.in_family else "", row.text))
    assert len(set(seen)) == len(names)


def test_models_of_the_library_look_different_at_any_width() -> None:
    for width in range(LEAST_WIDTH, 90):
        assert len(set(told_apart(LIBRARY, width))) == len(LIBRARY), width


def test_a_name_keeps_the_part_where_it_differs() -> None:
    ages = [name for name in LIBRARY if name.startswith("Age")]
    assert told_apart(ages, 24) == ["Age Esti…IMDB-WIKI and …", "Age Estimation…IMDB-WIKI"]
    assert told_apart(["resnet50_v1", "a short name"], 24) == ["resnet50_v1", "a short name"]


def test_a_family_has_its_common_words_once() -> None:
    rows = family_rows([name for name in LIBRARY if name.startswith(("CycleGAN", "Pix"))], 18)
    assert [("  " if row.in_family else "") + row.text for row in rows] == [
        "CycleGAN …",
        "  Apple-to-Orange…",
        "  Horse-to-Zebra …",
        "  Monet-to-Photo …",
        "  Orange-to-Apple…",
        "  Photo-to-Cezann…",
        "  Photo-to-Monet …",
        "  Photo-to-Van Go…",
        "  Summer-to-Winte…",
        "  Winter-to-Summe…",
        "  Zebra-to-Horse …",
        "Pix2pix …",
        "  Photo-to-Street…",
        "  Street-Map-to-P…",
    ]


def test_names_that_fit_need_no_family() -> None:
    names = ["mobilenetv2_1.0", "mobilenetv2_0.75"]
    assert [row.text for row in family_rows(names, 18)] == names
    assert [row.text for row in family_rows(names, 14)] == ["mobilenetv2_…", "1.0", "0.75"]


def test_models_of_one_name_look_alike() -> None:
    assert told_apart(["one", "one"], 20) == ["one", "one"]
