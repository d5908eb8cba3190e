"""What the processors of a host have done since it began, all of them together."""

import os
from typing import NamedTuple

from dlbricks_tui.host.host_files import HostFiles


class ProcessorTimes(NamedTuple):
    """Counted in ticks of the kernel; what a hypervisor has stolen is not busy."""

    total: int
    busy: int
    stolen: int

    @property
    def taken_seconds(self) -> float:
        """How long they have worked for anybody, be it another machine of the same hypervisor."""
        return (self.busy + self.stolen) / os.sysconf("SC_CLK_TCK")


def processor_times(host: HostFiles) -> ProcessorTimes | None:
    """What the kernel has counted by now; None where it tells nobody."""
    words = (host.text("proc/stat") or "").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    # user, nice, system, idle, waiting, interrupts, soft interrupts, stolen; guests count within user.
    numbers = [int(word) for word in words[1:9]]
    idle, stolen = numbers[3] + numbers[4], numbers[7]
    return ProcessorTimes(sum(numbers), sum(numbers) - idle - stolen, stolen)
