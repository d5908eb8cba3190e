"""The rules of an evaluation that a JSON schema cannot say."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from dlbricks_tui.evaluations.evaluation import RecordedResult
from dlbricks_tui.evaluations.faults import Fault, Place, shown
from dlbricks_tui.evaluations.schema import as_list
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.settings.setting import plain
from dlbricks_tui.settings.variant import EXECUTION, THREADS

# Of all runtimes together.
_MOST_COMBINATIONS = 10_000
_OF_FRAMEWORK = ("model", "sha256", "framework", "version")
_OF_VARIANT = tuple(it.field for it in (THREADS, *EXECUTION))

# The tables of a document that the schema allows.
_Table = Mapping[str, Any]


def broken_rules(document: _Table) -> Iterator[Fault]:
    """Yield the rules that a document breaks which the schema allows."""
    yield from _in_models(document["model"])
    yield from _in_runtimes(document["runtime"])
    yield from _in_measure(document.get("measure", {}), has_scenarios=bool(document.get("scenario")))
    for number, scenario in enumerate(document.get("scenario", ())):
        yield from _in_scenario(("scenario", number), scenario)
    results = document.get("result", ())
    models = [model["name"] for model in document["model"]]
    frameworks = [runtime["framework"] for runtime in document["runtime"]]
    for number, result in enumerate(results):
        yield from _in_result(("result", number), result, models, frameworks)
    for number in _repeated(map(_combination, results)):
        yield Fault(
            ("result", number), "another [[result]] has the same model, runtime and variant: remove one of them"
        )


def _in_models(models: Sequence[_Table]) -> Iterator[Fault]:
    named: dict[str, list[str]] = {}
    for number, model in enumerate(models):
        name, content = model["name"], model.get("sha256", "")
        others = named.setdefault(name, [])
        if others and (not content or "" in others or content in others):
            yield Fault(
                ("model", number, "name"),
                f"name = {shown(name)}: another [[model]] has this name; choose another, or give each its own sha256",
            )
        others.append(content)
    for number, model in enumerate(models):
        for key in ("inputs", "values"):
            if "" in model.get(key, {}):
                yield Fault(("model", number, key, ""), f"an input of {key} has no name: write the name of the input")


def _in_runtimes(runtimes: Sequence[_Table]) -> Iterator[Fault]:
    combinations = 0
    for number, runtime in enumerate(runtimes):
        try:
            SpecifierSet(runtime.get("version", ""))
        except InvalidSpecifier:
            yield Fault(
                ("runtime", number, "version"),
                f"version = {shown(runtime['version'])}: it has to be a version constraint, "
                'such as ">=1.20,<2" or "==1.9.1"',
            )
        product = 1
        for key in _OF_VARIANT:
            product *= max(1, len(dict.fromkeys(as_list(runtime.get(key)))))
        combinations += product
        if combinations > _MOST_COMBINATIONS:
            yield Fault(
                ("runtime", number),
                f"the runtimes have more than {_MOST_COMBINATIONS:,} combinations of variants up to here: "
                "list fewer values",
            )
            break
    for number in _repeated(map(_frozen, runtimes)):
        yield Fault(("runtime", number), "another [[runtime]] is the same: remove one of them")


def _in_measure(measure: _Table, *, has_scenarios: bool) -> Iterator[Fault]:
    if "fixed_runs" in measure and "target_interval" in measure:
        yield Fault(("measure", "fixed_runs"), "fixed_runs and target_interval exclude each other: remove one of them")
    if measure.get("bricks") is False and measure.get("end_to_end") is False and not has_scenarios:
        yield Fault(
            ("measure", "bricks"), "bricks and end_to_end are both false, and there is no [[scenario]]: set one to true"
        )


def _in_scenario(place: Place, scenario: _Table) -> Iterator[Fault]:
    kind = ScenarioKind(scenario["kind"])
    if kind is ScenarioKind.SERVER and "bound_ms" not in scenario and "rate" not in scenario:
        yield Fault(place, "a server needs bound_ms, the bound of its latency, or rate: add one of them")
    if kind is not ScenarioKind.SERVER and "rate" in scenario:
        yield Fault((*place, "rate"), f'kind {kind.value} has no rate: remove it, or choose kind = "server"')
    if kind is ScenarioKind.SINGLE and any(size != 1 for size in as_list(scenario.get("batch"))):
        yield Fault((*place, "batch"), "a single stream has one request at a time: remove batch")


def _in_result(place: Place, result: _Table, models: list[str], frameworks: list[str]) -> Iterator[Fault]:
    for key, known in (("model", models), ("framework", frameworks)):
        if result[key] not in known:
            table = "[[model]]" if key == "model" else "[[runtime]]"
            listed = ", ".join(shown(name) for name in dict.fromkeys(known[:8]))
            yield Fault(
                (*place, key), f"{key} = {shown(result[key])}: no {table} has this {_OWN_KEYS[key]}; they have {listed}"
            )
    yield from _in_time(place, result["when"])
    for low, middle, high in (
        ("low_ms", "measured_ms", "high_ms"),
        ("estimate_low_ms", "estimate_ms", "estimate_high_ms"),
    ):
        given = [key for key in (low, middle, high) if key in result]
        if len(given) not in (0, 3):
            missing = next(key for key in (low, middle, high) if key not in result)
            yield Fault((*place, given[0]), f"{given[0]} without {missing}: give {low}, {middle} and {high}, or none")
        elif given and result[low] > result[high]:
            yield Fault((*place, low), f"{low} = {shown(result[low])} is above {high}: correct one of them")


_OWN_KEYS = {"model": "name", "framework": "framework"}


def _in_time(place: Place, text: str) -> Iterator[Fault]:
    if time_of(text) is None:
        yield Fault(
            (*place, "when"),
            f'when = {shown(text)}: it has to be a time with its time zone, such as "2026-11-27T08:00:00+00:00"',
        )


def time_of(text: str) -> datetime | None:
    """Return the time in a text; None if it is no time with a time zone."""
    try:
        # Python 3.10 does not read the Z.
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def _combination(result: _Table) -> Hashable:
    """Return what tells a result from the others."""
    usual = {it.name: plain(it.default) for it in fields(RecordedResult)}
    variant = [result.get(key, usual[key]) for key in (*_OF_FRAMEWORK, *_OF_VARIANT)]
    return (*variant, _frozen(result.get("variables", {})))


def _frozen(value: Any) -> Hashable:
    """Return a value that can be looked up, equal for equal values."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _repeated(keys: Iterable[Hashable]) -> Iterator[int]:
    """Yield the number of each key that has occurred before."""
    seen = set()
    for number, key in enumerate(keys):
        if key in seen:
            yield number
        seen.add(key)
