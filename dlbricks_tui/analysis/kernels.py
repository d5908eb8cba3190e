"""The kernel by which a runtime computes each layer of a model, and why it refused the ones that it prefers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.bricks.layouts import is_convolution
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import instruction_sets
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.models.graph import Layer, LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.models.onnx_layers import COMPILED
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Explain, Said
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation

REORDER = "reorder"
_LAYOUT = re.compile(r"(src|dst)[_:]\S*?blocked:(\w+)")
_STAMP = re.compile(r"\d+(?:\.\d+)?(?:e\+?\d+)?$")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class RanPrimitive:
    """A primitive of oneDNN that ran."""

    # Such as `convolution`, `reorder` or `pooling_v2`.
    primitive: str
    implementation: str
    # The layouts of what it reads and writes, as far as they are blocked.
    layouts: tuple[str, ...]
    # The sizes, as oneDNN writes them.
    problem: str
    taken_ms: float
    # The time of the host's clock at its start; None if the line has none.
    host_ns: int | None = None


def ran_primitive(line: str) -> RanPrimitive | None:
    """Return the primitive that a line tells of: `...,[TIME,]...exec,cpu,PRIMITIVE,IMPLEMENTATION,...,PROBLEM,MS`."""
    words = line.split(",")
    if "exec" not in words:
        return None
    place = words.index("exec")
    rest = words[place + 1 :]
    if len(rest) < 4:
        return None
    try:
        taken_ms = float(rest[-1])
    except ValueError:
        return None
    stamps = [word for word in words[1:place] if _STAMP.match(word)]
    # `x64:gemm:jit` and `pooling_v2` have other names in other versions.
    return RanPrimitive(
        rest[1],
        rest[2],
        tuple(layout for _, layout in _LAYOUT.findall(line)),
        rest[-2] if len(rest) > 4 else "",
        taken_ms,
        round(float(stamps[0]) * _NS_PER_MS) if stamps else None,
    )


_SECONDS = 300.0
# The vector instructions in the names of kernels, the widest first, and the numbers that a register of them holds.
_WIDTHS = {"amx": 16, "avx512": 16, "avx2": 8, "avx": 8, "sse41": 4}
_IN_NAMES = re.compile(r"avx512|avx2|avx|sse4[12]")
_SIZE = re.compile(r"([a-z]+)(\d+)")
_SPATIAL = ("d", "h", "w")
# oneDNN's name for the problems whose log says their sizes, by which they are found again.
_CONVOLUTION = "convolution"
# ONNX Runtime's operators in its blocked layout.
_NCHWC = "onnx.com.microsoft.nchwc."
_BLOCKABLE = ("Conv", "FusedConv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
_BLOCKED_KINDS = (Kind.CONVOLUTION, Kind.POOLING)


class KernelsError(UserError):
    """The kernels of a model cannot be told."""


@dataclass(frozen=True, slots=True)
class LayerKernel:
    """The kernel of a layer."""

    layer: int
    # As the runtime calls it, such as `brgconv_1x1:avx512_core`; empty if the runtime does not tell.
    implementation: str
    # Its vector instructions: `avx512`, `avx2` and so on; empty if they are not known.
    instructions: str
    # The layouts between which tensors are converted within the layer, such as `aBcd8b -> acdb`.
    conversions: tuple[str, ...] = ()
    # The reasons why the runtime refused kernels that it tries first.
    refusals: tuple[str, ...] = ()
    # True if the reasons follow from the shapes, and the runtime does not tell them.
    derived: bool = False


def explain(
    graph: LayerGraph,
    runtime: Runtime,
    log: Path,
    program: Path = INSIDE,
    started: Callable[[Worker], None] = lambda _: None,
) -> tuple[LayerKernel, ...]:
    """Return the kernel of each layer.

    MXNet and OpenVINO run the model once more for it, in a process whose oneDNN prints what it chooses. `started` takes
    this process, and may interrupt it.
    """
    lines: Sequence[Said] = ()
    owners: Mapping[int, int] = {}
    if runtime.traits.explaining_settings:
        network, owners = whole_network(graph)
        with Worker(runtime.for_explaining(), log, program) as worker:
            started(worker)
            lines = worker.ask(Explain(network), _SECONDS).lines
    return kernels_in(graph, lines, owners, runtime, widest_of(runtime))


def widest_of(runtime: Runtime) -> str:
    """Return the widest vector instructions that kernels of a runtime may use on this host; empty for none of x86."""
    limit = runtime.kernels.instructions
    if limit is InstructionSet.ALL:
        limit = next((it for it in reversed(instruction_sets(HostFiles())) if it is not limit), limit)
    return instructions_in(limit.value)


def kernels_in(
    graph: LayerGraph, lines: Iterable[Said], owners: Mapping[int, int], runtime: Runtime, widest: str
) -> tuple[LayerKernel, ...]:
    """Return the kernel of each layer by the lines of oneDNN about the operators of a network, whose layers own them.

    Kernels may use instructions up to the widest.
    """
    ran: dict[int, list[RanPrimitive]] = defaultdict(list)
    unowned = []
    for said in lines:
        found = ran_primitive(said.line)
        if said.node is None:
            unowned.append(said.line)
        elif found is not None and said.node in owners:
            ran[owners[said.node]].append(found)
    refused = [
        ({name: int(size) for name, size in _SIZE.findall(problem)}, reasons)
        for problem, reasons in _refusals_in(unowned).items()
    ]
    kernels = []
    for layer in graph.layers:
        kernel, sizes = _kernel(layer, ran.get(layer.index, ())), _sizes(layer)
        fitting = [reasons for stated, reasons in refused if sizes and sizes.items() <= stated.items()]
        told = dict.fromkeys(reason for reasons in fitting for reason in reasons)
        if told or _compiled(layer):
            kernels.append(replace(kernel, refusals=tuple(told)))
        elif len(runtime.traits.optimisations) > 1:
            kernels.append(_outside_of_blocks(kernel, layer, runtime.kernels.optimisation, widest))
        else:
            kernels.append(_narrowed(kernel, layer, widest))
    return tuple(kernels)


def instructions_in(name: str) -> str:
    """Return the vector instructions in the name of a kernel; empty without any."""
    match = re.search("amx", name) or _IN_NAMES.search(name)
    return "" if match is None else match[0].replace("sse42", "sse41")


def _kernel(layer: Layer, ran: Sequence[RanPrimitive]) -> LayerKernel:
    """Return the kernel of a layer without reasons: the one that took longest, if several ran."""
    conversions = tuple([" -> ".join(it.layouts) for it in ran if it.primitive == REORDER])
    computing = [it for it in ran if it.primitive != REORDER] or ran
    if computing:
        name = max(computing, key=lambda it: it.taken_ms).implementation
        return LayerKernel(layer.index, name, instructions_in(name), conversions)
    executed = [text.split()[1] for text in _compiled(layer)]
    name = next(filter(instructions_in, executed), executed[0] if executed else "")
    return LayerKernel(layer.index, name, instructions_in(name))


def _compiled(layer: Layer) -> tuple[str, ...]:
    found = dict(layer.operators[0].params).get(COMPILED, ()) if layer.operators else ()
    return tuple(map(str, found)) if isinstance(found, tuple) else ()


def _refusals_in(lines: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the reasons by the problem that they belong to, as oneDNN writes its sizes.

    A line is `...,create:dispatch,PRIMITIVE,REASON,PLACE`, or names the problem in front of the reason. Lines without a
    problem belong to the one before.
    """
    found: dict[str, list[str]] = defaultdict(list)
    problem = ""
    for line in lines:
        words = line.split(",")
        if "create:dispatch" not in words:
            # The kernel that was accepted ends the refusals of its problem.
            problem = "" if any(word.startswith("create:cache") for word in words) else problem
            continue
        rest = words[words.index("create:dispatch") + 1 :]
        if len(rest) < 3 or rest[0] != _CONVOLUTION:
            continue
        primitive, *rest, place = rest
        # Engine, primitive, implementation, kind, layouts, attributes, algorithm, sizes, and the reason.
        names_problem = len(rest) > 8 and rest[1] == primitive
        if names_problem:
            problem = rest[7]
        if problem:
            kernel = rest[2].partition(":")[0] if names_problem else Path(place.partition(":")[0]).stem
            found[problem].append(f"{kernel}: {','.join(rest[8:] if names_problem else rest)}")
    return found


