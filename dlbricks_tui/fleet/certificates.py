"""Certificates of a fleet: driver, scheduler and hosts prove to each other that they belong to it.

One authority signs one certificate for the driver and its scheduler, and one for all hosts. A private key lets its
owner take part in the fleet, so all keys are readable by their owner only.
"""

import os
import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.request import USUAL_FOLDER

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate
    from distributed.security import Security

    # A private key and its certificate.
    _Pair: TypeAlias = tuple[EllipticCurvePrivateKey, Certificate]

_DAYS = 3650
_SECRET, _PUBLIC, _FOLDER = 0o600, 0o644, 0o700
_DRIVER, _HOST = "driver", "host"


@dataclass(frozen=True, slots=True)
class Certificates:
    """The folder with the certificates and private keys of a fleet."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that signed all others; once it is there, all have been made."""
        return self.folder / "authority.pem"

    @property
    def of_hosts(self) -> tuple[Path, ...]:
        """The files that a host needs: the authority, and the certificate and key of hosts."""
        return self._of(_HOST)

    def copying_to(self, folder: str) -> str:
        """Return the command that copies the files that a host needs from here to a folder there."""
        return _copying(shlex.quote(str(self.folder)), folder)

    def create(self) -> bool:
        """Create an authority and certificates; keep those that are there already, and return False.

        The authority's private key is not kept, so no one can sign further certificates of the fleet. Raise FleetError
        if some are missing.
        """
        if self.authority.exists():
            for name in (_DRIVER, _HOST):
                self._require(name)
            return False
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(_FOLDER)
            signer = _made("dlbricks fleet")
            for name in (_DRIVER, _HOST):
                _, certificate_file, key_file = self._of(name)
                key, certificate = _made(f"dlbricks {name}", signer)
                _write_new(key_file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), _SECRET)
                _write_new(certificate_file, certificate.public_bytes(Encoding.PEM), _PUBLIC)
            # Last: it says that the others are complete.
            _write_new(self.authority, signer[1].public_bytes(Encoding.PEM), _PUBLIC)
        except OSError as error:
            raise FleetError(f"cannot write the certificates to {self.folder}: {error.strerror}") from error
        return True

    def for_driver(self) -> "Security":
        """Return the security settings of the driver and its scheduler."""
        self._require(_DRIVER)
        return self._security(_DRIVER)

    def for_host(self) -> "Security":
        """Return the security settings of a host's worker."""
        for path in self.of_hosts:
            if not path.is_file():
                # `fleet init` would make those of another fleet here.
                copying = _copying(f"{USUAL_FOLDER}/certificates", shlex.quote(str(self.folder)))
                raise FleetError(
                    f"{path} is missing: copy it from the machine that drives the fleet, there by `{copying}`"
                )
        return self._security(_HOST)

    def _security(self, name: str) -> "Security":
        from distributed.security import Security

        _, certificate, key = self._of(name)
        if key.stat().st_mode & 0o077:
            raise FleetError(f"{key} can be read by others, and is a private key: chmod 600 {key}")
        return Security(
            tls_ca_file=str(self.authority),
            require_encryption=True,
            **{f"tls_{role}_cert": str(certificate) for role in ("client", "scheduler", "worker")},
            **{f"tls_{role}_key": str(key) for role in ("client", "scheduler", "worker")},
        )

    def _require(self, name: str) -> None:
        cure = "`dlbricks fleet init` makes the certificates of a fleet"
        if self.authority.exists():
            cure = "copy it from the machine that made the others, or remove the folder: all hosts need new ones then"
        for path in self._of(name):
            if not path.is_file():
                raise FleetError(f"{path} is missing: {cure}")

    def _of(self, name: str) -> tuple[Path, Path, Path]:
        return self.authority, self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"


def _made(name: str, signer: "_Pair | None" = None) -> "_Pair":
    """Return a new key and its certificate; without a signer it signs itself, and others."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if signer is None else signer[1].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A host's clock may be behind.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if signer is not None:
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer[0].public_key())
        # Workers and the scheduler both call and are called.
        both = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(above, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return key, builder.sign(key if signer is None else signer[0], SHA256())


def _copying(source: str, target: str) -> str:
    return f"ssh HOST mkdir -p {target} && scp -p {source}/{{authority,host,host-key}}.pem HOST:{target}"


def _write_new(path: Path, content: bytes, mode: int) -> None:
    # Left behind by an attempt that was interrupted.
    path.unlink(missing_ok=True)
    # Created with its mode: at no moment can others read a key.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
