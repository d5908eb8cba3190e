import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from tests.cli.people import Command, one_line
from tests.models.table_framework import TableFramework
from tests.store.dlbricks_2019.checkouts import time_layers, time_model

CAPSNET = "CapsNet Trained on MNIST Data"
SQUEEZENET = "SqueezeNet V1.1 Trained on ImageNet Competition Data"
SYSTEM = "c5.xlarge"


@pytest.fixture
def capsnet(tmp_path: Path) -> Decomposition:
    """A model with a loop: its layers are written once and paid twice."""
    (source,) = Library(SAMPLE_MODELS, tmp_path).find("table1:4")
    return decompose(Loader(tmp_path / "cache", TableFramework()).load(source))


@pytest.fixture
def checkout(tmp_path: Path, capsnet: Decomposition) -> Path:
    """CapsNet by layers and end to end, another model end to end only."""
    folder = tmp_path / "checkout"
    time_layers(folder, SYSTEM, CAPSNET, {name: [time] * 3 for name, time in times_of(capsnet).items()})
    time_model(folder, SYSTEM, CAPSNET, [150_000.0, 151_000.0, 152_000.0])
    time_model(folder, SYSTEM, SQUEEZENET, [17_750.0])
    return folder


def times_of(model: Decomposition) -> Mapping[str, float]:
    """Return a time for each layer by name, different for occurrences of the same brick."""
    return {layer.name: 10.0 + layer.index for layer in model.graph.layers}


def test_an_import_counts_the_results_of_every_system(dlbricks: Command, checkout: Path) -> None:
    status, out, err = dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    assert (status, out) == (0, "")
    assert err.splitlines() == [
        f"{SYSTEM}: 55 results new, 0 known; 1 model by layers, 2 end to end",
        f"{SYSTEM}: only end-to-end results of {SQUEEZENET}",
        f"{checkout}: 55 results new, 0 known, on 1 system",
    ]
    assert "0 results new, 55 known" in dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))[2]


def test_estimates_from_imported_results_are_look_ups(
    dlbricks: Command, checkout: Path, capsnet: Decomposition
) -> None:
    dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    times, layers = times_of(capsnet), capsnet.graph.layers
    uses = [(each.brick.key, layers[index]) for each in capsnet.occurrences for index in each.sequence.layers]
    of_brick: defaultdict[str, list[float]] = defaultdict(list)
    for brick, layer in uses:
        of_brick[brick].append(times[layer.name])
    paid = [layer.times * fmean(of_brick[brick]) for brick, layer in uses]
    assert len(paid) == 53
    assert sum(layer.times for layer in layers) == 68
    status, out, _ = dlbricks("estimate", "table1:4", "--system", SYSTEM, "--level", "written", "--json")
    (found,) = json.loads(out)
    assert status == 0
    assert found["sequential_ms"] == pytest.approx(sum(paid) / 1000)
    assert found["measured_ms"] == pytest.approx(151.0)
    assert found["coverage"]["measured"] == 53


def test_an_imported_result_says_which_layer_it_is_of(dlbricks: Command, checkout: Path) -> None:
    dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    listed: list[dict[str, Any]] = json.loads(
        dlbricks("results", "list", "protocol=dlbricks-2019", "of=brick", "--json")[1]
    )
    assert {each["system"] for each in listed} == {SYSTEM}
    assert {each["level"] for each in listed} == {"written"}
    shown = dlbricks("results", "show", listed[0]["id"])[1]
    assert f"occurrence    model {CAPSNET}, layer " in shown


def test_unusable_rows_are_named(dlbricks: Command, checkout: Path) -> None:
    time_layers(checkout, SYSTEM, SQUEEZENET, {f"layer{number}": [1.0] for number in range(30)})
    time_model(checkout, SYSTEM, "LeNet", [1.0])
    status, out, err = dlbricks("results", "import", "--format", "dlbricks-2019", "--json", str(checkout))
    assert status == 0
    assert f"{SYSTEM}: 30 rows could not be used\n" in err
    assert (
        f"line 21: {SQUEEZENET}: layer 'layer19' is not a layer of it here\n"
        "and 10 more rows, which --json lists\n" in err
    )
    assert "left out: 1 row of 1 model that Table 1 does not have: LeNet\n" in err
    (document,) = json.loads(out)
    (system,) = document["systems"]
    assert (document["path"], document["new"], document["known"]) == (str(checkout), 55, 0)
    assert system["by_layers"] == [CAPSNET]
    assert system["outside_table1"] == {"LeNet": 1}
    assert len(system["unmatched"]) == 30
    assert system["unmatched"][29]["layer"] == "layer29"


def test_with_broken_files_the_rest_is_imported_and_the_status_is_1(dlbricks: Command, checkout: Path) -> None:
    time_model(checkout, SYSTEM, CAPSNET, [1.0]).write_bytes(b"\x00\xff" * 100)
    status, _, err = dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    assert status == 1
    assert f"{SYSTEM}: 54 results new" in err
    assert "data/mxnet_model/c5.xlarge/CapsNet_Trained_on_MNIST_Data.csv is not text; it was skipped\n" in err


def test_a_folder_that_is_not_a_checkout_is_one_line_and_status_2(dlbricks: Command, tmp_path: Path) -> None:
    err = one_line(dlbricks("results", "import", "--format", "dlbricks-2019", tmp_path))
    assert "name a checkout of github.com/rai-project/synthetic_benchmark" in err