def _sizes(layer: Layer) -> dict[str, int]:
    """Return the sizes of a convolution by oneDNN's names: channels, image and window; none of other layers."""
    operator = next((it for it in layer.operators if is_convolution(it)), None)
    if operator is None or len(operator.inputs) < 2:
        return {}
    read, weight = (layer.type_of(wire).shape for wire in operator.inputs[:2])
    made = operator.outputs[0].shape if operator.outputs else None
    if read is None or weight is None or made is None or len(read) != len(weight):
        return {}
    found = {"ic": read[1], "oc": made[1]}
    for place, name in enumerate(_SPATIAL[len(_SPATIAL) - len(read) + 2 :], start=2):
        found |= {f"i{name}": read[place], f"k{name}": weight[place], f"o{name}": made[place]}
    return found


def _narrowed(kernel: LayerKernel, layer: Layer, widest: str) -> LayerKernel:
    """Add why oneDNN 2.4, which does not tell, computed a layer with narrower instructions than it may, or not at all.

    Its kernels compute as many channels at once as a register holds numbers, and refuse other numbers of channels.
    """
    if not kernel.implementation:
        is_usual = layer.kind in _BLOCKED_KINDS
        return replace(kernel, refusals=("oneDNN did not compute it",)) if is_usual else kernel
    most, taken, sizes = _WIDTHS.get(widest, 0), _WIDTHS.get(kernel.instructions, 0), _sizes(layer)
    if taken >= most or not sizes:
        return kernel
    for name, what in (("oc", "output channels"), ("ic", "input channels")):
        if sizes[name] % most:
            reason = f"{sizes[name]} {what} are no multiple of the {most} numbers in a register of {widest}"
            return replace(kernel, refusals=(reason,), derived=True)
    return kernel


def _outside_of_blocks(kernel: LayerKernel, layer: Layer, optimisation: Optimisation, widest: str) -> LayerKernel:
    """Add the nodes that ONNX Runtime runs, and why they are not in its blocked layout, which it does not tell."""
    kernel = replace(kernel, implementation="+".join(dict.fromkeys(it.native.op for it in layer.operators)))
    plain = [it for it in layer.operators if not it.op.startswith(_NCHWC)]
    if not any(it.native.op.rpartition(".")[2] in _BLOCKABLE for it in plain):
        return kernel
    if optimisation is not Optimisation.ALL:
        return replace(kernel, refusals=(f"optimisation {optimisation.value} leaves the NCHWc layout out",))
    block, sizes = _WIDTHS.get(widest, 0), _sizes(layer)
    if block and sizes and sizes["oc"] % block:
        reason = f"{sizes['oc']} output channels are no multiple of the block of {block} of the NCHWc layout"
        return replace(kernel, refusals=(reason,), derived=True)
    return kernel
