"""Compare how many users language models serve with those that onnxruntime-genai serves, in single and static batches.

usage: python -m benchmarks.users [--threads N] [--prompt N] [--generate N] [--batch N] [--first-token-ms MS]
                                  [--per-token-ms MS] [--think-s S] [--data-dir FOLDER] [MODEL ...]

For each model and way of serving, the steps are measured, the most users within both bounds predicted, and so many
users driven, 15 % fewer, and 15 % more. A line for each drive has both delays and the tokens per second, predicted with
the pauses of the drive and driven.

The promise: 15 % fewer users are served within both bounds, and 15 % more are not; and nine of ten figures are within
15 %. Exit status 1 if it is broken. A model of 0.1 billion parameters takes about ten minutes on a quiet host.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks.promises import Promise, judge
from dlbricks_tui.api.language_answers import named_model
from dlbricks_tui.api.loads import ServedUsers, TokenLoadOptions, UsersLoad, order_of_load, token_load
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.language.orders import LANGUAGE
from dlbricks_tui.wording.jobs import language_line

_SHARE, _MOST_FIGURES = 0.15, 0.9


def main() -> int:
    """Drive the users of each model, and judge the predictions."""
    usual = TokenLoadOptions(threads=(1,), prompt=64, generate=32, batch=4, first_token_ms=6000.0, per_token_ms=100.0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2-135m"])
    parser.add_argument("--threads", type=int, default=1)
    names: dict[str, type[float]] = {"prompt": int, "generate": int, "batch": int}
    names |= dict.fromkeys(("first_token_ms", "per_token_ms", "think_s"), float)
    for name, kind in names.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=getattr(usual, name))
    parser.add_argument("--data-dir", type=Path, help="go on with the results in this folder")
    given = vars(parser.parse_args())
    options = replace(usual, threads=(given["threads"],), **{name: given[name] for name in names})
    served: list[bool] = []
    errors: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        data = DataFolder(given["data_dir"] or Path(folder))
        for model in given["models"]:
            for way in ways(model, options, data):
                most = way.most_users
                few, many = around(most)
                verdicts = {it.predicted.users: it.is_met for it in way.loads if it.driven}
                served += [verdicts[few], not verdicts[many]]
                for it in way.loads:
                    found = list(figures(it))
                    errors += found
                    if found:
                        told = "  ".join(f"{error:+7.1%}" for error in found)
                        verdict = "met" if it.is_met else "not met"
                        print(f"{model:16} {way.serving:8}{it.predicted.users:>4} of ~{most:<4}{told}  {verdict}")
    print(f"mean error of first token, later tokens and tokens/s: {fmean(map(abs, errors)):.1%}")
    close = fmean(abs(it) <= _SHARE for it in errors)
    return judge(
        (
            Promise("15 % fewer users served, 15 % more not", "all", f"{fmean(served):.0%}", all(served)),
            Promise("figures within 15 %", "90 %", f"{close:.0%}", close >= _MOST_FIGURES),
        )
    )


def ways(name: str, options: TokenLoadOptions, data: DataFolder) -> Iterator[ServedUsers]:
    """Yield what a model serves in each way that an engine drives, once that is driven."""
    model = named_model(name)
    bricks = replace(order_of_load(model, options, data), drives=())
    JobProcess.new(LANGUAGE, bricks, data, [name]).run(narrate)
    most = {it.serving: it.most_users for it in token_load(model, options, data).ways}
    wanted = {serving: {*around(count), max(1, count)} for serving, count in most.items()}
    options = replace(options, users=tuple(sorted({it for of in wanted.values() for it in of})))
    order = order_of_load(model, options, data)
    order = replace(order, drives=tuple(it for it in order.drives if it.users in wanted[it.serving.value]))
    JobProcess.new(LANGUAGE, order, data, [name]).run(narrate)
    driven = {it.serving.value for it in order.drives}
    yield from (it for it in token_load(model, options, data).ways if it.serving in driven)


def around(most: int) -> tuple[int, int]:
    """Return numbers of users that are 15 % fewer and more, and another one at least."""
    return max(1, min(most - 1, math.floor((1 - _SHARE) * most))), max(most + 1, math.ceil((1 + _SHARE) * most))


def figures(load: UsersLoad) -> Iterator[float]:
    """Yield the errors of both delays and of the tokens per second."""
    predicted, driven = load.predicted_drive, load.driven.load if load.driven else None
    if predicted is not None and driven is not None:
        for it in ("first_token", "per_token"):
            yield getattr(predicted, it).bounded_ms / getattr(driven, it).bounded_ms - 1
        yield predicted.tokens_per_second / driven.tokens_per_second - 1


def narrate(event: Event) -> None:
    """Write the line of an event."""
    if told := language_line(event):
        print(told, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
