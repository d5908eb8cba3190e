"""The values of an ONNX model's weights, which nobody needs but who looks for odd ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.onnx.model_file import parse_onnx
from dlbricks_tui.models.onnx.reading import read_onnx
from dlbricks_tui.models.onnx.stored_arrays import refuse_damaged_arrays
from dlbricks_tui.models.onnx.values import DamagedValueError, array_of, is_elsewhere

if TYPE_CHECKING:
    from onnx import TensorProto

_CHUNK_VALUES = 1 << 20


def weights_in(path: Path) -> Iterator[tuple[str, Iterator[Any]]]:
    """Each weight by its name, with its values as arrays of numpy: one in a file of its own in pieces."""
    where = str(path)
    file = parse_onnx(read_onnx(path, where), where)
    refuse_damaged_arrays(file, path, where)
    for weight in file.weights:
        yield weight.name, _values(path, weight)


def _values(path: Path, weight: "TensorProto") -> Iterator[Any]:
    try:
        if is_elsewhere(weight):
            yield from _from_beside(path.parent, weight)
        else:
            yield array_of(weight)
    except (DamagedValueError, LookupError, OSError) as damaged:
        raise UnreadableModelError(f"{path}: the weight {weight.name[:80]!r} cannot be read: {damaged}") from None


def _from_beside(folder: Path, weight: "TensorProto") -> Iterator[Any]:
    from math import prod

    import numpy
    from onnx.helper import tensor_dtype_to_np_dtype

    facts = {entry.key: entry.value for entry in weight.external_data}
    dtype, left = tensor_dtype_to_np_dtype(weight.data_type), prod(weight.dims)
    with (folder / facts["location"]).open("rb") as file:
        file.seek(int(facts.get("offset") or 0))
        while left > 0:
            found = numpy.fromfile(file, dtype, min(left, _CHUNK_VALUES))
            if not found.size:
                raise DamagedValueError("its numbers end too early")
            left -= found.size
            yield found
