"""The dask scheduler of a fleet: its settings and address, the certificates of those who may join, and the connection.

Driver, scheduler and hosts prove to each other that they belong to the fleet. One authority signs one certificate for
the driver and its scheduler, and one for all hosts. A private key lets its owner take part in the fleet, so all keys
are readable by their owner only.
"""

import asyncio
import ipaddress
import os
import shlex
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from dlbricks_tui.files import write_atomically
from dlbricks_tui.fleet.request import USUAL_FOLDER, FleetError, first_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate
    from distributed.security import Security

    # A private key and its certificate.
    _Pair: TypeAlias = tuple[EllipticCurvePrivateKey, Certificate]

SECURE, PLAIN = "tls", "tcp"
LOOPBACK = "127.0.0.1"
SECONDS_TO_CONNECT = 10.0
# A scheduler greets each connection at once.
_SECONDS_TO_GREET = 5.0
_LATER = "check its address, and that it runs"
# A host whose worker says nothing for so long is lost.
TIME_TO_LIVE = "90s"
SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    # The task of a worker that died is given up, and not tried on any other.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": TIME_TO_LIVE,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.events-cleanup-delay": "1m",
    # Pages about the scheduler and the workers, which ask for no certificate.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Lost hosts stay members of a cluster: their connections are made again.
    "distributed.deploy.lost-worker-timeout": "1000 days",
    # Statistical profilers: threads that look at the others a hundred times a second.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "10m",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.diagnostics.nvml": False,
    # The scheduler keeps this many messages of hosts in memory.
    "distributed.admin.log-length": 100,
    # A parcel may be larger than what dask warns of.
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.comm.retry.count": 2,
}
_LOG_BYTES = 1 << 20
_DAYS = 3650
_SECRET, _PUBLIC, _FOLDER = 0o600, 0o644, 0o700
_DRIVER, _HOST = "driver", "host"


def check_address(address: str, allow_plain: bool) -> SplitResult:
    """Return the parts of an address; raise FleetError if it is none, or if others could listen or join there."""
    place = SplitResult("", "", "", "", "")
    try:
        place = urlsplit(address)
        usable = place.scheme in (SECURE, PLAIN) and bool(place.hostname) and bool(place.port)
    except ValueError:
        usable = False
    if not usable:
        raise FleetError(f"{address[:80]!r} is no address of a scheduler: write it like tls://10.0.0.1:8786")
    is_loopback = place.hostname == "localhost"
    with suppress(ValueError):
        is_loopback |= ipaddress.ip_address(place.hostname or "").is_loopback
    if place.scheme == PLAIN and not allow_plain and not is_loopback:
        raise FleetError(
            f"{address[:80]} has neither encryption nor certificates: anybody on its network could run programs on all "
            "hosts; start it with TLS (docs/guides/many-hosts.md), or give --allow-plain on a network of your own"
        )
    return place


def reason_of(error: BaseException) -> str:
    """Return the reason in an error of dask, in one short line."""
    # The error of a function that could not be loaded is the cause of another one.
    causes = [error]
    while causes[-1].__cause__ is not None and len(causes) < 10:
        causes.append(causes[-1].__cause__)
    for cause in causes:
        if isinstance(cause, ImportError | AttributeError):
            return (
                "dask cannot load dlbricks there: the scheduler and the hosts need the version of dlbricks that this "
                f"machine has ({first_line(cause)})"
            )
    return first_line(error)


async def check_scheduler(address: str, security: "Security | None") -> None:
    """Connect to a scheduler and hang up; raise FleetError for what is wrong with its address or the certificates.

    Dask itself would try for long, and call everything a timeout.
    """
    place = urlsplit(address)
    context = None
    if place.scheme == SECURE:
        try:
            context = None if security is None else security.get_connection_args("client")["ssl_context"]
        except (OSError, ValueError) as error:
            raise FleetError(f"the certificates of this fleet cannot be read: {first_line(error)}") from error
        if context is None:
            raise FleetError(
                f"{address} asks for certificates: `dlbricks fleet init` makes them, and each host has a copy"
            )
    try:
        await _greeting(place.hostname or "", place.port or 0, context)
    except ssl.SSLCertVerificationError as error:
        raise FleetError(
            f"the scheduler at {address} is of another fleet: its certificate is not signed by the authority of this "
            f"one ({error.verify_message})"
        ) from error
    except ssl.SSLError as error:
        if error.reason and "ALERT" in error.reason:
            raise _refused(address) from error
        why = "does not speak TLS: check the port; a scheduler without TLS has an address with tcp://"
        raise FleetError(f"{address} {why}") from error
    except (ConnectionRefusedError, socket.gaierror) as error:
        raise FleetError(f"nothing answers at {address}: {error.strerror}; {_LATER}") from error
    except (asyncio.TimeoutError, TimeoutError) as error:
        raise FleetError(f"nothing answers at {address} within {SECONDS_TO_CONNECT:.0f} seconds; {_LATER}") from error
    except EOFError as error:
        if context is not None:
            raise _refused(address) from error
        why = "does not greet as a dask scheduler without TLS does: try tls://, or"
        raise FleetError(f"{address} {why} {_LATER}") from error
    except OSError as error:
        raise FleetError(f"nothing answers at {address}: {error.strerror or error}; {_LATER}") from error


