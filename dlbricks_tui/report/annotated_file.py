"""A copy of an ONNX file whose metadata has the times of its nodes, for graph viewers."""

import gzip
from collections.abc import Mapping, MutableSequence, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.whole_models import Basis, WrittenTimes
from dlbricks_tui.atomic_write import write_named
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.onnx.model_file import parse_onnx
from dlbricks_tui.models.onnx.reading import read_onnx
from dlbricks_tui.regular_files import read_bytes
from dlbricks_tui.report.writing import ReportError
from dlbricks_tui.runtime.traits import Format

if TYPE_CHECKING:
    from onnx import ModelProto, StringStringEntryProto

_GZIP_MAGIC = b"\x1f\x8b"
_PREFIX = "dlbricks."


def write_annotated_copy(path: Path, written: LayerGraph, times: WrittenTimes, facts: Mapping[str, str]) -> int:
    """Write a copy of an ONNX file with the time of each node, and facts about the model; return the nodes without one.

    Arrays outside of the file are not copied: the copy refers to them by the same relative paths. Nodes that the layers
    of the model do not stand for have no time, such as those that compute constants.
    """
    source = written.file
    if written.format is not Format.ONNX or source is None:
        raise ReportError(
            f"{written.name} was analysed from a file of {written.format.value}, and only ONNX files are copied with "
            "times: name a --runtime that runs ONNX files"
        )
    if path.exists() and path.samefile(source):
        raise ReportError(f"{path} is the model's own file: name another file for the copy")
    model = _read(source)
    by_output = {name: node for node in model.graph.node for name in node.output if name}
    total_ps = times.total_ps or 1
    annotated: set[int] = set()
    for outputs, layers in _outputs_of(source, written):
        node = next((by_output[name] for name in outputs if name in by_output), None)
        if node is None:
            continue
        annotated.add(id(node))
        held = [times.layers[index] for index in layers]
        taken_ps = sum(it.latency_ps for it in held)
        basis = next((it.basis for it in held if it.basis is not Basis.WHOLE), held[0].basis)
        _annotate(
            node.metadata_props,
            {
                "latency_ms": f"{milliseconds(taken_ps):.6g}",
                "share": f"{taken_ps / total_ps:.4f}",
                "basis": basis.value,
            },
        )
    _annotate(model.metadata_props, {"latency_ms": f"{milliseconds(times.total_ps):.6g}", **facts})
    content = model.SerializeToString()
    try:
        write_named(path, lambda file: file.write(content))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ReportError(f"{path} cannot be written: {reason}; name another file") from None
    return len(model.graph.node) - len(annotated)


def _read(source: Path) -> "ModelProto":
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        content = read_bytes(source)
        model = ModelProto()
        model.ParseFromString(gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content)
    except (OSError, DecodeError, EOFError) as error:
        raise ReportError(f"{source} cannot be copied: {error}") from None
    return model


def _outputs_of(source: Path, written: LayerGraph) -> Sequence[tuple[Sequence[str], Sequence[int]]]:
    """Return the outputs of each node that layers stand for, with these layers."""
    nodes = parse_onnx(read_onnx(source, source.name), source.name).nodes
    found: dict[int, list[int]] = {}
    for layer in written.layers:
        # The time of a layer of several nodes stands at the last one.
        for number in layer.nodes[-1:]:
            found.setdefault(number, []).append(layer.index)
    return [(nodes[number].output, layers) for number, layers in found.items() if number < len(nodes)]


def _annotate(properties: "MutableSequence[StringStringEntryProto]", facts: Mapping[str, str]) -> None:
    from onnx import StringStringEntryProto

    entries = {it.key: it.value for it in properties} | {f"{_PREFIX}{name}": value for name, value in facts.items()}
    del properties[:]
    properties.extend(StringStringEntryProto(key=name, value=value) for name, value in entries.items())
