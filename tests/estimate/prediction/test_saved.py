import gc
import os
import sys
from pathlib import Path

import pytest

from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.saved import Trained, write_trained


def test_a_full_disk_is_an_error_and_no_complaint_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    # More than fits in the buffer of a file.
    vocabulary = tuple(os.urandom(8).hex() for _ in range(10_000))
    with pytest.raises(OSError, match="No space left on device"):
        write_trained(Path("/dev/full"), Trained(NearestBricks({}, vocabulary, 0.0)))
    gc.collect()
    assert complaints == []
