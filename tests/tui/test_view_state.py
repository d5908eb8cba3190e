from pathlib import Path

import pytest

from dlbricks_tui.tui.open_model import ModelId
from dlbricks_tui.tui.view_state import (
    MOST_RECENT,
    STEP,
    USUAL,
    PanelSizes,
    ViewState,
    fitted,
    read_view,
    taller,
    usual_sizes,
    wider,
    write_view,
)

MODELS = tuple(ModelId(Path(f"/models/{it}.onnx"), f"net{it}") for it in range(MOST_RECENT + 2))


def test_the_look_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = ViewState(("age", "estimate"), "by time", {"-wide": PanelSizes(40, 50, 30)}, MODELS[:2], True, ("GLUON",))
    write_view(tmp_path / "view.json", state)
    assert read_view(tmp_path / "view.json") == state


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"columns": 3, "order": 4, "sizes": [], "recent": {}, "expert": 1, "unfolded": 1}',
        '{"sizes": {"-wide": {"left": "x"}, "-medium": 3}, "recent": [1, ["a"], [1, 2]]}',
    ],
)
def test_a_broken_file_gives_the_usual_look(tmp_path: Path, content: str) -> None:
    (tmp_path / "view.json").write_text(content)
    assert read_view(tmp_path / "view.json") == ViewState()


def test_a_folder_that_does_not_exist_or_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_view(tmp_path / "file" / "view.json", ViewState())
    assert read_view(tmp_path / "nowhere" / "view.json") == ViewState()


def test_the_newest_models_are_kept_each_once() -> None:
    state = ViewState()
    for model in (*MODELS, MODELS[3]):
        state = state.opened(model)
    assert state.recent == (MODELS[3], MODELS[6], MODELS[5], MODELS[4], MODELS[2])


def test_the_list_of_models_takes_what_it_needs_and_the_panels_at_the_right_the_rest() -> None:
    assert usual_sizes("-wide", 200, 70) == PanelSizes(70, 82, 40)
    # The layers and the panels at the right keep their room.
    assert usual_sizes("-wide", 200, 130) == PanelSizes(94, 58, 40)
    assert usual_sizes("-medium", 120, 70) == USUAL["-medium"]


def test_a_panel_becomes_wider_at_the_cost_of_its_neighbours() -> None:
    usual = USUAL["-medium"]
    assert wider(usual, "models", STEP) == PanelSizes(36, 42, 40)
    assert wider(usual, "details", -STEP) == PanelSizes(32, 38, 40)
    assert wider(usual, "tree", STEP) == PanelSizes(30, 40, 40)
    assert taller(usual, "details", 5) == PanelSizes(32, 42, 45) == taller(usual, "estimate", -5)
    assert taller(usual, "models", 5) == usual


@pytest.mark.parametrize("width", [112, 120, 200])
@pytest.mark.parametrize("sizes", [PanelSizes(-9, -9, -9), PanelSizes(999, 999, 999), PanelSizes(60, 60, 40)])
def test_every_panel_keeps_some_room(width: int, sizes: PanelSizes) -> None:
    found = fitted(sizes, width)
    assert found.left >= 22 and found.right >= 28 and width - found.left - found.right >= 24
    assert 15 <= found.upper <= 85
