"""The process that measures a scenario."""

import os
import sys

from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.scenarios.measuring import measure_scenario
from dlbricks_tui.scenarios.messages import LOAD_TEST, ScenarioOrder

_SWITCH_SECONDS = 0.0005


def main(folder: str, data: str) -> None:
    """Measure the scenario of the order; the entry point of the process."""
    # A thread that passes a request on must not wait until the main thread has read logs.
    sys.setswitchinterval(_SWITCH_SECONDS)

    def work(job: JobAtWork[ScenarioOrder]) -> None:
        measure_scenario(job.request, Workplace(job.data), job.signals, job.tell, host_queue())

    status = work_in_process(LOAD_TEST, folder, data, work)
    # LoadGen may still wait for the times of its queries in its thread.
    sys.stderr.flush()
    os._exit(status)
