"""What older MXNet files say differently, turned into what version 1.5 says.

MXNet converts old files as it loads them; ours are written again as of today, so that it no longer does.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class FlawError(Exception):
    """What is wrong with a part of a symbol file; who knows where the part stands says so."""


# A file from before 0.9 does not say its version.
OLDEST_VERSION = 800
AXIS_MAY_BE_NONE = 905

# The key under which a node's parameters stand; some files have two, one of them with annotations.
_ATTRIBUTE_KEYS = ("attr", "param", "attrs")
# Notes to the trainer, which once stood among the parameters; now they have underscores around them.
_ANNOTATIONS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")

# Inputs of operators that keep states; before 0.9 files left the states out.
_INPUTS_WITH_STATES = {
    "BatchNorm": ("data", "gamma", "beta", "moving_mean", "moving_var"),
    "BatchNorm_v1": ("data", "gamma", "beta", "moving_mean", "moving_var"),
}


def file_version(document: Any) -> int:
    """The version of MXNet that saved the file, as major * 10000 + minor * 100 + patch."""
    for key in _ATTRIBUTE_KEYS:
        facts = document.get(key) if isinstance(document, dict) else None
        declared = facts.get("mxnet_version") if isinstance(facts, dict) else None
        if isinstance(declared, list) and declared:
            declared = declared[-1]
        if isinstance(declared, int):
            return declared
    return OLDEST_VERSION


def node_attributes(raw: Mapping[str, Any], version: int) -> dict[str, str]:
    """The parameters of a node, and what stands there between underscores."""
    attributes: dict[str, str] = {}
    for key in _ATTRIBUTE_KEYS:
        found = raw.get(key)
        if not found:
            continue
        if not isinstance(found, dict):
            raise FlawError(f"has {key!r} that is not an object")
        for name, value in found.items():
            if name.endswith(_ANNOTATIONS):
                continue
            if not isinstance(value, (str, int, float)):
                raise FlawError(f"has a parameter {name[:40]!r} that is neither text nor a number")
            attributes[name] = value if type(value) is str else str(value)
    if version < AXIS_MAY_BE_NONE and raw["op"] in ("argmax", "argmin") and attributes.get("axis") == "-1":
        # It meant all axes together, which is the default now.
        del attributes["axis"]
    return attributes


def missing_states(op: str, inputs: int) -> Sequence[str]:
    """The names of the states that a node with so many inputs lacks."""
    states = _INPUTS_WITH_STATES.get(op, ())
    return states[inputs:] if inputs else ()
