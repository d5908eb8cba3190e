from dlbricks_tui.bricks.corpus import Corpus, ModelBricks, compare
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.documents.corpus import (
    GroupAccuracy,
    common_words,
    corpus_parts,
    granularity_columns,
    model_columns,
    models_of,
)
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.table_layout import TableLayout
from dlbricks_tui.estimate.accuracy import Accuracy, SharedSettings
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind

CONVOLUTIONS = (Kind.CONVOLUTION, Kind.CONVOLUTION, Kind.LINEAR)
ONE = ModelBricks("one", ("a", "a", "b"), ("", "", ""), CONVOLUTIONS)
TWO = ModelBricks("two", ("a",), ("x",), CONVOLUTIONS[:1])


def texts(corpus: Corpus, unit: str = "layer", speedup: float | None = None) -> list[str]:
    labels = [it.name for it in corpus.models]
    lines = laid_out(corpus_parts(corpus, labels, unit, speedup), 60)
    return ["".join(span.text for span in line).rstrip() for line in lines]


def test_a_corpus_has_its_totals_unique_layers_repeated_kinds_and_similarity() -> None:
    assert texts(compare([ONE, TWO]), speedup=1.5) == [
        "2 models, 4 layers: 2 unique (50.0 %), 3 with their contexts",
        "measured on this host, the models take 1.50 times as long as",
        "their unique bricks",
        "",
        "Unique layers per model",
        "   model         layers  unique    share",
        f"1  one                3       2   66.7 %  {'█' * 12}",
        f"2  two                1       1  100.0 %  {'█' * 18}",
        f"   all together       4       2   50.0 %  {'█' * 9}",
        "",
        "Repeated layers by kind: 2 of 4 occur more than once in",
        "their model",
        "kind         layers  repeated    share",
        f"convolution       3         2  100.0 %  {'█' * 20}",
        "linear            1         0    0.0 %",
        "",
        "Shared bricks of every two models (Jaccard similarity,",
        "percent)",
        "· none  ░ below 25 %  ▒ below 50 %  ▓ below 100 %  █ all",
        "         1     2",
        "1 one  100 █  50 ▓",
        "2 two   50 ▓ 100 █",
    ]


def test_sequences_are_named_and_one_model_alone_has_no_total_and_no_similarity() -> None:
    found = texts(compare([ONE]), "sequence")
    assert found[0].startswith("1 model, 3 sequences: 2 unique (66.7 %), 2 with their")
    assert "Unique sequences per model" in found
    assert not any("all together" in it or "Jaccard" in it for it in found)


def test_models_without_layers_have_no_shares() -> None:
    assert texts(compare([ModelBricks("none", (), (), ())]))[0].startswith("1 model, 0 layers: 0 unique (-)")


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
    found = [measured(1, "here", 2.0), measured(2, "there", None)]
    assert common_words(found) == ("2 threads", "fused", "onnxruntime-1.23.0") and not common_words(found[:1])
    layout = TableLayout(Table(granularity_columns(found), found), 70)
    assert ["".join(span.text for span in layout.row(at)).rstrip() for at in (0, 1)] == [
        f"1     2.00x  {'█' * 18}  2.1 %  -5.0 %       3  here, 2 d ago",
        f"2         -  {' ' * 18}  2.1 %  -5.0 %       3  there, 2 d ago",
    ]
