import platform
import sys
from types import ModuleType

import pytest

from dlbricks_tui.runtime.inside.packages import packages_of


def module(name: str, **attributes: object) -> ModuleType:
    found = ModuleType(name)
    vars(found).update(attributes)
    return found


def test_onnx_runtime_tells_the_commit_that_it_was_built_from(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "ORT Build Info: git-branch=HEAD, git-commit-id=fab30a4, build type=Release, cmake cxx flags: -O3"
    monkeypatch.setitem(sys.modules, "numpy", module("numpy", __version__="1.26.4"))
    found = module("onnxruntime", __version__="1.32.0", get_build_info=lambda: told)
    monkeypatch.setitem(sys.modules, "onnxruntime", found)
    assert packages_of("onnxruntime") == {
        "python": platform.python_version(),
        "onnxruntime": "1.32.0",
        "numpy": "1.26.4",
        "onnxruntime_build": "fab30a4",
    }


def test_an_older_version_without_build_info_has_its_version_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", module("onnxruntime", __version__="1.9.0"))
    assert "onnxruntime_build" not in packages_of("onnxruntime")


def test_the_version_of_openvino_has_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "2026.4.1-22982-e213a147257-releases/2026/4"
    monkeypatch.setitem(sys.modules, "openvino", module("openvino", __version__=version))
    assert packages_of("openvino")["openvino"] == version
