"""Reading and changing the config file."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.config.config import ConfigError, Sources, change, changed, statements


def sources(folder: Path, text: str, command_line: Sequence[str] = (), **environment: str) -> Sources:
    file = folder / "config.toml"
    file.write_text(text)
    return Sources(file, environment, command_line)


def test_the_command_line_overrides_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    config = Sources(tmp_path / "nothing.toml", {}).read()
    assert (config.theme, config.granularity, config.workers, config.target_ci) == ("dark", 1, None, 0.02)
    assert {given.where for given in config.given.values()} == {"default"}
    file = '[workbench]\ntheme = "in-file"\nmouse = "off"\n[run]\nthreads = 4\n'
    asked = sources(tmp_path, file, ["workbench.theme=chosen"], DLBRICKS_WORKBENCH_THEME="v", DLBRICKS_RUN_THREADS="8")
    config = asked.read()
    assert (config.theme, config.threads, config.mouse) == ("chosen", 8, "off")
    where = {name: config.given[name].where for name in ("workbench.theme", "run.threads", "workbench.mouse")}
    assert list(where.values()) == ["--set", "DLBRICKS_RUN_THREADS", f"{tmp_path / 'config.toml'}:3"]
    # An empty variable counts as none.
    assert sources(tmp_path, "", DLBRICKS_WORKBENCH_THEME="").read().theme == "dark"


def test_a_share_may_be_written_in_percent_and_an_editor_may_mark_the_encoding(tmp_path: Path) -> None:
    assert sources(tmp_path, '\ufeff[run]\ntarget_ci = "5%"\n').read().target_ci == 0.05


@pytest.mark.parametrize(
    "text",
    [
        '[keys]\n"tree.expand" = "x"\n"models.sort" = ["m", "f5"]\n',
        '[keys]\ntree.expand = "x"\nmodels.sort = ["m", "f5"]\n',
        '[keys.tree]\nexpand = "x"\n[keys.models]\nsort = ["m", "f5"]\n',
        'keys = {tree = {expand = "x"}, models = {sort = ["m", "f5"]}}\n',
    ],
)
def test_keys_may_be_written_in_every_toml_notation(text: str, tmp_path: Path) -> None:
    keys = sources(tmp_path, text).read().keys
    assert {action: given.value for action, given in keys.items()} == {
        "tree.expand": ("x",),
        "models.sort": ("m", "f5"),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[workbench]\n\ntheme = 3\n", ":3: workbench.theme = 3: it has to be the name of a theme"),
        ('[workbench]\nmouse = "of"\n', ':2: workbench.mouse = "of": it has to be one of auto, on, off'),
        ("[workbench]\nmouse = true\n", ":2: workbench.mouse = true: it has to be one of"),
        ("[cutting]\ngranularity = 0\n", ":2: cutting.granularity = 0: it has to be a whole number from 1 to 999"),
        ("[cutting]\ngranularity = true\n", ":2: cutting.granularity = true: it has to be a whole number"),
        ("[cutting]\ngranularity = 1.5\n", ":2: cutting.granularity = 1.5: it has to be a whole number"),
        (
            "[run]\ntarget_ci = 1\n",
            ":2: run.target_ci = 1: it has to be a share above 0 % and below 100 %, such as 5% or 0.05",
        ),
        ('[run]\nruntime = ""\n', ':2: run.runtime = "": it has to be the name of a runtime'),
        (
            '# mine\n[workbench]\nthme = "dark"\n',
            ":3: there is no setting workbench.thme; did you mean workbench.theme?",
        ),
        ("[zzz]\n", ":1: there is no setting zzz; the settings are workbench.theme, "),
        ("verbose = true\n", ":1: there is no setting verbose; "),
        ("keys = 3\n", ":1: there is no setting keys; "),
        ("[keys]\ntree.expand = 7\n", ':2: keys.tree.expand = 7: it has to be a key, such as "x" or "ctrl+x"'),
        ("[keys]\ntree.expand = []\n", ":2: keys.tree.expand = []: it has to be a key"),
        ("[workbench\n", ":1: this is not TOML: "),
        ("[run]\nthreads = 1\nthreads = 2\n", ":3: this is not TOML: Cannot overwrite a value"),
        (f"x = {'[' * 3000}", ": this is not TOML: "),
        ("# \u2028\nx = 1\n", ":2: there is no setting x; "),
    ],
)
def test_a_mistake_is_reported_with_file_line_name_and_allowed_values(
    text: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        sources(tmp_path, text).read()
    assert str(refused.value).startswith(f"{tmp_path / 'config.toml'}{complaint}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "variables", "complaint"),
    [
        (["theme"], {}, "--set theme: write NAME=VALUE, such as workbench.theme=light"),
        (["workbench.tehme=x"], {}, "--set workbench.tehme=x: there is no setting workbench.tehme; did you mean"),
        (["run.threads=0"], {}, "--set run.threads=0: run.threads has to be a whole number from 1 to 1,024"),
        ([], {"DLBRICKS_RUN_THREADS": "many"}, "DLBRICKS_RUN_THREADS=many: run.threads has to be a whole number"),
    ],
)
def test_an_invalid_setting_of_the_command_line_or_a_variable_is_named(
    said: list[str], variables: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        sources(tmp_path, "", said, **variables).read()
    assert str(refused.value).startswith(complaint)


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    found = sources(tmp_path, "[run]\nthreads = 0\nx = 1\n", DLBRICKS_WORKBENCH_MOUSE="no").problems()
    assert [str(each).removeprefix(str(tmp_path / "config.toml")).partition(" ")[0] for each in found] == [
        ":2:",
        ":3:",
        "DLBRICKS_WORKBENCH_MOUSE=no:",
    ]


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match="is not UTF-8 text: invalid continuation byte at byte 5"):
        Sources(tmp_path / "latin.toml", {}).read()
    with pytest.raises(ConfigError, match="cannot be read: it is a directory"):
        Sources(tmp_path, {}).read()


MINE = """\
# how I like it
[workbench]
theme = "light"  # for the office
mouse = "off"

[keys]
models.sort = "O"
"""


def test_changing_one_value_keeps_the_rest_of_the_file_in_every_notation_of_toml() -> None:
    for name, value, before, after in (
        ("workbench.theme", "dark", 'theme = "light"  # for', 'theme = "dark"  # for'),
        ("workbench.mouse", None, 'mouse = "off"\n', ""),
        ("workbench.remote", "on", 'mouse = "off"\n', 'mouse = "off"\nremote = "on"\n'),
        ("run.threads", 4, '"O"\n', '"O"\n\n[run]\nthreads = 4\n'),
        ("run.threads", None, "", ""),
    ):
        assert changed(MINE, name, value, "config.toml") == MINE.replace(before, after, 1), name
    for text, after in (
        ('workbench = {theme = "light"}\n', 'workbench = {theme = "dark"}\n'),
        ('workbench.theme = "light"\n', 'workbench.theme = "dark"\n'),
        ('[workbench]\ntheme = """\nlight"""\n', '[workbench]\ntheme = "dark"\n'),
    ):
        assert changed(text, "workbench.theme", "dark", "config.toml") == after


def test_a_missing_file_is_created_and_a_written_value_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    change(file, "run.target_ci", 0.03)
    assert file.read_text() == "[run]\ntarget_ci = 0.03\n"
    assert [path.name for path in file.parent.iterdir() if path.suffix not in (".lock", ".toml")] == []
    for granularity in (3, 4):
        change(file, "cutting.granularity", granularity)
    assert Sources(file, {}).read().granularity == 4


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
