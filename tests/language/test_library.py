import csv
from decimal import Decimal
from importlib.resources import files

import pytest

from dlbricks_tui.language.opening import NamedModel, library_models, model_in_library

MODELS = {it.name: it for it in library_models()}
ROWS = csv.DictReader(files("dlbricks_tui.language").joinpath("library.csv").read_text().splitlines())
PUBLISHED = {it["name"]: Decimal(it["billion_parameters"]) for it in ROWS}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_sizes_make_the_published_number_of_parameters(model: NamedModel) -> None:
    published = PUBLISHED[model.name]
    # Within 1 %, or half of the last published digit.
    rounding = Decimal((0, (5,), int(published.as_tuple().exponent) - 1))
    assert abs(Decimal(model.architecture.parameters) / 10**9 - published) <= max(published / 100, rounding)
    assert model.title and model.hub_id


def test_the_library_spans_the_sizes_that_people_run() -> None:
    billions = sorted(PUBLISHED.values())
    assert len(MODELS) == len(PUBLISHED) >= 30
    assert (billions[0] < Decimal("0.2"), billions[-1] > 400) == (True, True)
    assert round(MODELS["mixtral-8x7b"].architecture.active_parameters / 1e9, 1) == 12.9
    assert round(MODELS["qwen3-30b-a3b"].architecture.active_parameters / 1e9, 1) == 3.4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llama-3.2-1b", "llama-3.2-1b"),
        ("Llama-3.2-1B", "llama-3.2-1b"),
        ("meta-llama/Llama-3.2-1B-Instruct", "llama-3.2-1b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("google/gemma-2-2b-it", "gemma-2-2b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("Qwen/Qwen3-8B-Base", "qwen3-8b"),
        ("bartowski/Llama-3.2-1B-Instruct-GGUF", "llama-3.2-1b"),
        ("mistralai/Mistral-7B-Instruct-v0.1", None),
        ("instruct", None),
        ("", None),
    ],
)
def test_names_on_hugging_face_find_their_model(text: str, name: str | None) -> None:
    found = model_in_library(text)
    assert (found.name if found else None) == name


def test_each_name_means_one_model() -> None:
    assert all(model_in_library(it.name) == it == model_in_library(it.hub_id) for it in MODELS.values())
