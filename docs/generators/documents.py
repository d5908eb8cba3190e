"""Records a JSON document of each command, for the page of JSON documents.

usage: python -m docs.generators.documents [COMMAND ...]     such as 'dlbricks estimate'; by default all

Most commands run on the recorded results of `dlbricks demo`. The others measure on this host for some minutes.
"""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.api.demonstration import open_demonstration
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS

FILE = Path(__file__).with_name("documents.json")
# On recorded results. Commands that change a store come last.
RECORDED = {
    "dlbricks demo": "dlbricks demo --speed 1000 --quiet",
    "dlbricks models": "dlbricks models",
    "dlbricks tree": "dlbricks tree squeezenet1.1",
    "dlbricks corpus": "dlbricks corpus squeezenet1.1 resnet18_v1",
    "dlbricks jobs": "dlbricks jobs",
    "dlbricks runs": "dlbricks runs",
    "dlbricks runs watch": "dlbricks runs watch last --quiet",
    "dlbricks runs replay": "dlbricks runs replay last --speed 1000 --quiet",
    "dlbricks estimate": "dlbricks estimate squeezenet1.1",
    "dlbricks analyze": "dlbricks analyze squeezenet1.1",
    "dlbricks scenario": "dlbricks scenario squeezenet1.1 --kind server --bound-ms 100 --predict",
    "dlbricks compare": "dlbricks compare squeezenet1.1",
    "dlbricks compare A B": "dlbricks compare squeezenet1.1 mobilenet0.5",
    "dlbricks results list": "dlbricks results list of=brick --limit 1",
    "dlbricks results show": "dlbricks results show 5204",
    "dlbricks results compare": "dlbricks results compare threads=1 threads=2",
    "dlbricks systems": "dlbricks systems",
    "dlbricks systems compare": "dlbricks systems compare squeezenet1.1",
    "dlbricks systems llm": "dlbricks systems llm smollm2-135m",
    "dlbricks fleet": "dlbricks fleet",
    "dlbricks fleet status": "dlbricks fleet status",
    "dlbricks runtimes": "dlbricks runtimes",
    "dlbricks doctor": "dlbricks doctor",
    "dlbricks config": "dlbricks config",
    "dlbricks config locate": "dlbricks config locate",
    "dlbricks config validate": "dlbricks config validate",
    "dlbricks results export": "dlbricks results export mine.json of=model",
    "dlbricks results import": "dlbricks results import mine.json",
    "dlbricks results verify": "dlbricks results verify",
    "dlbricks results compact": "dlbricks results compact",
    "dlbricks results delete": "dlbricks results delete of=brick threads=1 --yes",
}
# Measured on this host, one after another in one data folder.
MEASURED = {
    "dlbricks run": "dlbricks run squeezenet1.1 --runtime onnxruntime --threads 1 --quiet",
    "dlbricks trace": "dlbricks trace squeezenet1.1 --runtime onnxruntime --threads 1 -o squeezenet.pftrace --quiet",
    "dlbricks llm": "dlbricks llm smollm2-135m --threads 1 --quiet",
    "dlbricks check": "dlbricks check --against baseline.json --by 10% --quiet",
    "dlbricks evaluate": "dlbricks evaluate model.toml --quiet",
    "dlbricks suite export": "dlbricks suite export squeezenet1.1 -o suite.dlbricks --runtime onnxruntime --decoys 1",
    "dlbricks suite run": "dlbricks suite run suite.dlbricks -o measured.json --runtime onnxruntime --quiet",
    "dlbricks suite import": "dlbricks suite import measured.json",
    "dlbricks probe": "dlbricks probe squeezenet1.1 --quiet",
    "dlbricks report": "dlbricks report -o figures --models squeezenet1.1",
    "dlbricks runtimes add": "dlbricks runtimes add venv/bin/python --name other --framework onnxruntime --threads 1",
    "dlbricks runtimes check": "dlbricks runtimes check other",
    "dlbricks fleet doctor": "dlbricks fleet doctor --hosts hosts.toml",
    "dlbricks fleet init": "dlbricks fleet init",
}
# What these need, right before they run.
_BEFORE = {
    "dlbricks check": "dlbricks results export baseline.json of=model",
    "dlbricks evaluate": "dlbricks evaluate --from last -o model.toml",
    "dlbricks probe": "dlbricks results import recorded.json",
}
_HOSTS = '[[host]]\nname = "c7i"\naddress = "localhost"\nport = 9\n'


class Example(NamedTuple):
    """A command and the document that it printed."""

    command: str
    document: Any


def examples() -> dict[str, Example]:
    """Return the recorded documents by command."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Example(**found[name]) for name in [*RECORDED, *MEASURED] if name in found}


def command_of(name: str) -> str:
    """Return the command of an example: a name may add arguments, if they change the document."""
    return re.sub(r" A B$", "", name)


def printed(data: Path, command: str) -> Any:
    """Return the document that a command prints in this process."""
    text, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(told):
        main(["--data-dir", str(data), *shlex.split(command)[1:], "--json"])
    try:
        return json.loads(text.getvalue())
    except ValueError:
        raise ValueError(f"{command}: {told.getvalue()}") from None


def shortened(value: Any) -> Any:
    """Return a document with short lists and numbers of few digits; every key stays."""
    if isinstance(value, dict):
        return {name: shortened(it) for name, it in value.items()}
    if isinstance(value, list):
        most = 1 if any(isinstance(it, dict | list) for it in value) else 4
        return [shortened(it) for it in value[:most]]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _record(names: list[str]) -> None:
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        for name, document in _documents(names, Path(folder)):
            command = {**RECORDED, **MEASURED}[name]
            text = json.dumps(shortened(document)).replace(str(SAMPLE_MODELS), "sample_models")
            text = re.sub(
                r"/tmp/dlbricks-demo-\w+/data|" + re.escape(f"{folder}/data"), "~/.local/share/dlbricks", text
            )
            text = text.replace(f"{folder}/", "").replace(str(Path(sys.executable)), "venv/bin/python")
            found[name] = {"command": f"{command} --json", "document": json.loads(text)}
            print(name)
            FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _documents(names: list[str], folder: Path) -> Iterator[tuple[str, Any]]:
    with open_demonstration() as demonstration:
        for name in RECORDED:
            if not names or name in names:
                yield name, printed(demonstration.data.path, RECORDED[name])
    if not names or set(names) & set(MEASURED):
        with open_demonstration() as demonstration:
            printed(demonstration.data.path, "dlbricks results export recorded.json")
        (folder / "hosts.toml").write_text(_HOSTS)
        (folder / "venv" / "bin").mkdir(parents=True)
        (folder / "venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (folder / "venv" / "bin" / "python").chmod(0o755)
        for name, command in MEASURED.items():
            for each in filter(None, (_BEFORE.get(name), command)):
                output = _run(f"{each} --json" if each == command or "--from" not in each else each)
            if not names or name in names:
                yield name, json.loads(output)


def _run(command: str) -> str:
    words = [sys.executable, "-m", "dlbricks_tui", "--data-dir", "data", *shlex.split(command)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    print(command, done.returncode, done.stderr, file=sys.stderr)
    return done.stdout


if __name__ == "__main__":
    _record(sys.argv[1:])
