"""Facts about each side of a comparison, and the circumstances that differ between the sides."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from dlbricks_tui.answers.comparisons.matching import value_in_words
from dlbricks_tui.answers.comparisons.sides import ResultExecution, Side, executions_of
from dlbricks_tui.evaluations.baseline import facts_of_host
from dlbricks_tui.evaluations.differences import TITLES
from dlbricks_tui.runtime.traits import TRAITS, runtime_title
from dlbricks_tui.store.records import Fact, Provenance

# Packages that come first.
_PACKAGES = ("dlbricks", "python", "numpy", "onednn")
_TITLES_OF_EXECUTIONS = {"batch": "batch size", "python": "Python of the runtime"}
_MOST_VALUES = 6
_MOST_NUMBER = 1 << 31


@dataclass(frozen=True, slots=True)
class SideFact:
    """A circumstance or a number of each side; empty where a side does not tell it.

    Numbers, such as that of the results, are no circumstances that can explain a difference.
    """

    name: str
    values: tuple[str, ...]
    is_number: bool = False

    @property
    def differs(self) -> bool:
        """True if it is a circumstance, and two sides tell different ones."""
        return not self.is_number and len({it for it in self.values if it}) > 1


def facts_of(sides: Sequence[Side]) -> tuple[SideFact, ...]:
    """Return the facts about the sides that any side tells."""
    return tuple([it for it in _facts(sides) if any(it.values)])


def _facts(sides: Sequence[Side]) -> Iterator[SideFact]:
    yield _number("name", (it.name for it in sides))
    yield _number("models", (_count(it, is_model=True) for it in sides))
    yield _number("bricks", (_count(it, is_model=False) for it in sides))
    yield _number("good results", (f"{len(it.results):,}" for it in sides))
    yield _number("results in doubt", (f"{it.in_doubt:,}" for it in sides))
    yield _number("lines without a record", (f"{len(it.refused):,}" for it in sides))
    yield _number("measured", map(_days, sides))
    yield _number("runs", (f"{len({result.run for result in it.results}):,}" for it in sides))
    if any(it.signature for it in sides):
        yield _number("signature", (it.signature or "not known" for it in sides))
    yield _fact("system", map(_systems, sides))
    yield _fact("framework", (_distinct(it, _framework) for it in sides))
    for name in ("python", "threads", "batch", "precision", "kernels", "variables", "level", "method"):
        yield _fact(
            _TITLES_OF_EXECUTIONS.get(name, name), (_distinct(it, partial(value_in_words, name)) for it in sides)
        )
    for name in _package_names(sides):
        packages = ((dict(origin.packages).get(name) for origin in it.origins) for it in sides)
        yield _fact(TITLES.get(name, name), map(_told, packages))
    hosts = [list(_hosts(it)) for it in sides]
    for name in dict.fromkeys(name for held in hosts for facts in held for name in facts):
        yield _fact(TITLES.get(name, name.replace("_", " ")), (_told(it.get(name) for it in held) for held in hosts))
    yield _fact("evaluation", (_told(origin.evaluation for origin in it.origins) for it in sides))
    yield _fact("requirements not met", (_told(line for origin in it.origins for line in origin.unmet) for it in sides))


def _fact(name: str, values: Iterable[Iterable[str]]) -> SideFact:
    return SideFact(name, tuple(map(_listed, values)))


def _number(name: str, values: Iterable[str]) -> SideFact:
    return SideFact(name, tuple(values), is_number=True)


def _count(side: Side, *, is_model: bool) -> str:
    return f"{len({it.subject.key for it in side.results if it.subject.is_model is is_model}):,}"


def _distinct(side: Side, tell: Callable[[ResultExecution], str]) -> Iterable[str]:
    return sorted({tell(it) for it in executions_of(side.results)}, key=_in_order)


def _in_order(text: str) -> tuple[int, str]:
    """Return the key by which texts are sorted: numbers by their values, before all else."""
    return (int(text), "") if text.isdecimal() else (_MOST_NUMBER, text)


def _package_names(sides: Sequence[Side]) -> list[str]:
    told = {name for side in sides for it in side.origins for name, _ in it.packages}
    # The versions of frameworks are facts of the runtimes.
    return [name for name in (*_PACKAGES, *sorted(told - {*_PACKAGES, *TRAITS})) if name in told]


def _hosts(side: Side) -> Iterator[dict[str, Fact]]:
    """Yield the facts about each host at the time of each run, or about the system if the runs do not tell."""
    for system in dict.fromkeys(it.system for it in executions_of(side.results)):
        origins: list[Provenance | None] = [it for it in side.origins if it.system == system]
        for origin in origins or [None]:
            yield dict(facts_of_host(side.systems[system], origin))


def _told(values: Iterable[Fact]) -> Iterable[str]:
    words = {True: "on", False: "off"}
    told = (words[it] if isinstance(it, bool) else str(it) for it in values if it not in (None, ""))
    return sorted(set(told))


def _listed(values: Iterable[str]) -> str:
    held = list(values)
    more = len(held) - _MOST_VALUES
    return ", ".join(held[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _days(side: Side) -> str:
    days = sorted({it.when[:10] for it in side.results})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _systems(side: Side) -> list[str]:
    return [system_in_words(side, it) for it in _distinct(side, attrgetter("system"))]


def system_in_words(side: Side, system: str) -> str:
    """Return the name of a system with its id."""
    name = side.systems[system].name
    return system if name == system else f"{name} ({system})"


def _framework(execution: ResultExecution) -> str:
    return f"{runtime_title(execution.framework)} {execution.version}"
