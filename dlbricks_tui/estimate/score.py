"""The score of predictions: models as they would have been predicted, beside what they were measured to take."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.estimate.nearest import Example, train
from dlbricks_tui.estimate.predictors import examples_of, results_of
from dlbricks_tui.estimate.system_estimate import Offer, best_offer, offers_for
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import Way, by_id


class PredictionBasis(str, Enum):
    """The results that a model is predicted from.

    `history`: those from before the run that measured the last of its bricks. `left out`: all but its own bricks, where
    nothing was measured before that run.
    """

    HISTORY = "history"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Score:
    """A model as it is predicted without some of its results, and the sum of its measured bricks."""

    model: str
    basis: PredictionBasis
    predicted_ms: float
    low_ms: float
    high_ms: float
    # The share of the prediction that does not come from measurements.
    predicted_share: float
    # Without layers that could not be predicted; their share of the latency.
    measured_ms: float
    refused_share: float

    @property
    def error(self) -> float:
        """The prediction minus the measurement, as a share of the latter."""
        return self.predicted_ms / self.measured_ms - 1.0

    @property
    def holds(self) -> bool:
        """True if the interval of the prediction holds the measurement."""
        return self.low_ms <= self.measured_ms <= self.high_ms


def scores_on(
    store: ResultsDatabase, system: str, models: Iterable[tuple[Decomposition, str | None]], *, others: bool = False
) -> list[tuple[Way, Score]]:
    """Return the scores of models on a system, by their runtimes; None is the one that covers most of a model.

    With `others`, a model that its runtime has not measured is scored by such a one, too.
    """
    known = by_id(store.runtimes())
    by_way: dict[Way, list[Decomposition]] = {}
    for model, runtime in models:
        offers: Sequence[Offer] = BrickResults(store, model).offers
        if others and best_offer(offers, system, runtime) is None:
            runtime = None
        if runtime is None:
            offers = offers_for(offers, model.graph.traits, known)
        offer = best_offer(offers, system, runtime)
        if offer is not None:
            by_way.setdefault(offer.way, []).append(model)
    return [(way, score) for way, held in by_way.items() for score in scores(store, way, held)]


def scores(store: ResultsDatabase, way: Way, models: Sequence[Decomposition]) -> Iterator[Score]:
    """Yield the score of each model whose bricks were all measured in one way, and for which some can be predicted."""
    examples = list(examples_of(store, results_of(store, way)))
    if not examples:
        return
    widths = train(examples)
    known = {model.graph.name: BrickResults(store, model).knowledge(way) for model in models}
    uses = {name: frozenset(found.pair for found in each.measured.values()) for name, each in known.items()}
    for model in models:
        name, knowledge = model.graph.name, known[model.graph.name]
        whole = estimate(model, knowledge)
        if whole.composed is None or not whole.coverage.complete:
            continue
        others = frozenset().union(*(used for other, used in uses.items() if other != name))
        basis, earlier = _earlier(examples, uses[name], others)
        held = {each.pair for each in earlier}
        left = {pair: found for pair, found in knowledge.measured.items() if found.pair in held}
        predictor = train(earlier, widths_of=widths)
        partly = replace(knowledge, measured=left, predictor=lambda: predictor)  # noqa: B023
        predicted = estimate(model, partly, Options(any_part=True))
        guess, measured_ms = predicted.composed, whole.composed.sequential_ms
        if guess is None or not predicted.coverage.predicted:
            continue
        refused = [place for place, part in enumerate(predicted.parts) if not part.counts]
        refused_ms = from_picoseconds(sum(whole.parts[place].paid_ps for place in refused))
        yield Score(
            name,
            basis,
            *guess.doubt._replace(lacking_ms=0.0).around(guess.sequential_ms),
            predicted.predicted_share,
            measured_ms - refused_ms,
            refused_ms / measured_ms if measured_ms else 0.0,
        )


def _earlier(
    examples: Sequence[Example], own: Set[Pair], others: Set[Pair]
) -> tuple[PredictionBasis, Sequence[Example]]:
    """Return the results of before the run that completed a model; if there are none, all but its own."""
    completed = max((each.since for each in examples if each.pair in own), default=0)
    earlier = [each for each in examples if each.since < completed]
    if earlier:
        return PredictionBasis.HISTORY, earlier
    return PredictionBasis.LEFT_OUT, [each for each in examples if each.pair not in own or each.pair in others]
