"""The sides of a comparison: results of files or of the store, by the names that a user gives, and facts about them."""

import hashlib
import re
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.api.open_models import PairKind
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.baseline import TITLES, facts_of_host, newest_by_id
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS, runtime_title
from dlbricks_tui.runtime.variant import (
    Kernels,
    Precision,
    Variant,
    kernels_in_words,
    stated_kernels,
    stated_precision,
    stated_threads,
    threads_in_words,
)
from dlbricks_tui.share.signatures import signature_beside
from dlbricks_tui.store.change import with_doubt
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError, QueryError
from dlbricks_tui.store.exchange import ExportFormat, read_export
from dlbricks_tui.store.index import label_of
from dlbricks_tui.store.records import (
    ANY_CONTEXT,
    BrickForm,
    EndToEnd,
    Fact,
    Facts,
    Measurement,
    Provenance,
    Record,
    Result,
    RuntimeRecord,
    Statistics,
    System,
)
from dlbricks_tui.store.selections import Selection, equal, is_filter, parse_filter
from dlbricks_tui.wording.answers import short_combination

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_LISTED = 6


class Naming(NamedTuple):
    """Names of results: the column whose values are names, and other names of a value by it."""

    column: str
    others: Callable[[ResultsDatabase], Mapping[str, tuple[str, ...]]] = lambda _: {}


# The kinds of results that a word names, besides days and the beginnings of runs.
KINDS: dict[str, Naming] = {
    PairKind.SYSTEM: Naming("system", lambda store: {it.id: (it.name, it.instance_type) for it in store.systems()}),
    PairKind.RUNTIME: Naming(
        "runtime", lambda store: {it.id: (it.name, it.framework, it.id.split(" ")[0]) for it in store.runtimes()}
    ),
    PairKind.RUN: Naming("run"),
}


class NamedSelection(NamedTuple):
    """Results, what they are, such as `c5.xlarge` or `system c5.xlarge, threads=1`, and their kind."""

    name: str
    selection: Selection
    kind: str = PairKind.SELECTION

    @property
    def words(self) -> str:
        """The name with the kind: `system c5.xlarge`."""
        return self.name if self.kind == PairKind.SELECTION else f"{self.kind} {self.name}"


