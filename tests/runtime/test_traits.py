from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.inside.answering import BACKENDS
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import (
    MXNET,
    ONNX_RUNTIME,
    TRAITS,
    Format,
    Traits,
    runtime_title,
    traits_of,
    usual_traits,
)
from docs.generators.fields import fields_of
from tests.models.onnx_models import loaded, model


def test_each_framework_has_a_backend_in_the_worker() -> None:
    assert set(TRAITS) == set(BACKENDS)


def test_the_page_on_frameworks_explains_each_fact() -> None:
    """A comment above each field becomes its explanation."""
    assert [it.name for it in fields_of(Traits) if not it.about] == []


def test_each_format_has_a_default_framework() -> None:
    assert {form: usual_traits(form) for form in Format} == {Format.MXNET: MXNET, Format.ONNX: ONNX_RUNTIME}


def test_an_unknown_framework_is_refused_by_name() -> None:
    with pytest.raises(RegistryError, match="'theano'; this version of dlbricks knows mxnet, onnxruntime"):
        traits_of("theano")


def test_a_runtime_of_an_unknown_framework_hides_no_other(tmp_path: Path) -> None:
    """A newer version may have registered it."""
    registry = Registry(tmp_path)
    theirs = Runtime("theirs", "/usr/bin/python3", "theano", "1.0", "3.11.0")
    with mock.patch.object(Registry, "_registered", lambda _: (theirs,)):
        assert registry.preferred_for({Format.ONNX}) in registry.all()
        assert registry.find("theirs") == theirs


def test_another_framework_for_a_format_brings_its_own_rules(tmp_path: Path) -> None:
    """It needs a `Traits` instance, and no change to any other package."""
    other = replace(
        ONNX_RUNTIME, framework="other", title="Other", own_runtime="other", packages=("pytest",), writes_in_place=True
    )
    with mock.patch.dict(TRAITS, {"other": other}):
        registry = Registry(tmp_path)
        named = registry.find("other")
        assert (named.framework, named.traits) == ("other", other)
        assert registry.runtime_for({Format.ONNX}).traits is ONNX_RUNTIME
        assert registry.one_of_each_format(named)[Format.ONNX] == named
        assert Runtime("it", "python", "other", "1.0", "3.11").side_by_side(2).at_once == 2
    nodes = [
        make_node("Relu", ["x"], ["y"]),
        make_node("Tanh", ["y"], ["z"]),
        make_node("Add", ["y", "z"], ["sum"]),
        make_node("Mul", ["sum", "y"], ["product"]),
    ]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 2)}, ["product"]))
    contexts = [context_key(it, [2], output_layouts(it)) for it in (graph, replace(graph, traits=other))]
    assert contexts == ["plain+plain", "plain:kept+plain"]


def test_a_runtime_and_a_framework_have_a_name_for_people() -> None:
    names = ("onnxruntime-1.32.0 python-3.11 threads-2", "openvino", "default", "default-onnx", "mine")
    assert [runtime_title(it) for it in names] == ["ONNX Runtime 1.32.0", "OpenVINO", "MXNet", "ONNX Runtime", "mine"]
