"""Files of the kernel about this host, and the limit on processor time that they tell."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path("/")
CGROUP = "sys/fs/cgroup"


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

    @property
    def available_memory_bytes(self) -> int | None:
        """The memory that new programs may take, of the control group at most; None where the kernel does not say."""
        words = self.fields("proc/meminfo").get("MemAvailable", "").split()
        return min([1024 * int(words[0]), *memory_limits(self, free=True)]) if words else None

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


def quota_cores(host: HostFiles) -> float | None:
    """Return the processor time limit of the control group, in cores; None without a limit."""
    limits = []
    for group in control_groups(host, ""):
        quota, _, period = (host.text(f"{CGROUP}/{group}/cpu.max") or "").partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            limits.append(int(quota) / int(period))
    for group in control_groups(host, "cpu"):
        microseconds = host.number(f"{CGROUP}/cpu/{group}/cpu.cfs_quota_us")
        period_us = host.number(f"{CGROUP}/cpu/{group}/cpu.cfs_period_us")
        if microseconds is not None and period_us and microseconds > 0:
            limits.append(microseconds / period_us)
    return min(limits, default=None)


def memory_limits(host: HostFiles, free: bool = False) -> list[int]:
    """Return the memory limits of the control group and its parents, or what programs leave free of each."""
    groups = [(f"{CGROUP}/{it}", "max", "current", "") for it in control_groups(host, "")]
    groups += [
        (f"{CGROUP}/memory/{it}", "limit_in_bytes", "usage_in_bytes", "total_") for it in control_groups(host, "memory")
    ]
    found = []
    for group, limit, usage, prefix in groups:
        most = host.number(f"{group}/memory.{limit}")
        if most is not None and free:
            # Pages of files, which the kernel gives back, count as used there.
            cached = host.fields(f"{group}/memory.stat", " ").get(f"{prefix}inactive_file", "0")
            most -= max(0, (host.number(f"{group}/memory.{usage}") or 0) - int(cached))
        found.append(most)
    return [it for it in found if it is not None]


def cores_within(cores: int, quota: object) -> int:
    """Return how many cores there are to use within a limit of their time; anything but a number is none."""
    return max(1, int(min(cores, quota))) if isinstance(quota, int | float) else cores


def control_groups(host: HostFiles, controller: str) -> Iterable[str]:
    """Return the control group of this process and its parents, whose limits apply too."""
    for line in (host.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controller in controllers.split(","):
            inner = PurePosixPath(path.strip("/"))
            # In a container the path may be the host's, while the file tree has the container's group as its root.
            return dict.fromkeys([str(inner), *map(str, inner.parents), "."])
    return ()
