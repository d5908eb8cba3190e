"""The report docs/accuracy.md: the errors of the estimates in data folders, host by host, and the promises."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.command_line import told
from benchmarks.promises import Promise
from dlbricks_tui.models.library import TABLE1_PREFIX

LEVELS = ("fused", "written")
FIFTY, ZOO, MADE_UP = "The fifty models", "The Gluon zoo", "Networks made up by chance"
GLUONCV, OTHER_KINDS = "Networks of GluonCV", "Networks of other kinds"
ONNX, ONNX_ALL_THREADS = "ONNX models by one thread", "ONNX models by all threads"
FIFTY_BY_ONNX_RUNTIME = "The fifty models on ONNX Runtime by one thread"
# Those that are held to the promise for networks nobody has seen.
OTHERS = (ZOO, MADE_UP, GLUONCV, OTHER_KINDS)
# The paper's 4.4 is of the others: its data have no layers of this one.
WITHOUT_LAYERS = f"{TABLE1_PREFIX}:50"


@dataclass(frozen=True)
class Group:
    """Models that are reported together, at some levels, by what a data folder holds of runtimes with such settings.

    `runtime` names a framework for models with files of several formats.
    """

    title: str
    models: Sequence[str]
    levels: Sequence[str]
    data: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The models and the runtime as commands take them."""
        return (*self.models, *self.runtime_words)

    @property
    def runtime_words(self) -> tuple[str, ...]:
        """The runtime as commands take it."""
        return () if self.runtime is None else ("--runtime", self.runtime)


@dataclass(frozen=True)
class Judged:
    """A model that is known in both ways."""

    model: str
    sequential_ms: float
    low_ms: float
    high_ms: float
    measured_ms: float

    @property
    def error(self) -> float:
        return self.sequential_ms / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        return self.low_ms <= self.measured_ms <= self.high_ms


@dataclass(frozen=True)
class Section:
    """Part of the report: what one host knows of a group at a level."""

    group: Group
    level: str
    system: str
    models: Sequence[Judged]
    # Which models it does not know in both ways.
    missing: Sequence[str]

    @property
    def title(self) -> str:
        """What stands before its figures."""
        return f"{self.group.title}, {self.level}, `{self.system}`"


def report(groups: Sequence[Group], files: Mapping[Path, str]) -> Iterator[str]:
    """The lines of the report; each data folder's results are written to the file of such a name."""
    yield "# Accuracy"
    yield ""
    yield "Estimate over end to end at G=1 and batch 1, for each host both measured there. Written by `make accuracy`;"
    yield "`dlbricks results import` reads the files that have every sample. How the numbers come about is told in"
    yield "[measuring](measuring.md)."
    yield ""
    for folder, name in files.items():
        yield f"[{name}]({name}):"
        yield ""
        yield from contents(folder)
        yield ""
    sections = [
        section
        for level in LEVELS
        for group in groups
        if level in group.levels
        for section in sections_of(group, level)
    ]
    for section in sections:
        if section.missing:
            names = "; ".join(section.missing)
            counted = f"{len(section.models)} of {len(section.group.models)}"
            yield f"{section.title}: {counted} are known in both ways so far, not {names}."
            yield ""
    yield from summary(sections)
    yield from promises(sections)
    for section in sections:
        yield from table(section)


def contents(data: Path) -> Iterator[str]:
    """What a data folder holds, on which systems, by which runtimes."""
    for system in systems_in(data):
        for kind in system["results"]:
            yield (
                f"- {system['name']} (`{system['system']}`), `{kind['runtime']}`, {kind['level']}: "
                f"{kind['bricks']:,} bricks in their contexts, {kind['models']} networks end to end"
            )


def systems_in(data: Path) -> list[dict[str, Any]]:
    """The hosts whose results a data folder has, and what it has of each."""
    return told(data, "systems") or []


def sections_of(group: Group, level: str) -> Iterator[Section]:
    """What is known of a group at a level, host by host."""
    for system in systems_in(group.data):
        models, missing = judged(group, level, system["system"])
        if models:
            yield Section(group, level, system["system"], models, missing)


def judged(group: Group, level: str, system: str) -> tuple[list[Judged], list[str]]:
    """The models whose estimate is complete and that were timed end to end, and the names of the others."""
    words = ("estimate", *group.words, "--level", level, "--system", system)
    found = told(group.data, *words, settings=group.settings) or []
    known = [it for it in found if it["complete"] and it["measured_ms"]]
    models = [
        Judged(it["model"], it["sequential_ms"], it["interval_ms"][0], it["interval_ms"][1], it["measured_ms"])
        for it in known
    ]
    return models, [it["model"] for it in found if it not in known]


