"""The machines that the authors measured on, as far as their instance types tell."""

from typing import NamedTuple

from dlbricks_tui.store.records import System

_GIBIBYTE = 1 << 30
_HASWELL = "Intel Xeon E5-2666 v3"
_SKYLAKE = "Intel Xeon Platinum 8124M"


class _Type(NamedTuple):
    cpu: str
    virtual_cpus: int
    memory_gib: float


# As Amazon describes its instance types; the processors are those of 2019.
_TYPES = {
    "c4.xlarge": _Type(_HASWELL, 4, 7.5),
    "c4.2xlarge": _Type(_HASWELL, 8, 15),
    "c5.large": _Type(_SKYLAKE, 2, 4),
    "c5.xlarge": _Type(_SKYLAKE, 4, 8),
    "c5.2xlarge": _Type(_SKYLAKE, 8, 16),
    "c5n.xlarge": _Type(_SKYLAKE, 4, 10.5),
}
_UNKNOWN = _Type("unknown", 0, 0)


def system_of(name: str) -> System:
    """The system that a folder of the checkout is called after; of a type not known, nothing but the name."""
    known = _TYPES.get(name, _UNKNOWN)
    return System(
        id=name,
        name=name,
        cpu=known.cpu,
        cores=known.virtual_cpus,
        memory_bytes=int(known.memory_gib * _GIBIBYTE),
        instance_type=name,
        facts=(("vendor", "Amazon EC2"),) if known is not _UNKNOWN else (),
    )
