"""OpenVINO's profiler: the time of each executed node.

It counts whole microseconds, and tells the mean of all runs since the model was compiled, rounded down. So the model is
compiled again after a few runs, and the time of a request is the difference of two totals.

A line that its oneDNN prints does not name its node. Nodes run in a fixed order, each with one primitive of its kind at
most, so lines and nodes of a kind correspond in order. Conversions of layouts also run inside of other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from dlbricks_tui.runtime.inside.backend import OperatorsOfRuns, ProfiledNetwork, RefusalError
from dlbricks_tui.runtime.inside.openvino_decoders import ModelRequest
from dlbricks_tui.runtime.inside.openvino_graph import Executed, executed_nodes, numbers_of
from dlbricks_tui.runtime.inside.openvino_models import ModelText, ask, compiled
from dlbricks_tui.runtime.protocol import Reason, Said, TracedOperator

# The totals are known to this many microseconds after as many runs.
_MOST_RUNS = 16
_NANOSECONDS_PER_MICROSECOND = 1000
# Rounding down takes away this much on average, from each duration and from each mean (docs/log/openvino.md).
_ROUNDED_OFF_US = 0.5
# Nodes of these kinds may only pass on memory, which takes no time.
_PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


class ProfiledOpenvinoModel(ProfiledNetwork):
    """A model that is compiled with counters, and again when these have become coarse."""

    def __init__(
        self, core: Any, model: Any, text: ModelText, inputs: Sequence[Any], in_place: Mapping[int, Any]
    ) -> None:
        self._core = core
        self._model = model
        self._text = text
        self._inputs = inputs
        self._in_place = in_place
        self._request: Any = None
        self._runs = 0
        # The executed nodes, and for each the number of a node of the network.
        self._executed: Sequence[Executed] = ()
        self._numbers: Sequence[int] = ()

    def run(self, warm: int, repeat: int, before: Callable[[], Any]) -> list[list[TracedOperator]]:
        """Run the model; return the mean times of the last `repeat` runs as those of one run."""
        if self._request is None or self._runs + warm + repeat > _MOST_RUNS:
            self._compile()
        self._runs += ask(self._request.begin, Reason.UNBUILDABLE)
        for _ in range(warm):
            self._run(before)
        begin, taken_us = self._totals_us(), 0.0
        for _ in range(repeat):
            before()
            began = perf_counter()
            self._run(lambda: None)
            taken_us += (perf_counter() - began) * 1e6
        row = self._row(begin, repeat)
        return [_with_overhead(row, taken_us / repeat) if self._request.has_caches else row]

    def trace(self, warm: int, repeat: int, watch: Callable[[Callable[[], None]], int]) -> OperatorsOfRuns:
        """Run the model; each run has the mean times of all watched ones."""
        if self._request is None or self._runs + warm > _MOST_RUNS:
            self._compile()
        self._runs += ask(self._request.begin, Reason.UNBUILDABLE)
        for _ in range(warm):
            self._run(lambda: None)
        begin = self._totals_us()
        for _ in range(repeat):
            watch(lambda: self._run(lambda: None))
        return OperatorsOfRuns([self._row(begin, repeat)] * repeat, has_starts=False)

    def with_owners(self, lines: tuple[Said, ...]) -> tuple[Said, ...]:
        return with_owners(lines, [it.kind for it in self._executed], self._numbers)

    def _compile(self) -> None:
        # Frees the memory of the one before.
        self._request = None
        found = compiled(self._core, self._model, Reason.UNBUILDABLE, profiled=True)
        self._request = ModelRequest(self._model, found.create_infer_request())
        self._request.feed(range(len(self._inputs)), self._inputs, self._in_place)
        self._executed = executed_nodes(found, self._text.nodes)
        self._numbers = numbers_of(self._executed, self._text.conversions, self._text.nodes)
        self._runs = 0
        self._run(lambda: None)

    def _run(self, before: Callable[[], Any]) -> None:
        before()
        ask(self._request.run, Reason.UNBUILDABLE)
        self._runs += 1

    def _totals_us(self) -> dict[str, float]:
        """Return the time of each node in all runs; 0 if it takes less than a microsecond."""
        means = {it.node_name: round(it.real_time.total_seconds() * 1e6) for it in self._request.request.profiling_info}
        most_rounded_off = self._runs - 1
        return {name: mean * self._runs + most_rounded_off / 2 if mean else 0.0 for name, mean in means.items()}

    def _row(self, begin: Mapping[str, float], runs: int) -> list[TracedOperator]:
        """Return the nodes that ran, one after another, with the mean of their times in the last runs."""
        row: list[TracedOperator] = []
        at, end = 0, self._totals_us()
        for place, it in enumerate(self._executed):
            total = end.get(it.name, 0.0)
            if total or it.kind not in _PASSING:
                taken_us = max(0.0, total - begin.get(it.name, 0.0)) / runs + _ROUNDED_OFF_US
                taken_ns = round(taken_us * _NANOSECONDS_PER_MICROSECOND)
                row.append(TracedOperator(self._numbers[place], it.kind, at, taken_ns))
                at += taken_ns
        return row


def _with_overhead(row: list[TracedOperator], taken_us: float) -> list[TracedOperator]:
    """Return operators that take as long as the whole run.

    Where sizes are open until it runs, each node also takes time that the profiler does not count, which hardly depends
    on its work: a third of a step of 135 million weights.
    """
    rest_ns = taken_us * _NANOSECONDS_PER_MICROSECOND - sum(it.duration_ns for it in row)
    each_ns = max(0, round(rest_ns / max(1, len(row))))
    return [it._replace(duration_ns=it.duration_ns + each_ns) for it in row]


# oneDNN's primitives by the kinds of nodes that run them.
_PRIMITIVES = {
    "Convolution": ("convolution",),
    "Deconvolution": ("deconvolution", "convolution"),
    "FullyConnected": ("inner_product", "matmul"),
    "MatMul": ("matmul",),
    "Pooling": ("pooling", "pooling_v2"),
    "Lrn": ("lrn",),
    "Softmax": ("softmax", "softmax_v2"),
    "RNNCell": ("rnn",),
    "RNNSeq": ("rnn",),
    "Eltwise": ("eltwise", "binary"),
}
_CONVERSION, _REORDER = "Reorder", "reorder"
_CONVOLUTION, _CONVOLUTIONS = "Convolution", ("convolution", "deconvolution")


def with_owners(lines: Sequence[Said], kinds: Sequence[str], numbers: Sequence[int]) -> tuple[Said, ...]:
    """Return the lines of one run with the numbers of their nodes, None where lines and nodes do not correspond.

    `kinds` are those of the executed nodes in order, and `numbers` what each is known by.
    """
    ran = [_primitive(it.line) for it in lines]
    missing = sum(kind == _CONVOLUTION for kind in kinds) - sum(primitive in _CONVOLUTIONS for primitive in ran)
    if missing > 0:
        # In some versions, oneDNN fails to compute convolutions while it prints.
        message = (
            f"oneDNN prints nothing about {missing} convolutions: this version of OpenVINO leaves them out while it "
            "prints, or computes them without oneDNN"
        )
        raise RefusalError(Reason.UNBUILDABLE, message)
    places = _places_of_computing(ran, kinds)
    places.update(_places_of_conversions(ran, kinds, places))
    return tuple(
        Said(it.line, numbers[places[number]] if number in places else None) for number, it in enumerate(lines)
    )


def _primitive(line: str) -> str:
    """Return the primitive that a line tells of: `...,exec,cpu,PRIMITIVE,...`; empty for other lines."""
    words = line.split(",")
    place = words.index("exec") + 2 if "exec" in words else len(words)
    return words[place] if place < len(words) else ""


def _places_of_computing(ran: Sequence[str], kinds: Sequence[str]) -> dict[int, int]:
    """Return the place of the node by the number of the line, for each kind with as many lines as nodes."""
    owners: dict[str, list[str]] = {}
    for kind, primitives in _PRIMITIVES.items():
        if kind in kinds:
            for primitive in primitives:
                owners.setdefault(primitive, []).append(kind)
    found: dict[int, int] = {}
    # Kinds that share a primitive are counted together.
    for members in _joined(list(owners.values())):
        nodes = [place for place, kind in enumerate(kinds) if kind in members]
        printed = [number for number, primitive in enumerate(ran) if set(owners.get(primitive, ())) & members]
        if len(nodes) == len(printed):
            found.update({number: nodes[place] for place, number in enumerate(printed)})
    return found


def _joined(groups: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the groups, with those joined that have a member in common."""
    found: list[set[str]] = []
    for group in groups:
        together = set(group)
        for other in [it for it in found if it & together]:
            together |= other
            found.remove(other)
        found.append(together)
    return found


def _places_of_conversions(ran: Sequence[str], kinds: Sequence[str], known: Mapping[int, int]) -> dict[int, int]:
    """Return the place of the node of each conversion, between the nodes of the lines before and after it.

    It is a node of its own, or belongs to the node that computes next.
    """
    found: dict[int, int] = {}
    following = _following(ran, known)
    before = -1
    for number, primitive in enumerate(ran):
        if number in known:
            before = known[number]
        elif primitive == _REORDER:
            after = following[number]
            until = len(kinds) if after is None else after
            own = next((place for place in range(before + 1, until) if kinds[place] == _CONVERSION), after)
            if own is not None:
                found[number] = own
                before = max(before, own if kinds[own] == _CONVERSION else before)
    return found


def _following(ran: Sequence[str], known: Mapping[int, int]) -> list[int | None]:
    """Return for each line the place of the next node that computes by a known line."""
    found: list[int | None] = []
    after: int | None = None
    for number in reversed(range(len(ran))):
        after = known.get(number, after)
        found.append(after)
    return found[::-1]