def select_named(store: ResultsDatabase, text: str, where: Sequence[str] = ()) -> NamedSelection:
    """Return the results that a text names, which pass the filters too.

    The text has words and filters between blanks. A word is a day, or the id or name of a system, a runtime or a run.
    It has to stand for one of them among the results that pass the filters.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise QueryError(f"{text!r}: {error}; close the quotation marks") from None
    if not words:
        raise QueryError("an empty text names no results: give a system, a runtime, a day, a run, or filters")
    filters = [word for word in words if is_filter(word)]
    selection = store.results(*where, *filters)
    named: list[NamedSelection] = []
    for word in (word for word in words if not is_filter(word)):
        named.append(_only_meaning(word, store, selection))
        selection = named[-1].selection
    if not len(selection):
        also = f" and pass {' '.join(where)}" if where else ""
        raise QueryError(f"no results are {text!r}{also}; `dlbricks results list` shows those there are")
    if len(words) == len(named) == 1:
        return named[0]
    return NamedSelection(", ".join([*(it.words for it in named), *filters]), selection)


def _only_meaning(word: str, store: ResultsDatabase, selection: Selection) -> NamedSelection:
    """Return the results that a word stands for among these."""

    def meanings(fits: Callable[[str], bool]) -> list[NamedSelection]:
        return [
            NamedSelection(value, selection.matching(equal(**{naming.column: value})), kind)
            for kind, naming in KINDS.items()
            for others in (naming.others(store),)
            for value in sorted(selection.distinct(naming.column))
            if any(map(fits, (value, *others.get(value, ()))))
        ]

    if _DAY.fullmatch(word):
        return NamedSelection(word, selection.matching(parse_filter(f"when={word}")), PairKind.DAY)
    alike = meanings(lambda name: name == word) or meanings(lambda name: name.casefold() == word.casefold())
    # The id of a system counts before names and instance types that are equal to it.
    alike = [it for it in alike if it.name == word] or alike
    if not alike:
        runs = sorted(it for it in selection.distinct("run") if it.startswith(word))
        alike = [NamedSelection(it, selection.matching(equal(run=it)), PairKind.RUN) for it in runs]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise QueryError(
            f"{word!r} stands for several: {_listed([it.words for it in alike])}; name one of them, or add a filter "
            "such as threads=1"
        )
    nothing = f"{word!r} is no {', '.join(KINDS)} or day with results; there are"
    if not len(selection):
        raise QueryError(f"{nothing} none: `dlbricks run MODEL` measures some")
    known = [f"{kind}s {_listed(sorted(selection.distinct(it.column)))}" for kind, it in KINDS.items()]
    raise QueryError(f"{nothing} {'; '.join(known)}; a part of a name is found by a filter such as name~{word[:20]}")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


# The records that a comparison reads.
COMPARED: tuple[type[Record], ...] = (EndToEnd, Measurement, System, RuntimeRecord, Provenance, BrickForm)


class NotComparableError(UserError):
    """Things that cannot be compared, and why."""


class Subject(NamedTuple):
    """The subject of a result: a whole model (context and place are empty), or a brick in a context.

    `key` is the key of the model or brick. `place` is the layer, if the method has no contexts: it times each layer.
    """

    is_model: bool
    key: str
    context: str = ""
    place: Facts = ()


@dataclass(frozen=True, slots=True)
class ResultExecution:
    """The circumstances of a result that affect its latency. Only results of corresponding executions are compared."""

    system: str
    framework: str
    version: str
    python: str
    threads: int | None
    batch: int
    precision: Precision
    kernels: Kernels
    variables: Facts
    level: Level
    method: str

    @property
    def variant(self) -> Variant:
        """The variant of the runtime."""
        return Variant(threads=self.threads, batch=self.batch, precision=self.precision, **asdict(self.kernels))

    @property
    def in_words(self) -> str:
        """The framework and the variant, without what is usual: `onnxruntime, 1 thread`."""
        return short_combination(self.framework, self.variant, self.level)


@dataclass(frozen=True, slots=True)
class Found:
    """A good result with its samples after the warm-up. Many are held at once, so samples are an array."""

    id: str
    subject: Subject
    name: str
    execution: ResultExecution
    # The version of dlbricks that measured it; empty if it is not known.
    release: str
    # The identity of the runtime.
    runtime: str
    run: str
    when: str
    # With the doubt that the host was not quiet.
    statistics: Statistics
    samples_ms: "array[float]"
    busy: bool = False


def executions_of(results: Iterable[Found]) -> list[ResultExecution]:
    """Return the executions of results, each once."""
    # Many results share one object: hashing each of them would take longer.
    return list(dict.fromkeys({id(it.execution): it.execution for it in results}.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The results of a file, of a selection of the store, or of one label among those of several."""

    name: str
    results: tuple[Found, ...]
    systems: Mapping[str, System] = field(default_factory=dict)
    runtimes: Mapping[str, RuntimeRecord] = field(default_factory=dict)
    origins: tuple[Provenance, ...] = ()
    # The number of results with a reason for doubt, which are not compared.
    in_doubt: int = 0
    # Lines of the file without a record.
    refused: tuple[str, ...] = ()
    # The state of the signature of the file in words; empty if it is not known.
    signature: str = ""
    # SHA-256 of the files of models, by the keys of the models.
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> frozenset[str]:
        """The ids of the methods of its results."""
        return frozenset(it.method for it in executions_of(self.results))

    @property
    def digest(self) -> str:
        """A hash of the ids of all results: files with the same results have the same one."""
        return hashlib.sha256("".join(sorted(it.id for it in self.results)).encode()).hexdigest()


