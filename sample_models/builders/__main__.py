"""Writes the sample networks, their types and their manifest, or says which of the files differ from what is built.

MXNet is needed only where a network is new or has changed: its types are inferred.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dlbricks_tui.errors import UserError
from sample_models.builders.catalogue import sample_files
from sample_models.builders.delivered_types import installed_framework

SAMPLES = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None, samples: Path = SAMPLES) -> int:
    parser = argparse.ArgumentParser(prog="python -m sample_models.builders", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    given = parser.parse_args(arguments)
    try:
        with TemporaryDirectory() as folder, installed_framework(Path(folder)) as framework:
            files = sample_files(samples, framework)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if given.check:
        stale = _differing(samples, files)
        for path in stale:
            sys.stderr.write(f"{path} differs from what is built; run `python -m sample_models.builders`\n")
        return 1 if stale else 0
    _write(samples, files.items())
    return 0


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    for path, content in files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _differing(samples: Path, files: Mapping[str, bytes]) -> list[str]:
    """Files that are missing or stale, and those that nothing builds any more."""
    stale = [path for path, content in files.items() if not _holds(samples / path, content)]
    folders = {Path(path).parent.as_posix() for path in files} - {"."}
    present = (path.relative_to(samples).as_posix() for folder in folders for path in (samples / folder).glob("*"))
    return sorted({*stale, *(path for path in present if path not in files)})


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    sys.exit(main())
