import math

from dlbricks_tui.estimate.prediction.choice import Limit, Trial, most_informative
from dlbricks_tui.estimate.prediction.transfer import deviations
from tests.estimate.prediction.simulated_systems import probed, simulated

ANY_TIME = Limit(30, math.inf)


def test_the_brick_that_takes_most_of_a_model_is_measured_first() -> None:
    found = simulated(3)
    before = deviations(found.bricks)
    model = {("conv 40", ""): 50.0, ("relu 8", ""): 1.0, ("softmax 12", ""): 1.0}
    trials = [Trial((pair,), 0.1) for pair in before.pairs]
    first, *_ = most_informative(before, [model], trials, ANY_TIME)
    assert first.pairs == (("conv 40", ""),)


def test_choosing_keeps_to_the_numbers_of_bricks_and_seconds() -> None:
    before = deviations(simulated(4).bricks)
    model = dict.fromkeys(before.pairs, 1.0)
    trials = [Trial(before.pairs[first : first + 3], 1.0) for first in range(0, len(before.pairs), 3)]
    assert sum(len(it.pairs) for it in most_informative(before, [model], trials, Limit(10, math.inf))) == 9
    assert len(most_informative(before, [model], trials, Limit(60, 4.5))) == 4
    assert most_informative(before, [model], trials, Limit(60, 0.5)) == []


def test_of_equally_informative_bricks_the_quick_one_is_measured() -> None:
    before = deviations(simulated(5).bricks)
    twins = (("conv 80", ""), ("conv 84", ""))
    model = dict.fromkeys(twins, 1.0)
    trials = [Trial((twins[0],), 5.0), Trial((twins[1],), 0.5)]
    assert most_informative(before, [model], trials, Limit(1, 10.0)) == [trials[1]]


def test_measured_bricks_are_not_chosen_again() -> None:
    found = simulated(6)
    after, measured = probed(found, 10)
    model = dict.fromkeys(after.pairs, 1.0)
    chosen = most_informative(after, [model], [Trial((pair,), 0.1) for pair in after.pairs], Limit(10, math.inf))
    assert measured.isdisjoint(pair for trial in chosen for pair in trial.pairs)
