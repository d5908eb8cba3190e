"""What the kernel tells about this host, as files; another root is another host."""

from pathlib import Path

ROOT = Path("/")


class HostFiles:
    """Reads files below a root; what does not exist or may not be read is None."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        """The content of a file, without the line break at its end."""
        try:
            content = (self._root / path).read_bytes()
        except (OSError, ValueError):
            return None
        return content.decode(errors="replace").strip("\n\0 ")

    def number(self, path: str) -> int | None:
        """The whole number that a file consists of."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def fields(self, path: str, separator: str = ":") -> dict[str, str]:
        """The lines `name: value` of a file; of equal names the first counts, as all cores are described alike."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            name, has_value, value = line.partition(separator)
            if has_value:
                found.setdefault(name.strip(), value.strip())
        return found

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The paths below the root that fit a glob pattern, sorted."""
        try:
            return tuple(sorted(str(path.relative_to(self._root)) for path in self._root.glob(pattern)))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder; one behind a closed door does not count."""
        try:
            return (self._root / path).exists()
        except OSError:
            return False
