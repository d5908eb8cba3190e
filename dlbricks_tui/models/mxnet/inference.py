"""The layer graph of a symbol file. The framework is asked only for types that are not in the cache."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.models.cache import ReadModel
from dlbricks_tui.models.errors import FusionRefusedError, InconsistentModelError, ModelError
from dlbricks_tui.models.graph import Level, Shape, TensorType
from dlbricks_tui.models.input_shapes import missing_shapes
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.mxnet.layer_graph import FusedFrom, InferredFile, build_graph
from dlbricks_tui.models.mxnet.loading import Framework, GraphAnswer
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile, parse_symbol, unique_name
from dlbricks_tui.models.mxnet.variables import Role, declared_axes, input_shapes, variable_roles
from dlbricks_tui.models.type_cache import CachedTypes, cache_key, read_types, write_types
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason


class InferredGraphs:
    """Reads symbol files with the types that a framework infers."""

    def __init__(self, cache: Path, framework: Framework) -> None:
        self._cache = cache
        self._framework = framework

    def read(
        self, source: ModelSource, content: bytes, level: Level, given: Mapping[str, Shape], batch_size: int | None
    ) -> ReadModel:
        """Return the layer graph of a model file."""
        file = parse_symbol(content, source.name)
        roles = variable_roles(file, {*given, *source.inputs})
        shapes = input_shapes(file, roles, given, source.inputs, source.name, batch_size)
        model = _Model(source, content, file, shapes, roles)
        inferred = self._fused(model) if level is Level.FUSED else self._written(model)
        graph = build_graph(inferred, source.name)
        first = graph.inputs[0].type.shape if graph.inputs else None
        return ReadModel(replace(graph, batch_size=first[0] if first else 1))

    def _written(self, model: "_Model") -> InferredFile:
        key = cache_key(model.content, model.shapes)
        path = self._cache / "inferred" / f"{key}.json"
        known = model.delivered_types(key) or read_types(path, key)
        if known is None or len(known.types) != len(model.file.nodes) or self._may_know_more_than(known):
            if not model.shapes:
                model.refuse_open_inputs(model.inputs)
            answer = model.ask(self._framework.infer)
            known = CachedTypes(_frozen(answer.types), answer.unknown, self._framework.identity)
            model.check(known.types, model.file)
            _keep(path, key, known)
        model.refuse_open_inputs([n for n in model.inputs if all(found.shape is None for found in known.types[n])])
        return InferredFile(model.file, model.roles, known.types, known.unknown)

    def _may_know_more_than(self, known: CachedTypes) -> bool:
        return bool(known.unknown) and known.framework != self._framework.identity

    def _fused(self, model: "_Model") -> InferredFile:
        key = cache_key(model.content, model.shapes, "fused", self._framework.identity)
        path = self._cache / "fused" / f"{key}.json"
        known = read_types(path, key)
        if known is None or known.symbol is None:
            # Inference first: its errors name inputs without a shape and unknown operators.
            self._written(model)
            answer = model.ask(self._framework.fuse)
            parts = tuple([tuple(numbers) for numbers in answer.parts])
            known = CachedTypes(_frozen(answer.types), answer.unknown, self._framework.identity, answer.symbol, parts)
            _keep(path, key, known)
        fused = parse_symbol(known.symbol or "", f"{model.source.name}, fused")
        model.check(known.types, fused)
        model.check(known.parts, fused)
        roles = {
            number: next((model.roles[part] for part in known.parts[number] if part in model.roles), Role.WEIGHT)
            for number, node in enumerate(fused.nodes)
            if node.is_variable
        }
        return InferredFile(fused, roles, known.types, known.unknown, FusedFrom(model.file, known.parts))


@dataclass(frozen=True, slots=True)
class _Model:
    source: ModelSource
    content: bytes
    file: SymbolFile
    shapes: Mapping[int, Shape]
    roles: Mapping[int, Role]

    @property
    def inputs(self) -> list[int]:
        return [number for number, role in self.roles.items() if role is Role.INPUT]

    def delivered_types(self, key: str) -> CachedTypes | None:
        return read_types(self.source.types, key) if self.source.types is not None else None

    def refuse_open_inputs(self, numbers: Sequence[int]) -> None:
        if numbers:
            nodes = [self.file.nodes[number] for number in numbers]
            raise missing_shapes({node.name: declared_axes(node) for node in nodes}, self.source.name)

    def ask(self, question: Callable[[str, Mapping[str, Shape]], GraphAnswer]) -> GraphAnswer:
        """Return the framework's answer. A refusal is reworded with the names of the model file."""
        try:
            return question(self.file.render(), {unique_name(number): shape for number, shape in self.shapes.items()})
        except WorkerRefusedError as refused:
            kind = FusionRefusedError if refused.reason in _REFUSED_TO_FUSE else InconsistentModelError
            raise kind(f"{self.source.name}: {self._in_its_own_names(str(refused))}") from None

    def check(self, answered: Sequence[object], file: SymbolFile) -> None:
        if len(answered) != len(file.nodes):
            where = self.source.name
            raise ModelError(f"{where}: {len(answered)} nodes were answered for a graph of {len(file.nodes)}")

    def _in_its_own_names(self, text: str) -> str:
        nodes = self.file.nodes

        def named(found: re.Match[str]) -> str:
            number = int(found[1])
            return repr(nodes[number].name[:80]) if number < len(nodes) and nodes[number].name else found[0]

        return _UNIQUE_NAME.sub(named, text)


_UNIQUE_NAME = re.compile(r"\bn(\d{1,9})\b")
_REFUSED_TO_FUSE = (Reason.UNFUSABLE, Reason.UNKNOWN_OPERATOR)


def _frozen(types: Sequence[Sequence[TensorType]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple([tuple(outputs) for outputs in types])


def _keep(path: Path, key: str, known: CachedTypes) -> None:
    # Without a cache, the next read asks the framework again.
    with suppress(OSError):
        write_types(path, key, known)
