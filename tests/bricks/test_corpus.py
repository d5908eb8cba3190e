from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import ModelBricks, RepeatedType, compare
from dlbricks_tui.models.kinds import Kind

KIND_OF = {"c3": Kind.CONVOLUTION, "c5": Kind.CONVOLUTION, "r": Kind.ELEMENTWISE, "p": Kind.POOLING}


def model(name: str, bricks: str, contexts: str = "") -> ModelBricks:
    keys = tuple(bricks.split())
    return ModelBricks(
        name, keys, tuple(contexts.split()) or ("plain",) * len(keys), tuple(KIND_OF[brick] for brick in keys)
    )


models = st.builds(
    lambda name, bricks: model(name, " ".join(bricks)),
    st.text(max_size=3),
    st.lists(st.sampled_from(sorted(KIND_OF)), max_size=8),
)

VGG = model("vgg", "c3 r c3 r p", "plain blocked blocked blocked blocked")
LENET = model("lenet", "c5 r p")


def test_the_unique_layers_of_a_model_are_its_different_bricks() -> None:
    vgg, lenet = compare([VGG, LENET]).models
    assert (vgg.name, vgg.layers, vgg.unique_layers, vgg.contexts, vgg.share) == ("vgg", 5, 3, 4, 0.6)
    assert (lenet.name, lenet.layers, lenet.unique_layers, lenet.contexts, lenet.share) == ("lenet", 3, 3, 3, 1.0)


def test_the_totals_count_a_brick_of_several_models_once() -> None:
    corpus = compare([VGG, LENET])
    assert (corpus.layers, corpus.unique_layers) == (8, 4)
    # c3 in two contexts; r and p in one in vgg and another in lenet; c5.
    assert corpus.contexts == 7


def test_repeated_types_count_the_layers_that_stand_more_than_once_in_their_own_model() -> None:
    assert compare([VGG, LENET]).repeated_types == (
        RepeatedType(Kind.CONVOLUTION, layers=3, repeated=2),
        RepeatedType(Kind.ELEMENTWISE, layers=3, repeated=2),
        RepeatedType(Kind.POOLING, layers=2, repeated=0),
    )


def test_similarity_is_shared_over_all_bricks() -> None:
    assert compare([VGG, LENET]).jaccard == ((1.0, 0.5), (0.5, 1.0))


@given(st.lists(models, max_size=5))
def test_similarity_is_a_symmetric_grid_with_ones_on_its_diagonal(corpus: list[ModelBricks]) -> None:
    grid = compare(corpus).jaccard
    assert [row[index] for index, row in enumerate(grid)] == [1.0] * len(corpus)
    assert grid == tuple(zip(*grid, strict=True))
    for row, one in zip(grid, corpus, strict=True):
        for similarity, other in zip(row, corpus, strict=True):
            assert (similarity == 1.0) == (set(one.bricks) == set(other.bricks))
            assert (similarity == 0.0) == (set(one.bricks).isdisjoint(other.bricks) and one.bricks != other.bricks)


@given(st.lists(models, min_size=1, max_size=5))
def test_a_model_listed_twice_adds_layers_and_nothing_unique(corpus: list[ModelBricks]) -> None:
    once, twice = compare(corpus), compare([*corpus, *corpus])
    assert twice.layers == 2 * once.layers
    assert (twice.unique_layers, twice.contexts) == (once.unique_layers, once.contexts)
    assert [it.repeated for it in twice.repeated_types] == [2 * it.repeated for it in once.repeated_types]
