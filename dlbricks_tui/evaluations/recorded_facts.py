"""The facts that results are recorded with: the versions of packages, the host at the time, and variables."""

import math
from collections.abc import Mapping

from dlbricks_tui.host.fingerprint import GIBIBYTE, UNKNOWN
from dlbricks_tui.runtime.variant import INSTRUCTIONS_VARIABLE, OPTIMISATION_VARIABLE
from dlbricks_tui.store.records import Fact, Facts, Provenance, System

# The name of the fact that is the id of the method.
METHOD = "method"
# The facts about a system that are part of its id, and so hold for all of its results.
_LASTING = ("governor", "turbo", "hyper_threading", "vectors", "quota_cores")
# Variables that are parts of a variant by themselves.
_OF_THE_VARIANT = (INSTRUCTIONS_VARIABLE, OPTIMISATION_VARIABLE)


def package_facts(origin: Provenance | None, protocol: str) -> Facts:
    """Return the versions of the packages that a result was measured with, and the method."""
    return (*(() if origin is None else origin.packages), (METHOD, protocol))


def facts_of_host(system: System, origin: Provenance | None) -> Facts:
    """Return the facts about a system as they were when a result was measured, without those that it does not tell."""
    described = dict(system.facts)
    found: dict[str, Fact] = {
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_gib": math.ceil(system.memory_bytes / GIBIBYTE),
        "instance_type": system.instance_type,
        **{name: described[name] for name in _LASTING if name in described},
        **({} if origin is None else dict(origin.host)),
    }
    return tuple((name, fact) for name, fact in found.items() if is_told(fact))


def is_told(fact: Fact) -> bool:
    """Return whether a host, or a framework, tells a fact."""
    return fact not in (None, "", UNKNOWN)


def tuning_variables(settings: Mapping[str, Fact]) -> dict[str, str]:
    """Return the variables that tune a runtime, without those of its variant."""
    return {name: str(value) for name, value in settings.items() if name not in _OF_THE_VARIANT}
