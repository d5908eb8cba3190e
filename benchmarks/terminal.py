"""A program in a pseudo-terminal: send keys, read cells, and time both."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_ESCAPE = re.compile(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|[@-Z\\-_])")

# What a person has. Without buffers nothing would be left to be written when the terminal is gone.
_USUAL = {"TERM": "screen", "PYTHONUNBUFFERED": ""}


class Terminal:
    """Runs a command on a pseudo-terminal of so many columns and lines, as `TERM=screen` does."""

    def __init__(self, command: Sequence[str], size: tuple[int, int], environment: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self.written = bytearray()
        self._status: int | None = None
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), {**os.environ, **_USUAL, **environment})
        self.resize(size)

    def resize(self, size: tuple[int, int]) -> None:
        """Makes the terminal another size; the program is told."""
        columns, lines = size
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def send(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._master, keys.encode())

    def read_for(self, seconds: float) -> int:
        """Reads what the program writes for so long and returns how many bytes that were."""
        before, end = len(self.written), time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)
        return len(self.written) - before

    def seconds_until(self, text: str, patience: float = 120.0) -> float:
        """Reads until the text has been written since now, and returns the seconds from the call."""
        start, place = time.perf_counter(), len(self.written)
        while text.encode() not in _ESCAPE.sub(b"", bytes(self.written[place:])):
            if time.perf_counter() - start > patience or not self._read(patience):
                raise TimeoutError(f"{text!r} did not appear; the last that did: {bytes(self.written[-400:])!r}")
        return time.perf_counter() - start

    def text_since(self, place: int) -> str:
        """Return the text that was written from a place on, without what only moves and colours."""
        return _ESCAPE.sub(b"", bytes(self.written[place:])).decode(errors="replace")

    def seconds_until_quiet(self, quiet: float = 0.15) -> float:
        """Reads until nothing more is written, and returns the seconds from the call to the last that was."""
        start = last = time.perf_counter()
        while self._read(quiet):
            last = time.perf_counter()
        return last - start

    def wait_until(self, holds: Callable[[], bool], patience: float = 120.0) -> None:
        """Reads what the program writes until something holds elsewhere."""
        end = time.perf_counter() + patience
        while not holds():
            if time.perf_counter() > end:
                raise TimeoutError(f"it did not come about within {patience:g} s")
            self._read(0.02)

    def memory_bytes(self) -> int:
        """Return the memory that the program holds now."""
        statm = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(statm[1]) * os.sysconf("SC_PAGE_SIZE")

    def modes(self) -> list[object]:
        """Return the way in which the terminal treats what is typed."""
        return list(termios.tcgetattr(self._master))

    def hang_up(self) -> None:
        """Takes the terminal away, as a connection does that drops."""
        os.close(self._master)
        self._master = -1

    def wait(self, patience: float) -> int:
        """Waits for the program to end, reading what it still writes, and returns its wait status."""
        end = time.perf_counter() + patience
        while self._status is None and time.perf_counter() < end:
            if self._master < 0 or not self._read(0.05):
                time.sleep(0.02)
            self._reap()
        while self._master >= 0 and self._read(0.05):
            # What it wrote last may still be under way.
            continue
        if self._status is None:
            raise TimeoutError(f"the program did not end within {patience:g} s")
        return self._status

    def close(self) -> None:
        """Ends the program, and what it waits for, if it has not ended."""
        self._reap()
        if self._status is None:
            os.killpg(self.pid, signal.SIGKILL)
            _, self._status = os.waitpid(self.pid, 0)
        if self._master >= 0:
            self.hang_up()

    def _reap(self) -> None:
        if self._status is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if done else None

    def _read(self, patience: float, most: int = 1 << 16) -> bool:
        ready, _, _ = select.select([self._master], [], [], patience)
        if not ready:
            return False
        try:
            chunk = os.read(self._master, most)
        except OSError:
            # The program has closed its side.
            return False
        self.written += chunk
        return bool(chunk)
