"""Writes the generated pages of the reference: `make reference`.

usage: python -m docs.generators [PAGE ...]
"""

import sys

from docs.generators import (
    api,
    benchmarks,
    commands,
    evaluation_file,
    files,
    json_documents,
    keys,
    operators,
    settings,
    table1,
    traits,
)
from docs.generators.markdown import REFERENCE

PAGES = {
    "api": api.page,
    "benchmarks": benchmarks.page,
    "commands": commands.page,
    "evaluation-file": evaluation_file.page,
    "files": files.page,
    "json": json_documents.page,
    "keys": keys.page,
    "operators": operators.page,
    "settings": settings.page,
    "table1": table1.page,
    "traits": traits.page,
}


def main(names: list[str]) -> None:
    """Write the pages of these names, by default all."""
    for name in names or PAGES:
        (REFERENCE / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")
        print(f"docs/reference/{name}.md")


if __name__ == "__main__":
    main(sys.argv[1:])
