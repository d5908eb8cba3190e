"""The files in which the kernel describes this host; tests use another root."""

from pathlib import Path

ROOT = Path("/")


class HostFiles:
    """Reads files below a root; None for files that do not exist or cannot be read."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        """Return the content of a file, without the line break at its end."""
        try:
            content = (self._root / path).read_bytes()
        except (OSError, ValueError):
            return None
        return content.decode(errors="replace").strip("\n\0 ")

    def number(self, path: str) -> int | None:
        """Return the integer that a file consists of."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def fields(self, path: str, separator: str = ":") -> dict[str, str]:
        """Return the lines `name: value` of a file; the first of equal names counts."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            name, has_value, value = line.partition(separator)
            if has_value:
                found.setdefault(name.strip(), value.strip())
        return found

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the paths below the root that match a glob pattern, sorted."""
        try:
            return tuple(sorted(str(path.relative_to(self._root)) for path in self._root.glob(pattern)))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """True if there is such a file or folder and this process may see it."""
        try:
            return (self._root / path).exists()
        except OSError:
            return False
