"""The hosts of a fleet, as the hosts file names them."""

from dataclasses import dataclass

# The folder of dlbricks for the user's data on Linux, so that what dlbricks has measured there before counts.
USUAL_FOLDER = "~/.local/share/dlbricks"
USUAL_PYTHON = "python3"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """A host that is reached over SSH. What is empty or None comes from the user's SSH configuration."""

    # The name in tables and messages, unique in the fleet.
    name: str
    # A host name, an address, or a name of the SSH configuration; empty: the name above.
    address: str = ""
    port: int | None = None
    user: str = ""
    # The file of the private key.
    key: str = ""
    # The host through which it is reached, as `ssh -J` takes it.
    jump: str = ""
    # The folder on the host for the virtual environment and the data; empty: the usual one.
    folder: str = ""
    # The interpreter on the host that the virtual environment is made with; empty: python3.
    python: str = ""
    # Dollars; None: the price of the instance type, if it has one.
    price_per_hour: float | None = None

    @property
    def folder_there(self) -> str:
        """The folder on the host: its data folder, beside which the environment is the folder `venv` in it."""
        return self.folder or USUAL_FOLDER

    @property
    def python_there(self) -> str:
        """The interpreter that the doctor runs there, and that makes the environment."""
        return self.python or USUAL_PYTHON
