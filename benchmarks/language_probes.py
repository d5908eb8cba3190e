"""Compare probes of language models with measurements: their seconds, and how far the figures differ.

usage: python -m benchmarks.language_probes [--threads N] [--prompt N] [--generate N] [MODEL ...]

Each model is probed and then measured in a data folder of its own, so that a probe knows its own bricks only. The
promise: a probe takes a third of the time of a measurement, and 90 % of its intervals hold the measured figure. Exit
status 1 if it is broken.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from dlbricks_tui.api import language_answers
from dlbricks_tui.api import language_models as asking
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions
from dlbricks_tui.folders import DataFolder

MODELS = ("smollm2-135m", "gemma-3-270m", "qwen2.5-0.5b")
_LEAST_TIMES, _INSIDE = 3.0, 0.9


def main() -> int:
    """Probe and measure each model, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=32)
    arguments = parser.parse_args()
    options = LanguageOptions(prompt=arguments.prompt, generate=arguments.generate, threads=(arguments.threads,))
    print(f"{'':<18}{'probe':>8}{'measured':>10}{'prefill':>9}{'':>8}{'decode':>9}")
    spent, held = [0.0, 0.0], list[bool]()
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            data = DataFolder(Path(folder))
            (probe_seconds, probe), (seconds, full) = (timed(model, options, data, probe=it) for it in (True, False))
        spent = [spent[0] + probe_seconds, spent[1] + seconds]
        rates = probe.intervals.decode_tokens_per_second
        inside = [
            probe.intervals.prefill_ms[0] <= full.prefill_ms <= probe.intervals.prefill_ms[1],
            rates[0] <= full.decode_tokens_per_second <= rates[1],
        ]
        held += inside
        errors = (
            probe.prefill_ms / full.prefill_ms - 1,
            full.decode_tokens_per_second / probe.decode_tokens_per_second - 1,
        )
        told = "".join(
            f"{error:>+9.1%} {'' if is_in else 'outside':<7}" for error, is_in in zip(errors, inside, strict=True)
        )
        print(f"{model:<18}{probe_seconds:>6.0f} s{seconds:>8.0f} s{told}", flush=True)
    share = sum(held) / len(held)
    print(f"in all {spent[0]:.0f} s against {spent[1]:.0f} s; {share:.0%} of the figures are inside")
    return 0 if spent[1] >= _LEAST_TIMES * spent[0] and share >= _INSIDE else 1


def timed(model: str, options: LanguageOptions, data: DataFolder, *, probe: bool) -> tuple[float, LanguageAnswer]:
    """Return the seconds of a probe or a measurement, and the answer from the store."""
    began = time.monotonic()
    models = [language_answers.named_model(model)]
    asking.measure(asking.language_order(models, options, data, probe=probe), data, lambda _: None)
    (answer,) = asking.stored_answers(models, options, data)
    return time.monotonic() - began, answer


if __name__ == "__main__":
    sys.exit(main())
