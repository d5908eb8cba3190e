"""The models that a user can name: the samples, added files and folders."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError, UnknownModelError
from dlbricks_tui.models.library import Library, ModelSource, shared_formats, source_of
from dlbricks_tui.runtime.traits import Format

BIG = {"file": "table1/big-symbol.json", "inputs": {"data": [1, 3, 8, 8]}}
ENTRIES: list[dict[str, Any]] = [
    {"name": "Big Net", **BIG, "table1_id": "1", "task": "IC"},
    {"name": "Big Net on Faces", **BIG, "table1_id": "2"},
    {"name": "resnet50_v1", "file": "zoo/resnet50_v1-symbol.json", "inputs": {}, "layers": 174, "unique_layers": 46},
]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "manifest.json").write_text(json.dumps({"models": ENTRIES}))
    return Library(tmp_path / "samples", tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three models, one of them in a subfolder, and a file of another kind."""
    (tmp_path / "mine" / "deeper").mkdir(parents=True)
    for name in ("net-symbol.json", "deeper/net2-symbol.json.gz", "a-symbol.json", "notes.json", "net-0000.params"):
        (tmp_path / "mine" / name).write_text("{}")
    return tmp_path / "mine"


def added(library: Library) -> list[str]:
    """Return the names of the models behind the samples."""
    return [it.name for it in library.sources()][len(ENTRIES) :]


def test_a_sample_carries_the_facts_of_the_manifest(library: Library, tmp_path: Path) -> None:
    first, _, last = library.samples()
    path = tmp_path / "samples" / "table1" / "big-symbol.json"
    assert first == ModelSource("Big Net", path, "IC", "1", {"data": (1, 3, 8, 8)})
    assert (last.layers, last.unique_layers, last.table1_id, last.types) == (174, 46, None, None)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["table1:2"], ["Big Net on Faces"]),
        (["resnet50_v1", "table1", "table1:1", "resnet50_v1"], ["resnet50_v1", "Big Net", "Big Net on Faces"]),
    ],
)
def test_models_are_found_by_name_and_row_in_order_and_only_once(
    library: Library, names: list[str], found: list[str]
) -> None:
    assert [it.name for it in library.find_all(names)] == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ResNet50", r"^no model 'ResNet50': did you mean 'resnet50_v1'\?$"),
        *((name, "give the path of a ") for name in ("", "zzz", "z" * 5_000, "\0", "\ud800")),
        *((f"table1:{it}", "the numbers go from 1 to 50") for it in ("0", "51", "", "one", "1.0")),
    ],
)
def test_an_unknown_name_is_refused_with_advice(library: Library, name: str, said: str) -> None:
    with pytest.raises(UnknownModelError, match=said) as refusal:
        library.find(name)
    assert len(str(refusal.value)) < 1_000


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """Return a folder of samples with a model of two formats, and one of MXNet only."""
    onnx = {"file": "table1/big.onnx", "layers": 3, "unique_layers": 2}
    both = {**ENTRIES[0], "onnx": onnx, "types": "table1/big-types.json", "layers": 4, "unique_layers": 3}
    (tmp_path / "manifest.json").write_text(json.dumps({"models": [both, ENTRIES[2]]}))
    return tmp_path


def test_a_model_of_two_formats_is_listed_once_and_has_the_preferred_file(twins: Path, tmp_path: Path) -> None:
    for form, file, layers in ((Format.MXNET, "big-symbol.json", 4), (Format.ONNX, "big.onnx", 3)):
        both, single = Library(twins, tmp_path / "data", form).samples()
        assert both.path == twins / "table1" / file
        assert (both.name, both.table1_id, both.layers, both.format) == ("Big Net", "1", layers, form)
        assert both.formats == tuple(Format)
        assert (single.format, single.formats) == (Format.MXNET, (Format.MXNET,))
    # Another format changes its file and nothing else.
    (mxnet,), (onnx,) = (Library(twins, tmp_path / "data", form).find("table1:1") for form in Format)
    assert mxnet.in_format(Format.ONNX) == onnx
    assert onnx.in_format(Format.MXNET) == mxnet == mxnet.in_format(Format.MXNET)
    assert onnx.types is None


def test_the_shared_formats_are_those_of_every_model(twins: Path, tmp_path: Path) -> None:
    both, single = Library(twins, tmp_path / "data").samples()
    other = source_of(tmp_path / "net.onnx")
    told = [shared_formats(them) for them in ([both], [both, single], [both, other], [single, other])]
    assert told == [tuple(Format), (Format.MXNET,), (Format.ONNX,), ()]


def test_the_other_file_of_a_sample_is_not_added_again(twins: Path, tmp_path: Path) -> None:
    library = Library(twins, tmp_path / "data")
    onnx = twins / "table1" / "big.onnx"
    assert library.add_model(onnx).in_format(Format.ONNX).path == onnx
    assert len(library.sources()) == 2
    with pytest.raises(ModelError, match="comes with dlbricks"):
        library.remove(onnx)