def side_of(name: str, records: Iterable[Record], refused: Sequence[str] = (), signature: str = "") -> Side:
    """Return the side with the good results among these records; raise NotComparableError if there are none."""
    known = list(records)
    systems = newest_by_id(it for it in known if isinstance(it, System))
    runtimes = newest_by_id(it for it in known if isinstance(it, RuntimeRecord))
    origins = tuple([it for it in known if isinstance(it, Provenance)])
    timed = [it for it in known if isinstance(it, EndToEnd | Measurement)]
    good = [it for it in timed if it.good]
    if not good:
        why = f"all {len(timed):,} of its results are in doubt" if timed else "it has no results of models or bricks"
        raise NotComparableError(
            f"{name} has nothing to compare: {why}; measure them by `dlbricks run`, and export again"
        )
    bricks = {it.brick for it in good if isinstance(it, Measurement)}
    names = {it.key: label_of(it.canonical) for it in known if isinstance(it, BrickForm) and it.key in bricks}
    releases = {(it.run, it.runtime): str(dict(it.packages).get("dlbricks", "")) for it in origins}
    # Equal executions, subjects and texts share one object.
    subjects, texts = dict[Subject, Subject](), dict[str, str]()
    execution = cache(partial(_execution, runtimes))

    def found(it: Result) -> Found:
        statistics, doubt = it.statistics, it.busy
        if doubt:
            _, low_ms, high_ms = with_doubt(statistics.latency, doubt)
            statistics = replace(statistics, low_ms=low_ms, high_ms=high_ms)
        subject, title = _subject_and_title(it, names)
        return Found(
            id=it.uuid,
            subject=subjects.setdefault(subject, subject),
            name=texts.setdefault(title, title),
            execution=execution(it.system, it.runtime, it.level, it.protocol, it.batch_size),
            release=releases.get((it.run, it.runtime), ""),
            runtime=texts.setdefault(it.runtime, it.runtime),
            run=texts.setdefault(it.run, it.run),
            when=it.when,
            statistics=statistics,
            samples_ms=array("d", it.steady_ms),
            busy=doubt > 0,
        )

    return Side(
        name=name,
        results=tuple(map(found, good)),
        systems=systems,
        runtimes=runtimes,
        origins=origins,
        in_doubt=len(timed) - len(good),
        refused=tuple(refused),
        signature=signature,
        contents={model: str(digest) for it in origins for model, digest in it.models if digest},
    )


def _execution(
    runtimes: Mapping[str, RuntimeRecord], system: str, identity: str, level: Level, method: str, batch: int
) -> ResultExecution:
    it = runtimes[identity]
    python, variables = ".".join(it.python.split(".")[:2]), tuple(sorted(it.settings))
    variant = stated_threads(identity), batch, stated_precision(identity), stated_kernels(identity)
    return ResultExecution(system, it.framework, it.version, python, *variant, variables, level, method)


def _subject_and_title(it: Result, names: Mapping[str, str]) -> tuple[Subject, str]:
    if isinstance(it, EndToEnd):
        return Subject(True, it.model), it.name
    # With contexts, a brick is timed once for all layers.
    place = it.occurrence if it.context == ANY_CONTEXT else ()
    return Subject(False, it.brick, it.context, place), names.get(it.brick) or it.brick


_ENDINGS = tuple(it.value for it in ExportFormat)


def named_sides(names: Sequence[str], data: DataFolder, tell: Callable[[str], object] = lambda _: None) -> list[Side]:
    """Return the sides of these names, in their order: files, or words of `dlbricks results compare`.

    `tell` gets what is done now, often.
    """
    files = [name for name in names if is_file(name)]
    found = dict(zip(files, read_sides([Path(name) for name in files], tell), strict=True))
    if len(files) < len(names):
        with ResultsDatabase(data.store) as store:
            found |= {name: side_of_selection(store, select_named(store, name)) for name in names if name not in found}
    return [found[name] for name in names]


def is_file(name: str) -> bool:
    """Return whether a name is that of a file; anything else selects results of the store."""
    return Path(name).exists() or name.lower().endswith(_ENDINGS)


def side_of_selection(store: ResultsDatabase, named: NamedSelection) -> Side:
    """Return the good results of a selection of the store; raise NotComparableError if there are none."""
    records: list[Record] = [*store.systems(), *store.runtimes(), *store.records(BrickForm)]
    # Those of other runs would tell of circumstances that these results did not have.
    runs = named.selection.distinct("run")
    records += [it for it in store.records(Provenance) if it.run in runs]
    for position in range(len(named.selection)):
        # The store reports damaged results.
        with suppress(DamagedResultError):
            records.append(named.selection.result(position))
    return side_of(named.words, records)


@without_cycle_search()
def read_side(path: Path, tell: Callable[[str], object]) -> Side:
    """Return the results of a file of `dlbricks results export`."""
    records, refused = read_export(path, COMPARED, lambda number: tell(f"reading {path}: {number:,} records so far"))
    found = signature_beside(path)
    signature = "none" if found is None else f"{found.name}, not verified"
    return side_of(str(path), records, list(map(str, refused)), signature)


def read_sides(paths: Sequence[Path], tell: Callable[[str], object] = lambda _: None) -> list[Side]:
    """Return the results of several files, in their order."""
    for place, path in enumerate(paths):
        if any(path.exists() and other.exists() and path.samefile(other) for other in paths[:place]):
            raise NotComparableError(f"{path} is named twice: a comparison needs different files")
    return [read_side(path, tell) for path in paths]


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

    @property
    def items(self) -> tuple[int, int]:
        """The items in an inference of each: where batch sizes differ, latencies are those of an item."""
        return (self.first.batch, self.second.batch) if "batch" in self.differ else (1, 1)


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
        return " ".join(f"{name}={value}" for name, value in execution.variables) or "none"
    return str(getattr(value, "value", value))


