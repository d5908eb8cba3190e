"""A wheel of the dlbricks that runs here, made without network and without pip, and what hosts must have beside it."""

import base64
import hashlib
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import dlbricks_tui
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up.findings import Wanted, WantedPackage
from dlbricks_tui.fleet.setting_up.host_check import PACKAGE, content_of, package_files
from dlbricks_tui.folders import SAMPLE_MODELS, THEMES
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import traits_of

DISTRIBUTION = "dlbricks-tui"
_FLEET = "fleet"
# What both sides must have in one version: the engine, whose messages change with it, and the reader of models.
_ALWAYS = ("distributed", "dask", "onnx")
_FOLDER = Path(dlbricks_tui.__file__).parent
# In a checkout only; a wheel leaves them out.
_BUILDERS = f"{PACKAGE}/sample_models/builders/"
_WHEEL = "Wheel-Version: 1.0\nGenerator: dlbricks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# The earliest that a zip file can state: the same content makes the same wheel.
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


def wanted(runtimes: Sequence[Runtime]) -> Wanted:
    """Return what hosts need to measure by these runtimes as this machine would."""
    found = _distribution()
    frameworks = tuple(dict.fromkeys(it.framework for it in runtimes))
    versions = {**_installed(_ALWAYS), **dict(_package(it) for it in runtimes)}
    offered = found.metadata.get_all("Provides-Extra") or []
    return Wanted(
        dlbricks=dlbricks_tui.__version__,
        content=content_of(own_files()),
        packages=tuple(_wanted_package(found, name, version) for name, version in versions.items()),
        extras=(_FLEET, *(each for each in frameworks if each in offered)),
        frameworks=frameworks,
        python=".".join(platform.python_version_tuple()[:2]),
    )


def own_files() -> dict[str, Path]:
    """Return the files of this dlbricks by their names in a wheel; in a checkout some stand beside the package."""
    files = package_files(_FOLDER)
    for folder in (SAMPLE_MODELS, THEMES):
        files |= package_files(folder, f"{PACKAGE}/{folder.name}")
    return {name: path for name, path in files.items() if not name.startswith(_BUILDERS)}


def write_wheel(folder: Path) -> Path:
    """Write the wheel of this dlbricks into a folder, and return its path."""
    found = _distribution()
    stem = f"{PACKAGE}-{dlbricks_tui.__version__}"
    described = {"METADATA": found.read_text("METADATA"), "entry_points.txt": found.read_text("entry_points.txt")}
    contents = {name: path.read_bytes() for name, path in sorted(own_files().items())}
    contents |= {f"{stem}.dist-info/{name}": text.encode() for name, text in described.items() if text}
    contents[f"{stem}.dist-info/WHEEL"] = _WHEEL.encode()
    contents |= {f"{stem}.dist-info/{name}": content for name, content in _licenses(found).items()}
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    contents[f"{stem}.dist-info/RECORD"] = "\n".join([*record, f"{stem}.dist-info/RECORD,,", ""]).encode()
    path = folder / f"{stem}-py3-none-any.whl"
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for name, content in contents.items():
            entry = ZipInfo(name, _TIME)
            entry.external_attr, entry.compress_type = _MODE, ZIP_DEFLATED
            wheel.writestr(entry, content)
    return path


def _licenses(found: metadata.Distribution) -> dict[str, bytes]:
    """Return the license files by their names beside the metadata, which names them."""
    listed = found.files or []
    paths = [
        it for it in listed if len(it.parts) > 2 and it.parts[-3].endswith(".dist-info") and it.parts[-2] == "licenses"
    ]
    return {f"licenses/{it.name}": Path(str(found.locate_file(it))).read_bytes() for it in paths}


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _distribution() -> metadata.Distribution:
    """Return the installed metadata of the dlbricks that runs; refuse that of another version."""
    cure = (
        f"install it here again: pip install '{DISTRIBUTION}[{_FLEET}]', or pip install -e '.[{_FLEET}]' in a checkout"
    )
    try:
        found = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise FleetError(f"no wheel of this dlbricks can be made, as it was never installed: {cure}") from error
    if found.version != dlbricks_tui.__version__ or _FLEET not in (found.metadata.get_all("Provides-Extra") or ()):
        raise FleetError(f"no wheel of this dlbricks can be made, as another version was installed here: {cure}")
    return found


def _installed(names: Sequence[str]) -> dict[str, str]:
    return {name: version for name in names if (version := _version(name)) is not None}


def _package(runtime: Runtime) -> tuple[str, str]:
    """Return the package of the framework of a runtime and its version."""
    packages = traits_of(runtime.framework).packages
    here = {name: version for name, version in _installed(packages).items() if _same(version, runtime.version)}
    return next(iter(here.items()), (packages[0], runtime.version))


def _same(version: str, other: str) -> bool:
    # A runtime is known without the number of its post-release.
    return version.split(".post")[0] == other.split(".post")[0]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _wanted_package(ours: metadata.Distribution, name: str, version: str) -> WantedPackage:
    stated = metadata.metadata(name).get_all("Requires-Python") if _version(name) == version else None
    pythons = stated[0] if stated else ""
    return WantedPackage(name=name, version=version, pythons=pythons, condition=_condition(ours, name))


def _condition(ours: metadata.Distribution, name: str) -> str:
    """Return the condition under which this dlbricks needs a package; empty if it always does."""
    for text in ours.requires or []:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == name and requirement.marker is not None:
            return str(requirement.marker)
    return ""
