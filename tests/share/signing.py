"""Keys for tests, made by the real ssh-keygen."""

import subprocess
from pathlib import Path

from dlbricks_tui.folders import DataFolder


def ssh_key(path: Path, passphrase: str = "") -> Path:
    """Make a private key, with its public one beside it."""
    asked = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(asked, check=True, stdin=subprocess.DEVNULL)
    return path


def allow(data: DataFolder, name: str, key: Path) -> None:
    """Trust a key of somebody."""
    with data.allowed_signers.open("a") as file:
        file.write(f"{name} {key.with_name(key.name + '.pub').read_text()}")
