"""The versions of the packages in this interpreter that compute, as they tell them themselves."""

from __future__ import annotations

import platform
import re
import sys
from typing import Any

_COMMIT = re.compile(r"git-commit-id=(\w+)")


def packages_of(framework: str) -> dict[str, str]:
    """Return the versions by name: Python, numpy, and a framework, which are imported, with the build of the latter."""
    found = {"python": platform.python_version()}
    for name in (framework, "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str) and version:
            found[name] = version
    build = _build_of(framework, sys.modules.get(framework))
    return {**found, framework + "_build": build} if build else found


def _build_of(framework: str, module: Any) -> str:
    """Return the commit of ONNX Runtime; the version of OpenVINO contains it, and MXNet does not tell it."""
    if framework != "onnxruntime":
        return ""
    # Older versions do not tell it.
    found = _COMMIT.search(getattr(module, "get_build_info", str)())
    return found[1] if found else ""
