"""What a run of some models can be measured with."""

from collections.abc import Sequence

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runtime.registry import Registry


def runtimes_for(sources: Sequence[ModelSource], data: DataFolder) -> tuple[str, ...]:
    """Return the names of the runtimes that run all these models, the default first."""
    registry, formats = Registry(data.path), shared_formats(sources)
    usual = registry.runtime_for(formats)
    others = [it.name for it in registry.all() if it.traits.format in formats and it.name != usual.name]
    return (usual.name, *others)
