from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.config.config import ConfigError, Sources, change, changed, statements

MINE = """\
# how I like it
[workbench]
theme = "light"  # for the office
mouse = "off"

[keys]
models.sort = "O"
"""


@pytest.mark.parametrize(
    ("name", "value", "before", "after"),
    [
        ("workbench.theme", "dark", 'theme = "light"  # for', 'theme = "dark"  # for'),
        ("workbench.mouse", None, 'mouse = "off"\n', ""),
        ("workbench.remote", "on", 'mouse = "off"\n', 'mouse = "off"\nremote = "on"\n'),
        ("run.threads", 4, '"O"\n', '"O"\n\n[run]\nthreads = 4\n'),
        ("run.threads", None, "", ""),
    ],
)
def test_changing_one_value_keeps_the_rest_of_the_file(name: str, value: object, before: str, after: str) -> None:
    assert changed(MINE, name, value, "config.toml") == MINE.replace(before, after, 1)


def test_a_missing_file_is_created(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    change(file, "run.target_ci", 0.02)
    assert file.read_text() == "[run]\ntarget_ci = 0.02\n"
    assert [path.name for path in file.parent.iterdir() if path.suffix not in (".lock", ".toml")] == []


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('workbench = {theme = "light"}\n', 'workbench = {theme = "dark"}\n'),
        ('workbench.theme = "light"\n', 'workbench.theme = "dark"\n'),
        ('[workbench]\ntheme = """\nlight"""\n', '[workbench]\ntheme = "dark"\n'),
    ],
)
def test_a_value_changes_in_every_notation_of_toml(text: str, after: str) -> None:
    assert changed(text, "workbench.theme", "dark", "config.toml") == after


@pytest.mark.parametrize("text", ["[workbench\n", "workbench = 3\n"])
def test_an_invalid_file_is_not_changed(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="correct it first"):
        change(file, "workbench.theme", "dark")
    assert file.read_text() == text


def test_an_unwritable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written: "):
        change(tmp_path / "file" / "config.toml", "run.threads", 4)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_any_written_name_is_read_back(name: str) -> None:
    (said,) = statements(changed("", "workbench.theme", name, "config.toml"), "config.toml")
    assert (said.name, said.value) == ("workbench.theme", name)


def test_a_written_value_is_read_back(tmp_path: Path) -> None:
    change(tmp_path / "config.toml", "cutting.granularity", 3)
    change(tmp_path / "config.toml", "cutting.granularity", 4)
    assert Sources(tmp_path / "config.toml", {}).read().granularity == 4
