"""Well-known language models, as facts that this package has."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.config_file import architecture_of_config

_FILE = Path(__file__).with_name("library.json")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A language model by the name that the user sees."""

    name: str
    architecture: Architecture
    # The file that it was read from.
    path: Path | None = None
    # The bits of most weights in that file, if it has weights.
    precision: int | None = None
    title: str = ""
    organisation: str = ""
    # Its name on Hugging Face, such as meta-llama/Llama-3.2-1B.
    hub_id: str = ""


@cache
def library_models() -> tuple[NamedModel, ...]:
    """Return the models of the library, in the order of its file."""
    return tuple(
        [
            NamedModel(
                entry["name"],
                architecture_of_config(entry["config"]),
                title=entry["title"],
                organisation=entry["organisation"],
                hub_id=entry["id"],
            )
            for entry in json.loads(_FILE.read_bytes())
        ]
    )


def model_in_library(name: str) -> NamedModel | None:
    """Return the model of that name, in any case; of a name on Hugging Face, also for its variants for chats."""
    wanted = _base(name)
    return next((it for it in library_models() if wanted in (it.name, _base(it.hub_id))), None)


# Parts of names that say how a model was trained or stored, and nothing about its sizes.
_VARIANTS = frozenset({"base", "chat", "gguf", "hf", "instruct", "it", "pt"})


def _base(name: str) -> str:
    last = name.lower().rpartition("/")[2].removeprefix("meta-")
    return "-".join([part for part in last.split("-") if part not in _VARIANTS])