def summary(sections: Iterable[Section]) -> Iterator[str]:
    """A line for each section, beside what the paper's own data give."""
    yield (
        "| | level | host | models | geometric mean | mean absolute error | worst | within 5 % | within 10 % "
        "| in interval | networks | their mean error |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for section in sections:
        models = section.models
        yield (
            f"| {section.group.title} | {section.level} | `{section.system}` | {len(models)} "
            f"| {geometric_mean(models):.3f} | {mean_error(models):.1%} | {worst(models):+.1%} "
            f"| {within(0.05, models):.0%} | {within(0.1, models):.0%} | {inside(models):.0%} "
            f"| {len(distinct(models))} | {mean_error(distinct(models)):.1%} |"
        )
    yield "| the paper's data, MXNet-MKL 1.5.1 | written | c5.xlarge | 49 | 0.969 | 3.1% | | 82% | | | | |"
    yield ""
    yield "Some of the fifty are the same network with other weights, and are measured once: *networks* are those that"
    yield "differ."
    yield ""


def promises(sections: Iterable[Section]) -> Iterator[str]:
    """What was promised before anything was measured, and what came of it."""
    yield "| of | promised | found | |"
    yield "|---|---|---|---|"
    for section in sections:
        for it in promised(section):
            kept = "kept" if it.kept else "**missed**"
            yield f"| {section.title} | {it.what} {it.wanted} | {it.found} | {kept} |"
    yield ""


def promised(section: Section) -> Iterator[Promise]:
    """What was promised of a group."""
    title, models = section.group.title, section.models
    if title == FIFTY:
        yield from promised_of_fifty(section)
    elif title in OTHERS:
        yield from promised_of_others(models)
    elif title in (ONNX, ONNX_ALL_THREADS):
        yield from promised_of_onnx(models)
    elif title == FIFTY_BY_ONNX_RUNTIME:
        yield from promised_of_fifty_by_onnx_runtime(models)
    if title in (FIFTY, *OTHERS, ONNX, ONNX_ALL_THREADS, FIFTY_BY_ONNX_RUNTIME):
        yield Promise("end to end in the interval", "at least 85 %", f"{inside(models):.0%}", inside(models) >= 0.85)


def promised_of_fifty(section: Section) -> Iterator[Promise]:
    """The models that the method was made for."""
    models = section.models
    found = geometric_mean(models)
    yield Promise("every model", "within 5 %", f"worst {worst(models):+.1%}", abs(worst(models)) <= 0.05)
    yield Promise("geometric mean", "within 1 %", f"{found:.3f}", abs(found - 1) <= 0.01)
    yield Promise("mean absolute error", "at most 1.5 %", f"{mean_error(models):.1%}", mean_error(models) <= 0.015)
    speedup = speedup_of(section, section.group.models)
    in_the_paper = speedup_of(section, [it for it in section.group.models if it != WITHOUT_LAYERS])
    told_as = f"{speedup:.2f}, without model 50 {in_the_paper:.2f}"
    yield Promise("speed-up by the paper's formula", "at least 4.4", told_as, speedup >= 4.4)


def speedup_of(section: Section, models: Sequence[str]) -> float:
    """How much less the unique bricks of models take than these models, by what the section's host has measured."""
    words = ("estimate", *models, *section.group.runtime_words, "--level", section.level)
    words += ("--system", section.system, "--accuracy")
    return next((it["speedup"] or 0.0 for it in told(section.group.data, *words) or ()), 0.0)


def promised_of_others(models: Sequence[Judged]) -> Iterator[Promise]:
    """Networks that had no part in the making of the method."""
    yield Promise("mean absolute error", "at most 3 %", f"{mean_error(models):.1%}", mean_error(models) <= 0.03)
    yield Promise("within 5 %", "at least 80 %", f"{within(0.05, models):.0%}", within(0.05, models) >= 0.8)


def promised_of_fifty_by_onnx_runtime(models: Sequence[Judged]) -> Iterator[Promise]:
    """Return the promises about the fifty models as ONNX files."""
    yield Promise("mean absolute error", "at most 2 %", f"{mean_error(models):.1%}", mean_error(models) <= 0.02)
    yield Promise("every model", "within 6 %", f"worst {worst(models):+.1%}", abs(worst(models)) <= 0.06)


def promised_of_onnx(models: Sequence[Judged]) -> Iterator[Promise]:
    """Return the promises about ONNX models of today's projects."""
    yield from promised_of_others(models)


def distinct(models: Sequence[Judged]) -> list[Judged]:
    """Return one of each network: equal networks share their end-to-end results."""
    return list({it.measured_ms: it for it in models}.values())


def geometric_mean(models: Sequence[Judged]) -> float:
    """Of the estimates over what was measured."""
    return math.exp(math.fsum(math.log1p(it.error) for it in models) / len(models))


def mean_error(models: Sequence[Judged]) -> float:
    """Without signs."""
    return math.fsum(abs(it.error) for it in models) / len(models)


def worst(models: Sequence[Judged]) -> float:
    """The error that is farthest off, with its sign."""
    return max((it.error for it in models), key=abs)


def within(limit: float, models: Sequence[Judged]) -> float:
    """The share of models that are no farther off."""
    return sum(abs(it.error) <= limit for it in models) / len(models)


def inside(models: Sequence[Judged]) -> float:
    """The share of models whose interval holds what was measured."""
    return sum(it.inside for it in models) / len(models)


def table(section: Section) -> Iterator[str]:
    """Every model of a section."""
    yield f"## {section.title}"
    yield ""
    yield "| model | estimate ms | 95 % interval | end to end ms | error |"
    yield "|---|--:|--:|--:|--:|"
    for it in section.models:
        interval = f"{it.low_ms:.2f} to {it.high_ms:.2f}"
        yield f"| {it.model} | {it.sequential_ms:.2f} | {interval} | {it.measured_ms:.2f} | {it.error:+.1%} |"
    yield ""
