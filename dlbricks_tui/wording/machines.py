"""The systems that are best for a model, in words."""

from collections.abc import Sequence

from dlbricks_tui.estimate.comparison import PRICES_FILE, Candidate, cheapest, quickest
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.answers import combination_words, figure_text
from dlbricks_tui.wording.numbers import PARTLY, counted, in_ms


def machines_question(model: str) -> str:
    """Return the question about the systems; an empty name stands for no model."""
    return f"Which system is quickest and cheapest for {printable(model) if model else 'a model'}?"


def machines_answer(model: str, found: Sequence[Candidate]) -> str:
    """Return the quickest and the cheapest system of a model as a sentence."""
    if not found:
        return f"{printable(model)} was not measured on any system."
    best, thrifty = quickest(found), cheapest(found)
    if len(found) == 1:
        return f"Only {_figure(found[0])} has results of it."
    if best is None:
        return f"None of {counted(len(found), 'system')} has enough results to tell."
    told = f"{_figure(best)} is the quickest of {counted(len(found), 'system')}"
    if thrifty is None:
        return f"{told}. For costs, write prices into {PRICES_FILE} in the data folder."
    if thrifty is best:
        return f"{told}, and the cheapest: {_cost(thrifty)}."
    return f"{told}; {_figure(thrifty)} is the cheapest: {_cost(thrifty)}."


def _figure(it: Candidate) -> str:
    figure = figure_text(it.estimate) or f"{PARTLY}{in_ms(it.latency_ms)}"
    return f"{printable(it.estimate.way.system)} ({figure}: {combination_words(it.estimate)})"


def _cost(it: Candidate) -> str:
    return f"$ {it.dollars_per_million:.2f} for a million inferences"
