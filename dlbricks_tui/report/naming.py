"""What ways of measuring are called: no longer than it takes to tell them apart."""

from collections.abc import Sequence

from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.printable import printable
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import runtimes, systems


class Names:
    """The names of some ways of measuring beside each other."""

    def __init__(self, generation: Generation, ways: Sequence[Way]) -> None:
        self._systems, self._runtimes = systems(generation), runtimes(generation)
        self._ways = ways

    def title(self, way: Way) -> str:
        """For people: system and level, and what else tells it from others there."""
        system = self._systems.get(way.system)
        words = [way.system if system is None else system.name, way.level.value]
        beside = self._beside(way)
        if len({it.runtime for it in beside}) > 1:
            runtime = self._runtimes.get(way.runtime)
            words.append(way.runtime if runtime is None else runtime.name)
        if len({it.protocol for it in beside if it.runtime == way.runtime}) > 1:
            words.append(way.protocol)
        return printable(", ".join(words))

    def slug(self, way: Way) -> str:
        """For names of files: system and level, and a number where there are several."""
        beside = self._beside(way)
        number = f"-{beside.index(way) + 1}" if len(beside) > 1 else ""
        plain = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in way.system)
        return f"{plain}-{way.level.value}{number}"

    def instance(self, way: Way) -> str:
        """What Amazon calls a machine like it, else what the store does: by that name the paper knows its systems."""
        system = self._systems.get(way.system)
        return (system.instance_type if system else "") or way.system

    def _beside(self, way: Way) -> list[Way]:
        return [it for it in self._ways if it.system == way.system and it.level is way.level]
