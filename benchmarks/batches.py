"""Compare the estimated with the measured throughput of models at several batch sizes.

usage: python -m benchmarks.batches resnet50_v1 --runtime mxnet,onnxruntime --threads 1 --batch 1,2,4,8

Each runtime measures bricks and whole models in one run, in the same rounds. The exit status is 1 if an estimate is
off by more than --within. A model is a file, or a name that `dlbricks models` lists.
"""

import argparse
import sys

from dlbricks_tui import api
from dlbricks_tui.cli.options import names
from dlbricks_tui.cli.parser import WholeNumbers

WIDTHS = "{:<24} {:<24} {:>7} {:>5} {:>14} {:>14} {:>7}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--runtime", type=names, default=("mxnet", "onnxruntime"), metavar="R,R")
    parser.add_argument("--threads", type=WholeNumbers(1024), default=(1,), metavar="N,N")
    parser.add_argument("--batch", type=WholeNumbers(1024), default=(1, 2, 4, 8), metavar="N,N")
    parser.add_argument("--within", type=float, default=0.05, metavar="SHARE")
    parser.add_argument("--again", action="store_true", help="measure what is known once more")
    parser.add_argument("--data-dir", metavar="FOLDER")
    args = parser.parse_args()
    print(WIDTHS.format("MODEL", "RUNTIME", "THREADS", "BATCH", "ESTIMATED /s", "MEASURED /s", "ERROR"))
    worst, lacking = 0.0, 0
    for runtime in args.runtime:
        options = api.MeasureOptions(
            runtime=runtime, threads=args.threads, batch=args.batch, end_to_end=True, again=args.again
        )
        run = api.measure(args.models, options, data=args.data_dir)
        lacking += len(args.models) * len(args.threads) * len(args.batch) - len(run.models)
        for it in run.models:
            measured = it.batch / it.measured_ms * 1000 if it.measured_ms else None
            if it.per_second is None or measured is None:
                lacking += 1
                error = "-"
            else:
                worst = max(worst, abs(it.per_second / measured - 1))
                error = f"{it.per_second / measured - 1:+.1%}"
            figures = [f"{each:,.2f}" if each else "-" for each in (it.per_second, measured)]
            name = (it.runtime or "").partition(" ")[0]
            print(WIDTHS.format(it.model, name, it.threads or "-", it.batch, *figures, error), flush=True)
    print(f"worst error {worst:.1%}, {args.within:.0%} are allowed; {lacking} without an estimate or a measurement")
    return int(worst > args.within or lacking > 0)


if __name__ == "__main__":
    sys.exit(main())
