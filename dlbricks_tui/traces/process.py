"""The process that traces a model."""

import sys

from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.traces.file import write_trace
from dlbricks_tui.traces.measuring import trace_model
from dlbricks_tui.traces.messages import TRACE, TraceDone, TraceOrder


def main(folder: str, data: str) -> None:
    """Trace the model of the order, and write the trace to its file; the entry point of the process."""

    def work(job: JobAtWork[TraceOrder]) -> None:
        trace = trace_model(job.request, Workplace(job.data), job.signals, job.tell, host_queue())
        write_trace(trace, job.data.traces / f"{trace.id}.json.gz")
        job.tell(TraceDone(id=trace.id))

    sys.exit(work_in_process(TRACE, folder, data, work))
