"""The executions of two groups of results that correspond to each other.

Two executions correspond if they agree in everything that affects a latency, with one exception: what each group has
one value of, another one than the other group has, is what is compared. So a file with one thread can be compared with
a file with two. The method has to be the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from dlbricks_tui.answers.comparisons.sides import ResultExecution
from dlbricks_tui.runtime.variant import Kernels, Precision, kernels_in_words, threads_in_words
from dlbricks_tui.store.records import Fact

# Circumstances that are compared over all results, and those that are compared for each framework.
_OVERALL = ("system", "framework")
_BY_FRAMEWORK = ("version", "python", "threads", "batch", "precision", "kernels", "variables", "level")
_ALL = tuple(it.name for it in fields(ResultExecution))


@dataclass(frozen=True, slots=True)
class Corresponding:
    """Two executions that are compared, and the names of the circumstances that differ."""

    first: ResultExecution
    second: ResultExecution
    differ: frozenset[str]


def corresponding(first: Iterable[ResultExecution], second: Iterable[ResultExecution]) -> list[Corresponding]:
    """Return the executions of both groups that correspond, each once."""
    ones, others = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    overall = frozenset(name for name in _OVERALL if _differs(name, ones, others))
    found: list[Corresponding] = []
    for framework in dict.fromkeys(it.framework for it in ones):
        mine = [it for it in ones if it.framework == framework]
        theirs = others if "framework" in overall else [it for it in others if it.framework == framework]
        differ = overall | {name for name in _BY_FRAMEWORK if _differs(name, mine, theirs)}
        kept = [name for name in _ALL if name not in differ]
        by_key = {tuple(getattr(it, name) for name in kept): it for it in theirs}
        for one in mine:
            other = by_key.get(tuple(getattr(one, name) for name in kept))
            if other is not None:
                found.append(Corresponding(one, other, differ))
    return found


def _differs(name: str, ones: Sequence[ResultExecution], others: Sequence[ResultExecution]) -> bool:
    """Return whether each group has one value, and another one than the other group."""
    first, second = {getattr(it, name) for it in ones}, {getattr(it, name) for it in others}
    return len(first) == len(second) == 1 and first != second


def value_in_words(name: str, execution: ResultExecution) -> str:
    """Return a circumstance of an execution as messages show it."""
    value: object = getattr(execution, name)
    if name == "threads":
        return threads_in_words(execution.threads)
    if isinstance(value, Kernels):
        return ", ".join(kernels_in_words(value))
    if isinstance(value, Precision):
        return value.in_words
    if name == "variables":
        return _variables_in_words(execution.variables)
    return str(getattr(value, "value", value))


def _variables_in_words(variables: Iterable[tuple[str, Fact]]) -> str:
    return " ".join(f"{name}={value}" for name, value in variables) or "none"