def _refused(address: str) -> FleetError:
    return FleetError(
        f"the scheduler at {address} refuses the certificate of this machine: it is of another fleet; "
        "use the certificates that the scheduler was started with"
    )


async def _greeting(host: str, port: int, context: ssl.SSLContext | None) -> None:
    """Wait for the first byte of a scheduler; raise EOFError if it sends none."""
    # Fleets check the authority, not the name: hosts are reached by addresses, and through tunnels.
    opening = asyncio.open_connection(host, port, ssl=context, server_hostname="" if context else None)
    reader, writer = await asyncio.wait_for(opening, SECONDS_TO_CONNECT)
    try:
        # With TLS 1.3 the other side refuses our certificate after the handshake.
        first = await asyncio.wait_for(reader.read(1), _SECONDS_TO_GREET)
    except (asyncio.TimeoutError, TimeoutError, ConnectionError):
        first = b""
    finally:
        writer.close()
        with suppress(Exception):
            await asyncio.wait_for(writer.wait_closed(), 1)
    if not first:
        raise EOFError


def set_up(log: Path | None = None) -> None:
    """Load dask with the settings above, and write its warnings to a file instead of the standard error."""
    import logging
    import warnings
    from logging.handlers import RotatingFileHandler

    import dask.config

    # Before `distributed` is loaded: it reads some of them once, and sets up its log.
    dask.config.set(SETTINGS)
    import distributed

    handler: logging.Handler = logging.NullHandler()
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(log, maxBytes=_LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    packages = (distributed.__name__, "tornado", "asyncio", "bokeh")
    # Dask gives some of their parts handlers of their own.
    parts = [name for name in logging.root.manager.loggerDict if "." in name and name.partition(".")[0] in packages]
    for name in (*packages, *parts):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET if "." in name else logging.WARNING)
        logger.propagate = "." in name
        logger.handlers = [] if "." in name else [handler]
    # Such as that of other versions of packages, which matter to none of our texts.
    warnings.filterwarnings("ignore", module=r"distributed(\.|$)")


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
            # Last, and in one step: it says that all are complete.
            write_atomically(self.authority, signer[1].public_bytes(Encoding.PEM).decode())
        except OSError as error:
            raise FleetError(f"cannot write the certificates to {self.folder}: {error.strerror}") from error
        return True

    def for_driver(self) -> "Security":
        """Return the security settings of the driver and its scheduler."""
        self._require(_DRIVER)
        return self._security(_DRIVER)

    def for_host(self) -> "Security":
        """Return the security settings of a host's worker."""
        # `fleet init` would make those of another fleet here.
        copying = _copying(f"{USUAL_FOLDER}/certificates", shlex.quote(str(self.folder)))
        self._require(_HOST, f"copy it from the machine that drives the fleet, there by `{copying}`")
        return self._security(_HOST)

    def _security(self, name: str) -> "Security":
        from distributed.security import Security

        authority, certificate, key = map(str, self._of(name))
        if Path(key).stat().st_mode & 0o077:
            raise FleetError(f"{key} can be read by others, and is a private key: chmod 600 {key}")
        roles = ("client", "scheduler", "worker")
        keys = {f"tls_{role}_{what}": path for role in roles for what, path in (("cert", certificate), ("key", key))}
        return Security(tls_ca_file=authority, require_encryption=True, **keys)

    def _require(self, name: str, cure: str = "") -> None:
        if not cure and self.authority.exists():
            cure = "copy it from the machine that made the others, or remove the folder: all hosts need new ones then"
        for path in self._of(name):
            if not path.is_file():
                raise FleetError(
                    f"{path} is missing: {cure or '`dlbricks fleet init` makes the certificates of a fleet'}"
                )

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
