"""The process that measures language models: it reads an order from standard input, and writes messages as lines."""

import sys
from collections.abc import Callable
from pathlib import Path

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.language.measuring import measure_models
from dlbricks_tui.language.messages import LanguageMessage, LanguageStopped, encode
from dlbricks_tui.language.orders import LanguageOrder
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.launch import command_of, take_order
from dlbricks_tui.runs.orders import carry_out
from dlbricks_tui.runs.work import Workplace


def language_command(data: DataFolder) -> list[str]:
    """Return the command of the process, which reads a `LanguageOrder`."""
    return command_of(__name__, str(data.path))


def execute(
    order: LanguageOrder,
    place: Workplace,
    write: Callable[[LanguageMessage], None],
    queue: HostQueue,
    limits: TimeLimits | None = None,
) -> bool:
    """Measure the models of an order; return whether it came to its end."""

    def work(signals: StopSignals) -> None:
        measure_models(order, place, signals, write, queue, limits)

    return carry_out(work, place.data, lambda reason: write(LanguageStopped(reason=reason)))


def main(data: str) -> None:
    """Measure the models of the order; the entry point of the process."""
    order, write = take_order()
    place = Workplace(DataFolder(Path(data)))
    ended = execute(order, place, lambda message: write(encode(message)), host_queue())
    sys.exit(0 if ended else 1)
