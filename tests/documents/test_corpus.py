from collections.abc import Iterator

from dlbricks_tui.answers.library_scans import GroupAccuracy
from dlbricks_tui.bricks.corpus import Corpus, ModelBricks, compare
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.documents.corpus import (
    common_words,
    corpus_parts,
    granularity_columns,
    model_columns,
    models_of,
)
from dlbricks_tui.documents.parts import Part, Table
from dlbricks_tui.documents.table_layout import TableLayout
from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.store.selections import Way
from tests.documents.snapshots import check

CONVOLUTIONS = (Kind.CONVOLUTION, Kind.CONVOLUTION, Kind.LINEAR)
ONE = ModelBricks("one", ("a", "a", "b"), ("", "", ""), CONVOLUTIONS)
TWO = ModelBricks("two", ("a",), ("x",), CONVOLUTIONS[:1])


def parts(corpus: Corpus, unit: str = "layer", speedup: float | None = None) -> Iterator[Part]:
    return corpus_parts(corpus, [it.name for it in corpus.models], unit, speedup)


def test_a_corpus_has_its_totals_unique_layers_repeated_kinds_and_similarity() -> None:
    check(
        "corpus",
        {
            "two models": parts(compare([ONE, TWO]), speedup=1.5),
            "one model in sequences": parts(compare([ONE]), "sequence"),
            "no layers": parts(compare([ModelBricks("none", (), (), ())])),
        },
        width=60,
    )


def test_the_names_of_all_models_are_fitted_together_and_found_words_are_highlighted() -> None:
    models = models_of(compare([ONE, TWO]), ["a long name", "a long day"])
    columns = model_columns("layer", lambda names, width: [it[-min(width, 9) :] for it in names])
    layout = TableLayout(Table(columns, models), 60)
    assert [layout.row(at, ["day"])[2:4] for at in (0, 1)] == [
        (("long name", "text"), ("  ", "text")),
        ((" long ", "text"), ("day", "match")),
    ]


def measured(granularity: int, system: str, speedup: float | None) -> GroupAccuracy:
    way = Way(system, "onnxruntime-1.23.0 threads-2", Level.FUSED, "hot")
    return GroupAccuracy(
        SharedSettings(way, granularity, Cut.CHAIN), Accuracy(3, 1.0, 0.021, -0.05, 1.0, 1.0, speedup), "2 d ago"
    )


def test_granularities_tell_what_differs_and_in_common_is_the_rest() -> None:
    found = [measured(1, "here", 2.0), measured(2, "there", None), measured(3, "here", 1.0)]
    assert common_words(found) == ("2 threads", "fused", "ONNX Runtime 1.23.0") and not common_words(found[:1])
    cases = {"several": found, "one without a speed-up": found[1:2], "none": []}
    check("granularities", {name: [Table(granularity_columns(each), each)] for name, each in cases.items()}, width=80)