# Packages that come first.
_PACKAGES = ("dlbricks", "python", "numpy", "onednn")
_TITLES_OF_EXECUTIONS = {"batch": "batch size", "python": "Python of the runtime"}
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


def differing(sides: Sequence[Side], *numbers: str) -> dict[str, tuple[str, str]]:
    """Return the circumstances that differ between two sides, and numbers of these names if they do."""
    told = (it for it in facts_of(sides) if it.differs or (it.name in numbers and len(set(it.values)) > 1))
    return {it.name: (it.values[0], it.values[1]) for it in told}


def _facts(sides: Sequence[Side]) -> Iterator[SideFact]:
    for name, number in _NUMBERS.items():
        yield SideFact(name, tuple(map(number, sides)), is_number=True)
    if any(it.signature for it in sides):
        yield SideFact("signature", tuple(it.signature or "not known" for it in sides), is_number=True)
    yield _fact("system", ([system_in_words(it, each) for each in _distinct(it, attrgetter("system"))] for it in sides))
    frameworks = (_distinct(it, lambda each: f"{runtime_title(each.framework)} {each.version}") for it in sides)
    yield _fact("framework", frameworks)
    for name in ("python", "threads", "batch", "precision", "kernels", "variables", "level", "method"):
        yield _fact(
            _TITLES_OF_EXECUTIONS.get(name, name), (_distinct(it, partial(value_in_words, name)) for it in sides)
        )
    told = {name for side in sides for it in side.origins for name, _ in it.packages}
    # The versions of frameworks are facts of the runtimes.
    for name in [name for name in (*_PACKAGES, *sorted(told - {*_PACKAGES, *TRAITS})) if name in told]:
        packages = ((dict(origin.packages).get(name) for origin in it.origins) for it in sides)
        yield _fact(TITLES.get(name, name), map(_told, packages))
    hosts = [list(_hosts(it)) for it in sides]
    for name in dict.fromkeys(name for held in hosts for facts in held for name in facts):
        yield _fact(TITLES.get(name, name.replace("_", " ")), (_told(it.get(name) for it in held) for held in hosts))
    yield _fact("evaluation", (_told(origin.evaluation for origin in it.origins) for it in sides))
    yield _fact("requirements not met", (_told(line for origin in it.origins for line in origin.unmet) for it in sides))


def _fact(name: str, values: Iterable[Sequence[str]]) -> SideFact:
    return SideFact(name, tuple(map(_listed, values)))


def _count(side: Side, *, is_model: bool) -> str:
    return f"{len({it.subject.key for it in side.results if it.subject.is_model is is_model}):,}"


def _days(side: Side) -> str:
    days = sorted({it.when[:10] for it in side.results})
    return " to ".join(dict.fromkeys((days[0], days[-1])))


_NUMBERS: dict[str, Callable[[Side], str]] = {
    "name": attrgetter("name"),
    "models": partial(_count, is_model=True),
    "bricks": partial(_count, is_model=False),
    "good results": lambda it: f"{len(it.results):,}",
    "results in doubt": lambda it: f"{it.in_doubt:,}",
    "lines without a record": lambda it: f"{len(it.refused):,}",
    "measured": _days,
    "runs": lambda it: f"{len({result.run for result in it.results}):,}",
}


def _distinct(side: Side, tell: Callable[[ResultExecution], str]) -> list[str]:
    """Return what the executions of a side tell: numbers by their values, before all else."""
    told = {tell(it) for it in executions_of(side.results)}
    return sorted(told, key=lambda it: (int(it), "") if it.isdecimal() else (_MOST_NUMBER, it))


def _hosts(side: Side) -> Iterator[dict[str, Fact]]:
    """Yield the facts about each host at the time of each run, or about the system if the runs do not tell."""
    for system in dict.fromkeys(it.system for it in executions_of(side.results)):
        origins: list[Provenance | None] = [it for it in side.origins if it.system == system]
        for origin in origins or [None]:
            yield dict(facts_of_host(side.systems[system], origin))


def _told(values: Iterable[Fact]) -> list[str]:
    words = {True: "on", False: "off"}
    told = (words[it] if isinstance(it, bool) else str(it) for it in values if it not in (None, ""))
    return sorted(set(told))


def system_in_words(side: Side, system: str) -> str:
    """Return the name of a system with its id."""
    name = side.systems[system].name
    return system if name == system else f"{name} ({system})"
