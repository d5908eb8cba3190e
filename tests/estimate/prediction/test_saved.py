import gc
import os
import pickle
import sys
from pathlib import Path

import pytest

from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.saved import PRIORS, Trained, read_trained, write_trained


def test_a_full_disk_is_an_error_and_no_complaint_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    # More than fits in the buffer of a file.
    vocabulary = tuple(os.urandom(8).hex() for _ in range(10_000))
    with pytest.raises(OSError, match="No space left on device"):
        write_trained(Path("/dev/full"), Trained(NearestBricks({}, vocabulary, 0.0)))
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("bit", [0, 7])
def test_a_predictor_with_a_flipped_bit_is_trained_anew(bit: int, tmp_path: Path) -> None:
    delivered = next(PRIORS.glob("*.npz"))
    content, damaged = delivered.read_bytes(), tmp_path / "damaged.npz"
    trained, refused = read_trained(delivered), 0
    assert trained is not None
    sound = pickle.dumps(trained)
    for place in range(100):
        changed = bytearray(content)
        changed[len(content) * place // 100] ^= 1 << bit
        damaged.write_bytes(changed)
        found = read_trained(damaged)
        # A few bits are those of dates.
        assert found is None or pickle.dumps(found) == sound
        refused += found is None
    assert refused > 90
