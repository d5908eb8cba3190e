from dataclasses import fields
from pathlib import Path
from unittest import mock

import pytest

from dlbricks_tui.estimate.calibration import CALL_MS, TERMS
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.inside.answering import BACKENDS
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, TRAITS, Format, Traits, traits_of, usual_traits


def test_each_framework_has_a_backend_in_the_worker() -> None:
    assert set(TRAITS) == set(BACKENDS)


@pytest.mark.parametrize("traits", TRAITS.values(), ids=list(TRAITS))
def test_estimates_can_apply_the_constants_of_each_framework(traits: Traits) -> None:
    assert set(traits.calibration_constants) <= {CALL_MS, *TERMS}


def test_the_page_on_runtimes_explains_each_fact() -> None:
    page = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
    assert [it.name for it in fields(Traits) if f"`{it.name}`" not in page] == []


def test_each_format_has_a_usual_framework() -> None:
    assert {form: usual_traits(form) for form in Format} == {Format.MXNET: MXNET, Format.ONNX: ONNX_RUNTIME}


def test_an_unknown_framework_is_refused_by_name() -> None:
    with pytest.raises(RegistryError, match="'theano'; this version of dlbricks knows mxnet, onnxruntime"):
        traits_of("theano")


def test_a_runtime_of_an_unknown_framework_hides_no_other(tmp_path: Path) -> None:
    """A newer version may have registered it."""
    registry = Registry(tmp_path)
    theirs = Runtime("theirs", "/usr/bin/python3", "theano", "1.0", "3.11.0")
    with mock.patch.object(Registry, "_registered", lambda _: (theirs,)):
        assert registry.preferred_for(Format.ONNX) in registry.all()
        assert registry.find("theirs") == theirs
