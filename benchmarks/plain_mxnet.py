"""Time a model with MXNet alone. Reads the number of runs from standard input, and answers with milliseconds."""

import json
import sys
import time

import numpy

for name, kind in (("bool", bool), ("int", int), ("float", float), ("object", object)):
    setattr(numpy, name, kind)
import mxnet  # noqa: E402 - it wants the names that newer numpy has dropped

shapes = {name: tuple(shape) for name, shape in json.loads(sys.argv[2]).items()}
executor = mxnet.sym.load(sys.argv[1]).simple_bind(mxnet.cpu(), grad_req="null", **shapes)
for array in {**executor.arg_dict, **executor.aux_dict}.values():
    array[:] = mxnet.nd.random.uniform(0.5, 1.5, array.shape) / (array.size / array.shape[0] if array.ndim > 1 else 1)
for line in sys.stdin:
    taken = []
    for _ in range(int(line)):
        begin = time.perf_counter()
        executor.forward(is_train=False)
        mxnet.nd.waitall()
        taken.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps(taken), flush=True)
