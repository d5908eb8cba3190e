"""Compare the predicted with the measured load that models can serve, as a table.

usage: python -m benchmarks.scenarios [--runtime R,...] [--threads N] [--times 10] [--data FOLDER] [MODEL ...]

For each model and runtime,

1. `dlbricks run --again` times the model, so that predictions and tests are of the same minutes,
2. the highest rate whose p99 is within a bound, so many times the service time, is predicted from that alone,
3. a single stream tells what passing a request to the worker costs, and how long the slowest requests take,
4. the rate is predicted from that, and LoadGen searches it,
5. LoadGen sends 70 % of that rate.

The promises: nine of ten highest rates are predicted within 10 %, before and after the single stream, and eight of
ten p99 at 70 % of the rate within 15 %. With --data the results stay in that folder. A model of 4 ms takes about a
minute on each runtime, and several with a bound of a few service times.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command_line import ROOT, command, told
from benchmarks.promises import Promise, judge

# With files in both formats. Faster ones are disturbed most, and slower ones take long.
MODELS = (
    *("mobilenet0.5", "mobilenet0.75", "squeezenet1.1", "mobilenetv2_0.75", "mobilenetv2_1.0"),
    *("mobilenet1.0", "squeezenet1.0", "alexnet", "resnet18_v1", "resnet18_v2"),
)
RUNTIMES = "onnxruntime,openvino,mxnet"
LOAD = 0.7
# The largest error, and the share of predictions that it is promised for.
RATES, P99 = (0.10, 0.9), (0.15, 0.8)


class Compared(NamedTuple):
    """A model under load: the highest rate, and p99 at a part of it; None for what could not be measured."""

    model: str
    runtime: str
    service_ms: float
    bound_ms: float
    # From the run alone, and from the single stream.
    early_rate: float | None
    predicted_rate: float | None
    measured_rate: float | None
    valid: bool
    predicted_p99_ms: float | None
    measured_p99_ms: float | None

    @property
    def early_error(self) -> float | None:
        """The highest rate predicted from the run alone over the measured one, minus one."""
        return error_of(self.early_rate, self.measured_rate)

    @property
    def rate_error(self) -> float | None:
        """The predicted over the measured highest rate, minus one."""
        return error_of(self.predicted_rate, self.measured_rate)

    @property
    def p99_error(self) -> float | None:
        """The predicted over the measured p99, minus one."""
        return error_of(self.predicted_p99_ms, self.measured_p99_ms)


def main() -> int:
    """Measure and compare; exit status 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--runtime", default=RUNTIMES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--times", type=float, default=10.0, help="the bound as a multiple of the service time")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, began, found = arguments.data or Path(folder), time.monotonic(), []
        print(HEADER)
        for runtime in arguments.runtime.split(","):
            for model in arguments.models:
                it = compared(data, model, ["--runtime", runtime, "--threads", str(arguments.threads)], arguments.times)
                if it is not None:
                    found.append(it)
                    print(row_of(it), flush=True)
        minutes = (time.monotonic() - began) / 60
    sys.stderr.write(f"{len(found)} models under load in {minutes:.0f} min\n")
    asked = len(arguments.models) * len(arguments.runtime.split(","))
    return judge(
        [
            promised("highest rates from runs", (it.early_error for it in found), *RATES, asked),
            promised("highest rates", (it.rate_error for it in found), *RATES, asked),
            promised(f"p99 at {LOAD:.0%} of them", (it.p99_error for it in found), *P99, asked),
        ]
    )


def compared(data: Path, model: str, execution: Sequence[str], times: float) -> Compared | None:
    """Return a model under load; None if it cannot be run."""
    timing = command(data, "run", model, *execution, "--again", "--end-to-end", "--quiet")
    if subprocess.run(timing, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    single = scenario(data, model, execution, "single", "--predict")
    service_ms = figure(single, "predicted", "p50_ms")
    if service_ms is None:
        return None
    bound = ["--bound-ms", f"{times * service_ms:.3f}"]
    early = scenario(data, model, execution, "server", "--predict", *bound)
    scenario(data, model, execution, "single", "--both")
    highest = scenario(data, model, execution, "server", "--both", *bound)
    rate = figure(highest, "measured", "rate")
    loaded = None
    if rate:
        loaded = scenario(data, model, execution, "server", "--both", *bound, "--rate", f"{LOAD * rate:.4f}")
    return Compared(
        model,
        execution[1],
        service_ms,
        times * service_ms,
        figure(early, "predicted", "per_second"),
        figure(highest, "predicted", "per_second"),
        rate,
        bool(figure(highest, "measured", "valid")),
        figure(loaded, "predicted", "p99_ms"),
        figure(loaded, "measured", "p99_ms"),
    )


def scenario(data: Path, model: str, execution: Sequence[str], kind: str, *words: str) -> Mapping[str, Any] | None:
    """Return the document of a scenario; None if it could not be measured."""
    found: Mapping[str, Any] | None = told(data, "scenario", model, *execution, "--kind", kind, *words)
    if found is not None and found["obstacle"] is not None:
        sys.stderr.write(f"{model}: {found['obstacle']}\n")
    return found


def figure(found: Mapping[str, Any] | None, source: str, name: str) -> Any:
    """Return a figure of a scenario; None if there is none."""
    return None if found is None or found[source] is None else found[source][name]


def error_of(predicted: float | None, measured: float | None) -> float | None:
    """Return the relative error of a prediction."""
    return None if predicted is None or not measured else predicted / measured - 1


def promised(what: str, errors: Iterable[float | None], most: float, share: float, asked: int) -> Promise:
    """Return the promise that this share of the errors is within a limit; what could not be measured is an error."""
    within = sum(error is not None and abs(error) <= most for error in errors)
    return Promise(
        f"{what}, predicted within {most:.0%}", f"{share:.0%}", f"{within} of {asked}", within >= share * asked
    )


HEADER = "\n".join(
    [
        "| model | runtime | service | bound | highest rate, from the run | error | from the stream | error | measured "
        "| p99 at 70 %, predicted | measured | error |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
)


def row_of(it: Compared) -> str:
    """Return a row of the table."""
    cells = [
        *(it.model, it.runtime, f"{it.service_ms:.2f} ms", f"{it.bound_ms:.1f} ms"),
        *(number(it.early_rate, "/s"), percent(it.early_error), number(it.predicted_rate, "/s")),
        *(percent(it.rate_error), number(it.measured_rate, "/s" if it.valid else "/s (INVALID)")),
        *(number(it.predicted_p99_ms, " ms"), number(it.measured_p99_ms, " ms")),
        percent(it.p99_error),
    ]
    return f"| {' | '.join(cells)} |"


def number(value: float | None, unit: str) -> str:
    """Return a figure with its unit, or a dash."""
    return "-" if value is None else f"{value:.2f}{unit}"


def percent(share: float | None) -> str:
    """Return an error in percent, or a dash."""
    return "-" if share is None else f"{share:+.1%}"


if __name__ == "__main__":
    sys.exit(main())
