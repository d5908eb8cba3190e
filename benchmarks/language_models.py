"""Compare estimates of language models with onnxruntime-genai's generator, which runs the whole model beside them.

usage: python -m benchmarks.language_models [--minutes M] [--threads 1,2] [--precision int4,f32] [--prompt 16,128]
                                            [--generate N] [--data-dir FOLDER] [MODEL ...]

Each model is measured by its carriers and, in the same rounds, as a whole with random weights. The promise: errors of
prefill and of decode have a mean of 3 %, all are within 8 %, and 90 % are inside their intervals. Predictions from an
empty store are compared, too, as `--list` shows them: their median error is to be 15 % once other models were measured.
Exit status 1 if a promise is broken.

Without models these are ten of the library, of 0.1 to 3 billion parameters. When the time is over, the combinations so
far are reported.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from dlbricks_tui import api

MODELS = (
    *("smollm2-135m", "gemma-3-270m", "smollm2-360m", "qwen2.5-0.5b", "qwen3-0.6b", "gemma-3-1b"),
    *("tinyllama-1.1b", "llama-3.2-1b", "qwen2.5-1.5b", "granite-3.3-2b"),
)
_MEAN, _MOST, _INSIDE, _PREDICTED = 0.03, 0.08, 0.9, 0.15


class Compared(NamedTuple):
    """A figure in milliseconds: predicted before, estimated with its interval, and of the engine."""

    name: str
    predicted: float
    estimate: float
    bounds: tuple[float, float]
    engine: float

    @property
    def error(self) -> float:
        return self.estimate / self.engine - 1

    @property
    def is_inside(self) -> bool:
        """True if the interval of the estimate holds what the engine took."""
        return self.bounds[0] <= self.engine <= self.bounds[1]


def main() -> int:
    """Measure all combinations, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest time for all combinations")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", default="int4,f32")
    parser.add_argument("--prompt", default="16,128,1024")
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--data-dir", type=Path, help="go on with the results in this folder")
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    found: list[Compared] = []
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data_dir or Path(folder)
        prompts, threads, precisions = (
            it.split(",") for it in (arguments.prompt, arguments.threads, arguments.precision)
        )
        for prompt, number, precision, model in product(prompts, threads, precisions, arguments.models):
            if time.monotonic() > until:
                break
            options = api.LanguageOptions(
                prompt=int(prompt),
                generate=arguments.generate,
                precisions=(api.WeightPrecision(precision),),
                threads=(int(number),),
            )
            for it in compared(model, options, data):
                found.append(it)
                print(line(it), flush=True)
    return report(found)


def compared(model: str, options: api.LanguageOptions, data: Path) -> Iterator[Compared]:
    """Yield prefill and decode of a model; nothing if the whole model could not be timed."""
    (before,) = api.language(model, options, measure=False, data=data)
    (after,) = api.language(model, options, end_to_end=True, data=data, progress=_narrate)
    if after.measured is None:
        return
    name = f"{model} {after.precision} {after.threads}t"
    intervals = after.intervals
    yield Compared(
        f"{name} prefill {options.prompt}",
        before.prefill_ms,
        after.prefill_ms,
        intervals.prefill_ms,
        after.measured.prefill_ms,
    )
    low, high = intervals.decode_tokens_per_second
    yield Compared(
        f"{name} decode {options.prompt}",
        1000 / before.decode_tokens_per_second,
        1000 / after.decode_tokens_per_second,
        (1000 / high, 1000 / low),
        1000 / after.measured.decode_tokens_per_second,
    )


def _narrate(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def line(it: Compared) -> str:
    """Return a figure as a line."""
    outside = "" if it.is_inside else "  outside"
    return (
        f"{it.name:<40}{it.predicted:>11.2f}{it.estimate:>11.2f}{it.engine:>11.2f} ms"
        f"{it.error:>+8.1%}  +-{(it.bounds[1] - it.bounds[0]) / 2 / it.estimate:.1%}{outside}"
    )


def report(found: list[Compared]) -> int:
    """Print how far the estimates are off; return 1 if a promise is broken."""
    if not found:
        print("no model was timed as a whole", file=sys.stderr)
        return 1
    is_kept = True
    for phase in ("prefill", "decode"):
        own = [it for it in found if f" {phase} " in it.name]
        errors = [abs(it.error) for it in own]
        inside = fmean(it.is_inside for it in own)
        predicted = median(abs(it.predicted / it.engine - 1) for it in own)
        print(
            f"{phase}: {len(own)} figures, mean error {fmean(errors):.1%}, worst {max(errors):.1%}, "
            f"{inside:.0%} inside their intervals; predictions before: median error {predicted:.1%}"
        )
        is_kept &= fmean(errors) <= _MEAN and max(errors) <= _MOST and inside >= _INSIDE and predicted <= _PREDICTED
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
