from dlbricks_tui.answers import measuring
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.cli import options
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level


def test_the_choices_that_are_spelled_out_for_help_are_those_there_are() -> None:
    assert tuple(each.value for each in Level) == options.LEVELS
    assert set(options.CUTS) == {each.value for each in Cut}
    assert set(options.ORDERS) == {each.value for each in Order}
    assert set(options.METHODS) == {each.value for each in Method}
    assert options.MOST_MODELS_END_TO_END == measuring.MOST_MODELS_END_TO_END
