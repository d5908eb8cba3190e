"""The requirements of an evaluation beside the host, its runtimes and its models: pure functions of what was found."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from dlbricks_tui.evaluations.evaluation import SHORT_HASH, EvaluatedModel, EvaluatedRuntime, Requirements
from dlbricks_tui.host.fingerprint import GIBIBYTE, UNKNOWN
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import NEWER_INSTRUCTIONS_VARIABLE, THREADS_VARIABLE, Runtime
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.runtime.variant import (
    INSTRUCTIONS_VARIABLE,
    OPTIMISATION_VARIABLE,
    InstructionSet,
    Precision,
    several,
)
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import INSTRUCTIONS, OPTIMISATION, PRECISION, THREADS
from dlbricks_tui.store.records import Fact, System

QUIET = "quiet"
NOT_SET = "not set"
# The variables that decide about parts of a variant.
_VARIABLES: Mapping[Setting[Any], Sequence[str]] = {
    THREADS: (THREADS_VARIABLE,),
    INSTRUCTIONS: (INSTRUCTIONS_VARIABLE, NEWER_INSTRUCTIONS_VARIABLE),
    OPTIMISATION: (OPTIMISATION_VARIABLE,),
}
_LIMIT = re.compile(r"(==|>=|<=|=|>|<)?\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)")
# The beginning of a version that is not one of Python packages, such as `2026.1.0-18000-abc`.
_RELEASE = re.compile(r"[0-9]+(?:\.[0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A requirement of an evaluation: what it wants, what was found, and whether that matches.

    `cure` says what to do about a mismatch. Nothing can be measured without a `needed` one, even if the user accepts
    all others.
    """

    subject: str
    wanted: str
    found: str
    matches: bool
    cure: str = ""
    needed: bool = False

    @property
    def in_words(self) -> str:
        """The requirement as marks and messages show it."""
        return f"{self.subject}: wanted {self.wanted}, found {self.found}"

    @property
    def line(self) -> str:
        """The requirement in one line, with what to do."""
        return f"{self.in_words}; {self.cure}" if self.cure else self.in_words


def host_matches(
    wanted: Requirements,
    system: System,
    instructions: Sequence[InstructionSet],
    disturbances: Sequence[str] | None = None,
) -> Iterator[Match]:
    """Yield each requirement on the system beside what the host is, which has these instruction sets.

    `disturbances` are those by others, such as `the processors are 40% busy`; None: the host was not watched.
    """
    facts = dict(system.facts)
    if wanted.cores:
        cores = system.cores_to_use
        yield match_of("cores", wanted.cores, str(cores), keeps_to(wanted.cores, cores), "use another host")
    if wanted.memory_gib:
        # The firmware reserves a varying part of the memory.
        memory = math.ceil(system.memory_bytes / GIBIBYTE)
        is_enough = keeps_to(wanted.memory_gib, memory)
        yield match_of("memory", f"{wanted.memory_gib} GiB", f"{memory} GiB", is_enough, "use another host")
    if wanted.cpu:
        is_part = wanted.cpu.lower() in system.cpu.lower()
        yield match_of("processor", wanted.cpu, system.cpu, is_part, "use another host")
    if wanted.instance_type:
        found = system.instance_type or "no cloud instance"
        is_same = wanted.instance_type == system.instance_type
        yield match_of("instance type", wanted.instance_type, found, is_same, "use an instance of this type")
    for each in wanted.instructions:
        has = each in instructions
        found = each.value if has else ", ".join(it.value for it in instructions[-3:]) or UNKNOWN
        yield match_of("instruction set", each.value, found, has, "use a host whose processor has it")
    if wanted.governor:
        cure = f"sudo cpupower frequency-set -g {wanted.governor} (in a virtual machine: on its host)"
        governor = str(facts.get("governor") or UNKNOWN)
        yield match_of("frequency governor", wanted.governor, governor, wanted.governor == governor, cure)
    for name in ("turbo", "hyper_threading"):
        asked, is_on = getattr(wanted, name), switch_in(facts, name)
        if asked is not None:
            cure = f"switch it {_switch(asked)}: see `dlbricks doctor`"
            yield match_of(name.replace("_", "-"), _switch(asked), _switch(is_on), asked == is_on, cure)
    if wanted.quiet and disturbances is not None:
        found = ", ".join(disturbances) or QUIET
        yield match_of(QUIET, QUIET, found, not disturbances, "end what computes (see `top`), or wait")


def switch_in(facts: Mapping[str, Fact], name: str) -> bool | None:
    """Return whether something of a host is on; None if the host does not tell."""
    found = facts.get(name)
    return found if isinstance(found, bool) else None