def test_a_path_selects_a_model(library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.find(str(folder / "net-symbol.json")) == (ModelSource("net", folder / "net-symbol.json"),)
    monkeypatch.chdir(folder)
    (folder / "odd").write_text("{}")
    for name, found in (("odd", "odd"), ("absent.json", "absent"), (f"some{os.sep}where", "where")):
        assert library.find(name) == (ModelSource(found, Path(name)),)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ("net-symbol.json net-symbol.json.gz net.json net.json.gz net.onnx net", "net"),
        ("-symbol.json", "-symbol"),
        (".json", ".json"),
    ],
)
def test_a_model_has_the_name_of_its_file(files: str, name: str) -> None:
    assert {source_of(Path("some") / file).name for file in files.split()} == {name}


def test_the_path_of_a_sample_selects_the_sample_with_its_input_shapes(tmp_path: Path) -> None:
    library = Library(SAMPLE_MODELS, tmp_path, Format.ONNX)
    (by_name,) = library.find("crnn")
    relative = os.path.relpath(by_name.path)
    assert by_name.inputs
    assert library.find(str(by_name.path)) == library.find(relative) == (by_name,)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        *(
            ("data/model-folders.json", text, "; repair or remove it")
            for text in ("", "{", "[]", "7", '{"folders": 7}', '{"folders": [7]}', '{"folder": []}', "\x00")
        ),
        *(
            ("samples/manifest.json", text, "; install dlbricks-tui again")
            for text in ("", "[]", '{"models": 7}', '{"models": [7]}', '{"models": [{"name": "a"}]}')
        ),
    ],
)
def test_a_broken_list_is_named(library: Library, tmp_path: Path, file: str, text: str, said: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / file).write_text(text)
    with pytest.raises(ModelError, match=f"{Path(file).name} cannot be read .*{said}"):
        library.sources()


# Files.


def test_an_added_file_is_in_the_library_once_until_it_is_removed_and_is_told_if_it_is_missing(
    library: Library, folder: Path
) -> None:
    file, sample = folder / "net-symbol.json", library.samples()[0]
    assert library.add_model(sample.path) == sample
    for _ in range(2):
        assert library.add_model(file) == ModelSource("net", file)
    assert added(library) == ["net"]
    assert library.find("net")[0].path == file
    library.remove(file)
    assert added(library) == [] and file.exists()
    library.add_model(file)
    file.unlink()
    assert added(library) == [] and library.missing() == (file,)
    library.remove(file)
    assert library.missing() == ()


def test_a_file_of_an_added_folder_is_listed_once_and_can_be_removed_and_added_again(
    library: Library, folder: Path
) -> None:
    file = folder / "net-symbol.json"
    library.add_model(file)
    library.add_folder(folder)
    library.add_model(file)
    assert added(library) == ["a", "net2", "net"]
    library.remove(file)
    assert added(library) == ["a", "net2"]
    library.add_model(file)
    assert added(library) == ["a", "net2", "net"]
    library.remove(file)
    library.add_folder(folder)
    assert added(library) == ["a", "net2", "net"]


# Folders.


def test_the_models_of_an_added_folder_are_in_the_library_until_it_is_removed(
    library: Library, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "deeper" / "again").symlink_to(folder)
    for _ in range(2):
        assert library.add_folder(folder) == 3
    assert added(library) == ["a", "net2", "net"]
    library.add_folder(folder / "deeper")
    assert library.find("net2") == (ModelSource("net2", folder / "deeper" / "net2-symbol.json.gz"),)
    library.remove(folder / "deeper")
    assert Library(tmp_path / "samples", tmp_path / "data").folders() == (folder,)
    monkeypatch.chdir(folder.parent)
    library.remove(Path("mine"))
    library.add_folder(Path("mine"))
    assert library.folders() == (folder,)
    folder.rename(folder.with_name("elsewhere"))
    assert added(library) == [] and library.missing() == (folder,)
    library.remove(folder)
    assert library.folders() == ()
    assert (tmp_path / "elsewhere" / "net-symbol.json").exists()


def test_folders_added_concurrently_are_all_in_the_library(library: Library, folder: Path, tmp_path: Path) -> None:
    folders = [tmp_path / f"folder{number}" for number in range(8)]
    for each in folders:
        shutil.copytree(folder, each)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(library.add_folder, folders))
    assert sorted(library.folders()) == sorted(folders)


def test_two_models_of_one_name_need_a_path(library: Library, folder: Path) -> None:
    (folder / "deeper" / "net-symbol.json").write_text("{}")
    library.add_folder(folder)
    with pytest.raises(UnknownModelError, match=r"2 models are called 'net'; give a path: .*deeper/net-symbol\.json"):
        library.find("net")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, "there is no folder") for name in ("absent", "mine/net-symbol.json", "n" * 5_000, "n\0")),
        ("mine/empty", r"holds no \*-symbol.json or \*.onnx file"),
        ("~nobody-of-this-name/models", "home"),
    ],
)
def test_a_path_that_is_not_a_folder_of_models_is_refused(library: Library, folder: Path, name: str, said: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(ModelError, match=said):
        library.add_folder(Path(name) if name[0] == "~" else folder.parent / name)


def test_what_was_not_added_cannot_be_removed(library: Library, folder: Path) -> None:
    with pytest.raises(ModelError, match="comes with dlbricks: it stays in the library"):
        library.remove(library.samples()[0].path)
    with pytest.raises(ModelError, match="is not in the library; the folders and files that were added are: none"):
        library.remove(folder)


def test_a_data_folder_that_cannot_be_written_is_named(library: Library, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(ModelError, match="cannot be "):
        library.add_folder(folder)
