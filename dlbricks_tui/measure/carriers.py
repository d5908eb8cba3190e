"""The carriers of a run, as programs for the worker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dlbricks_tui.bricks.carriers import Carrier, cover
from dlbricks_tui.bricks.identity import brick_of, whole_model
from dlbricks_tui.bricks.programs import carrier_program
from dlbricks_tui.measure.inside import COPIES
from dlbricks_tui.measure.jobs import Job, Subject, expected_ms, memory_bytes
from dlbricks_tui.measure.timed_carrier import CarrierJob
from dlbricks_tui.models.graph import LayerGraph


def carrier_jobs(subjects: Iterable[Subject], needed: Mapping[str, Job]) -> list[CarrierJob]:
    """Carriers that hold the needed bricks, given by key; models with a layer that cannot run are no carriers."""
    graphs = [subject.decomposition.graph for subject in subjects]
    runnable = [graph for graph in graphs if all(layer.unmeasurable is None for layer in graph.layers)]
    carriers = cover(runnable, needed.keys(), _expected_ms)
    return [_job(number, carrier, needed) for number, carrier in enumerate(carriers)]


def groups(carriers: Iterable[CarrierJob], most_bytes: int) -> Iterator[Sequence[CarrierJob]]:
    """The carriers in groups that fit into memory together."""
    group: list[CarrierJob] = []
    taken = 0
    for carrier in carriers:
        # Under the profiler a network has its results, and what a runtime makes of its weights, once more.
        needed = 2 * COPIES * memory_bytes(carrier.carrier.graph.layers)
        if group and taken + needed > most_bytes:
            yield group
            group, taken = [], 0
        group.append(carrier)
        taken += needed
    if group:
        yield group


def _job(number: int, carrier: Carrier, needed: Mapping[str, Job]) -> CarrierJob:
    keys = {layer.index: brick_of(carrier.graph, (layer.index,)).key for layer in carrier.graph.layers}
    written = carrier_program(carrier.graph)
    # As many weights as the model reads between two runs of a layer have to pass through the caches here, too.
    program = replace(written.program, between_bytes=carrier.missing_bytes)
    latency_ms = sum(_expected_ms(carrier.graph, index) for index in keys)
    return CarrierJob(
        f"carrier {number}",
        whole_model(carrier.model).key if carrier.is_whole else "",
        carrier,
        program,
        latency_ms,
        written.owners,
        {index: needed[key] for index, key in keys.items() if key in needed},
    )


def _expected_ms(graph: LayerGraph, layer: int) -> float:
    return expected_ms(brick_of(graph, (layer,)).canonical) * graph.layers[layer].times