def runtime_matches(
    wanted: EvaluatedRuntime,
    traits: Traits,
    found: Runtime | None,
    shell: Mapping[str, str],
    instructions: Collection[InstructionSet],
) -> Iterator[Match]:
    """Yield each requirement on a runtime beside the runtime of this host that is nearest to it.

    `shell` has the variables of the shell, and `instructions` the instruction sets of the processor.
    """
    version = wanted.version or "any version"
    install = f"install it: pip install '{traits.packages[0]}{wanted.version}', or register an interpreter that has it"
    if found is None:
        cure = f"{install}: `dlbricks runtimes add PATH`"
        yield match_of(traits.title, version, "not installed", False, cure, needed=True)
        return
    fits = version_fits(wanted.version, found.version)
    cure = f"{install} (`dlbricks runtimes add PATH`), or change the version in the file"
    yield match_of(traits.title, version, found.version, fits, cure)
    yield from _variable_matches(wanted, traits, found, shell)
    for setting, offered in offered_by(traits, instructions).items():
        subject = f"{traits.title} {'kernels' if setting is INSTRUCTIONS else setting.name}"
        for value in asked_for(wanted, setting):
            possible = is_possible(value, offered)
            has = value.value if possible else ", ".join(it.value for it in offered)
            cure = "take it out of the file, or use another runtime or host"
            yield match_of(subject, value.value, has, possible, cure, needed=True)


def variables_of(found: Runtime) -> dict[str, str]:
    """Return the variables that tune a runtime, its number of threads among them unless it is usual."""
    stated, usual = found.settings.threads, found.traits.usual_threads(processors_here())
    threads = {} if stated in (None, usual) else {THREADS_VARIABLE: str(stated)}
    return {**dict(found.settings.environment), **threads}


def _variable_matches(
    wanted: EvaluatedRuntime, traits: Traits, found: Runtime, shell: Mapping[str, str]
) -> Iterator[Match]:
    # The variants replace some.
    replaced = {name for setting, names in _VARIABLES.items() if asked_for(wanted, setting) for name in names}
    present = {name: value for name, value in variables_of(found).items() if name not in replaced}
    for name in sorted({*wanted.variables, *present}):
        asked, has = wanted.variables.get(name), present.get(name)
        subject = f"{traits.title} variable {name}"
        if has is None and asked is not None:
            yield match_of(subject, asked, f"{asked} (set by the evaluation)", True)
            continue
        if name in shell:
            cure = f"unset {name}" if asked is None else f"unset {name}: the evaluation sets it"
        else:
            cure = f"it is a setting of runtime {found.name}: register the interpreter again without it"
        yield match_of(subject, NOT_SET if asked is None else asked, str(has), asked == has, cure)


def offered_by(traits: Traits, instructions: Collection[InstructionSet]) -> Mapping[Setting[Any], Sequence[Any]]:
    """Return the values of a variant that a framework has on a processor with these instruction sets."""
    limits = [it for it in traits.instruction_sets if it is InstructionSet.ALL or it in instructions]
    return {PRECISION: traits.precisions, INSTRUCTIONS: limits, OPTIMISATION: traits.optimisations}


def asked_for(wanted: EvaluatedRuntime, setting: Setting[Any]) -> tuple[Any, ...]:
    """Return the values of a part of the variants."""
    return several(getattr(wanted, setting.field))


def is_possible(value: Any, offered: Sequence[Any]) -> bool:
    """Return whether a value is offered; a model that is quantised in its file runs as it is."""
    return value is Precision.FILE or value in offered


def model_match(wanted: EvaluatedModel, path: Path | None, sha256: str = "") -> Match:
    """Return a model beside the file that was found for it; None: there is none."""
    asked = f"sha256 {wanted.sha256[:SHORT_HASH]}" if wanted.sha256 else "any content"
    subject = f"model {wanted.name}"
    if path is None:
        where = f"put it at {wanted.path}" if wanted.path else "state its path in the file"
        return match_of(subject, asked, "no file", False, f"{where}, or `dlbricks models add PATH`", needed=True)
    has = f"sha256 {sha256[:SHORT_HASH]} ({path})"
    return match_of(subject, asked, has, wanted.sha256 in ("", sha256), "put the file of the evaluation in its place")


def keeps_to(limit: str, value: float) -> bool:
    """Return whether a number keeps to a limit such as `4`, `==4` or `>=4`; raise ValueError for another text."""
    found = _LIMIT.fullmatch(limit.strip())
    if found is None:
        raise ValueError(f"{limit[:40]!r} is neither a number nor a limit such as >=4")
    bound = float(found[2])
    return {
        ">=": value >= bound,
        "<=": value <= bound,
        ">": value > bound,
        "<": value < bound,
    }.get(found[1], value == bound)


def version_fits(constraint: str, version: str) -> bool:
    """Return whether a version keeps to a constraint of Python packages."""
    allowed = SpecifierSet(constraint)
    if constraint.strip() == f"==={version}":
        return True
    plain = version
    try:
        Version(version)
    except InvalidVersion:
        release = _RELEASE.match(version)
        if release is None:
            return not constraint
        plain = release[0]
    return allowed.contains(plain, prereleases=True)


def exact_constraint(version: str) -> str:
    """Return the constraint that only this version fits."""
    try:
        Version(version)
    except InvalidVersion:
        return f"==={version}"
    return f"=={version}"


def match_of(subject: str, wanted: str, found: str, matches: bool, cure: str = "", *, needed: bool = False) -> Match:
    """Return a requirement; one that is met needs no cure."""
    cure, needed = "" if matches else cure, needed and not matches
    return Match(subject=subject, wanted=wanted, found=found, matches=matches, cure=cure, needed=needed)


def _switch(on: bool | None) -> str:
    return UNKNOWN if on is None else "on" if on else "off"
