"""All that the screens ask of the rooms to the left; every question may take its time and is asked from a thread."""

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dlbricks_tui.settings import SAMPLE_MODELS, DataFolder

if TYPE_CHECKING:
    from dlbricks_tui.tui.judging import Judge
    from dlbricks_tui.tui.kept_standings import KeptStandings
    from dlbricks_tui.tui.live.runs import Runs
    from dlbricks_tui.tui.opening import Opener
    from dlbricks_tui.tui.shared_store import SharedStore


class Session:
    """One person's sitting with one data folder.

    What it is made of is imported by the first who needs it, in a thread, so that the first screen is there before.
    """

    def __init__(self, data: DataFolder, samples: Path = SAMPLE_MODELS) -> None:
        self.data = data
        self._samples = samples
        self._lock = Lock()
        self._opener: Opener | None = None
        self._judge: Judge | None = None
        self._store: SharedStore | None = None
        self._standings: KeptStandings | None = None

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever measured or imported here."""
        return not self.data.store.exists()

    @property
    def opener(self) -> "Opener":
        """Reads models."""
        from dlbricks_tui.tui.opening import Opener

        with self._lock:
            if self._opener is None:
                self._opener = Opener(self.data, self._samples)
            return self._opener

    @property
    def store(self) -> "SharedStore":
        """Everything that was measured."""
        from dlbricks_tui.tui.shared_store import SharedStore

        with self._lock:
            if self._store is None:
                self._store = SharedStore(self.data.store)
            return self._store

    @property
    def judge(self) -> "Judge":
        """Knows the results."""
        from dlbricks_tui.tui.judging import Judge

        store = self.store
        with self._lock:
            if self._judge is None:
                self._judge = Judge(store)
            return self._judge

    @property
    def standings(self) -> "KeptStandings":
        """The estimates that were shown before."""
        from dlbricks_tui.tui.kept_standings import KeptStandings

        with self._lock:
            if self._standings is None:
                self._standings = KeptStandings(self.data)
            return self._standings

    @property
    def runs(self) -> "Runs":
        """Has runs started, stopped and taken up."""
        from dlbricks_tui.tui.live.runs import Runs

        return Runs(self.data)

    def close(self) -> None:
        """Ends what is still under way: nobody waits for the answers any more."""
        with self._lock:
            if self._opener is not None:
                self._opener.close()
            if self._store is not None:
                self._store.close()
