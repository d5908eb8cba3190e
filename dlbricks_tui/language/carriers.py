"""Carriers of language models: the table, a few blocks and the head, as programs for a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dlbricks_tui.bricks.carriers import Carrier
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import carrier_program
from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.decoder import Decoder, Extent, Step, decoder, distinct_blocks
from dlbricks_tui.language.precision import WeightPrecision
from dlbricks_tui.language.work import work_of
from dlbricks_tui.measure.carriers import CarrierJob
from dlbricks_tui.measure.jobs import Job, JobKey, Use, expected_ms, memory_bytes
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.traits import Traits

# A carrier has more than two blocks of a kind up to so many bytes of weights.
_ROOMY_BYTES = 96 << 20
# Between two runs at most so much other memory is passed over: more than the caches of any processor hold.
_MOST_BETWEEN_BYTES = 1 << 28
# A carrier with more weights is loaded once, and profiled in its first rounds only.
_HEAVY_BYTES = 1 << 27
# The weights of a carrier take no more memory, unless a block or the head alone does.
MOST_BYTES = 1 << 30


def brick_key(graph: LayerGraph, layer: int) -> JobKey:
    """Return the key under which the store knows a layer of a language model."""
    return JobKey(brick=brick_of(graph, (layer,)).key)


def keys_of(found: Decoder) -> tuple[JobKey, ...]:
    """Return the key of each layer."""
    return tuple([brick_key(found.graph, layer.index) for layer in found.graph.layers])


def carrier_jobs(
    name: str,
    model: Architecture,
    precision: WeightPrecision,
    traits: Traits,
    steps: Sequence[Step],
    known: Mapping[JobKey, object],
) -> list[CarrierJob]:
    """Return carriers for the steps, as far as they have bricks that are not `known`.

    A large model has its blocks and its head in different carriers, without a second block of a kind.
    """
    found: list[CarrierJob] = []
    jobs: dict[JobKey, Job] = {}
    for carrier in _carriers(name, model, precision, traits, steps):
        keys = keys_of(carrier)
        if all(key in known or key in jobs for key in keys):
            continue
        for layer, key in zip(carrier.graph.layers, keys, strict=True):
            if key not in known and key not in jobs:
                jobs[key] = _job(carrier, layer.index, key, len(jobs))
        # What runs first finds code in no cache: another place of the brick counts, if there is one.
        later = {key: count for key, count in zip(keys, carrier.counts, strict=True) if count > 1}
        bricks = {
            place: jobs[key]
            for place, (key, count) in enumerate(zip(keys, carrier.counts, strict=True))
            if key in jobs and (count > 1 or key not in later)
        }
        found.append(_carrier_job(len(found), carrier, bricks))
    return found


def _carriers(
    name: str, model: Architecture, precision: WeightPrecision, traits: Traits, steps: Sequence[Step]
) -> Iterator[Decoder]:
    for step in steps:
        whole = decoder(model, precision, step, traits, name=name)
        if whole.graph.weight_bytes <= MOST_BYTES:
            more = _roomy_blocks(model, decoder(model, precision, step, traits, (0,)), whole)
            yield decoder(model, precision, step, traits, more, name)
            continue
        fewest = distinct_blocks(model, fewest=True)
        for extent in (Extent.BLOCKS, Extent.HEAD):
            yield decoder(model, precision, step, traits, fewest, name, extent=extent)


def _roomy_blocks(model: Architecture, one_block: Decoder, usual: Decoder) -> tuple[int, ...]:
    """Return the distinct blocks of a model, and more of a small one: the caches hold some of its weights."""
    found = distinct_blocks(model)
    if len(found) == 1:
        return found
    each = max(1, (usual.graph.weight_bytes - one_block.graph.weight_bytes) // (len(found) - 1))
    more = max(0, (_ROOMY_BYTES - usual.graph.weight_bytes) // each)
    return tuple(sorted({*found, *[it for it in range(model.blocks) if it not in found][:more]}))


def _job(carrier: Decoder, layer: int, key: JobKey, number: int) -> Job:
    graph, brick = carrier.graph, brick_of(carrier.graph, (layer,))
    return Job(
        key=key,
        label=graph.layers[layer].name,
        canonical=brick.canonical,
        graph=graph,
        layers=(layer,),
        uses=(Use(graph.name, carrier.counts[layer]),),
        expected_ms=expected_ms(brick.canonical),
        memory_bytes=memory_bytes([graph.layers[layer]]),
        number=number,
    )


def _carrier_job(number: int, carrier: Decoder, bricks: Mapping[int, Job]) -> CarrierJob:
    graph = carrier.graph
    written = carrier_program(graph)
    names = list(written.program.network.inputs)
    in_place = {names[given]: place for given, place in carrier.in_place.items()}
    network = replace(written.program.network, in_place=in_place, distinct=True)
    layers = zip(graph.layers, carrier.counts, strict=True)
    left_out = sum((count - 1) * work_of(layer).bytes_read for layer, count in layers)
    between = min(left_out, _MOST_BETWEEN_BYTES)
    program = replace(written.program, network=network, between_bytes=between, only_reads=True)
    expected = sum(expected_ms(brick_of(graph, (layer.index,)).canonical) for layer in graph.layers)
    whole = Carrier(graph, tuple(range(len(graph.layers))), graph)
    is_heavy = graph.weight_bytes > _HEAVY_BYTES
    return CarrierJob(f"step {number}", "", whole, program, expected, written.owners, bricks, is_heavy=is_heavy)
