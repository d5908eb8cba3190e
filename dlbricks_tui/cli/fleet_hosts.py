"""`dlbricks fleet doctor`, `init` and `worker`: set up the hosts of fleets, and measure on one of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.fleets import require_extra
from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import Actions, Parser, Status, add_action, add_schema_option
from dlbricks_tui.fleet.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.fleet.setting_up.doctor import Examination


def add_host_actions(actions: Actions) -> None:
    """Add `doctor`, `init` and `worker`."""
    _add_doctor(actions)
    making = add_action(actions, "init", "make the certificates of a fleet, unless they are there", make_certificates)
    making.add_argument("folder", metavar="DIR", nargs="?", type=Path, help="(default: in the data folder)")
    _add_worker(actions)


def _add_doctor(actions: Actions) -> None:
    doctor = add_action(actions, "doctor", "name what hosts lack, and set them up", examine_fleet)
    add_hosts_option(doctor)
    doctor.add_argument("--install", action="store_true", help="set up what is missing, without root")
    doctor.add_argument(
        "--wheels", metavar="DIR", type=Path, help="with --install: a folder of wheels for hosts without internet"
    )
    doctor.add_argument("--runtime", metavar="NAME", action="append", default=[], help="needed there; repeatable")
    doctor.add_argument("--all", action="store_true", help="list what is as it should be, too")
    add_schema_option(doctor, "FleetExamination", module="fleets")


def _add_worker(actions: Actions) -> None:
    worker = add_action(
        actions, "worker", "measure on this host for the driver of a dask scheduler", work_for_fleet, json=False
    )
    worker.add_argument("scheduler", metavar="ADDRESS", help="the scheduler, such as tls://10.0.0.1:8786")
    worker.add_argument("--name", metavar="NAME", required=True, help="the name of this host in the fleet")
    worker.add_argument(
        "--certificates", metavar="DIR", type=Path, help="the certificates of hosts (default: in the data folder)"
    )
    worker.add_argument(
        "--allow-plain",
        action="store_true",
        help="use a scheduler without TLS (tcp://) although other machines can reach it",
    )


def add_hosts_option(parser: Parser) -> None:
    """Take `--hosts`."""
    parser.add_argument("--hosts", metavar="FILE", type=Path, required=True, help="the hosts file")


def examine_fleet(args: argparse.Namespace) -> int:
    """Examine the hosts of a hosts file, and set them up if asked to."""
    require_extra()
    from dlbricks_tui.answers.fleets import fleet_examination
    from dlbricks_tui.fleet.engine.ssh import connected
    from dlbricks_tui.fleet.hosts_file import read_hosts
    from dlbricks_tui.fleet.setting_up.doctor import Readiness, examine_hosts
    from dlbricks_tui.fleet.setting_up.installing import set_up_hosts, wanted
    from dlbricks_tui.runtime.registry import Registry

    if args.wheels is not None and not args.install:
        raise FleetError("--wheels is for --install")
    hosts, registry = read_hosts(args.hosts), Registry(args.data.path)
    runtimes = [registry.find(name) for name in args.runtime] or list(registry.all())
    needed = wanted(runtimes)
    if args.install:
        found = set_up_hosts(
            hosts, needed, connected, wheels=args.wheels, step=lambda host, text: narrate(f"{host}: {text}")
        )
    else:
        found = examine_hosts(hosts, needed, connected)
    for host in found:
        if host.installed:
            narrate(f"{host.host}: {host.installed}")
    if args.json:
        write_json(fleet_examination(found))
    else:
        _show(found, everything=args.all)
    ready = all(host.state is Readiness.READY for host in found)
    if not ready and not args.install and any(host.can_be_set_up for host in found):
        narrate("`--install` sets up what is missing")
    return Status.DONE if ready else Status.DONE_WITH_FAILURES


def _show(found: Sequence[Examination], *, everything: bool) -> None:
    """Show what the doctor found; without `everything` only what a host lacks or what is worth knowing."""
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import CellKind, Column, Table, name_column
    from dlbricks_tui.fleet.setting_up.doctor import FindingVerdict, HostFinding

    signs = {FindingVerdict.FINE: " ", FindingVerdict.NOTE: "!", FindingVerdict.LACKS: "x"}
    rows: list[tuple[str, HostFinding]] = []
    for host in found:
        told = [it for it in host.findings if everything or it.verdict is not FindingVerdict.FINE]
        told = told or [HostFinding(subject="everything", state="as it should be", verdict=FindingVerdict.FINE)]
        rows += zip([host.host] + [""] * (len(told) - 1), told, strict=True)
    columns: tuple[Column[tuple[str, HostFinding]], ...] = (
        name_column("host", lambda it: it[0]),
        name_column("", lambda it: signs[it[1].verdict]),
        name_column("subject", lambda it: it[1].subject),
        Column("state", lambda it: it[1].state, CellKind.SENTENCE),
        Column("cure", lambda it: it[1].cure, CellKind.SENTENCE),
    )
    show_parts([Table(columns, rows)])


def make_certificates(args: argparse.Namespace) -> int:
    """Make the certificates and private keys of a fleet, or name those that are there."""
    require_extra()
    from dlbricks_tui.fleet.certificates import Certificates

    certificates = Certificates(args.folder or args.data.certificates)
    is_new = certificates.create()
    if args.json:
        write_json({"folder": str(certificates.folder), "hosts": [str(path) for path in certificates.of_hosts]})
    else:
        write(f"{certificates.folder}\n")
    if not is_new:
        narrate("they are there already, and stay as they are")
    copying = certificates.copying_to("FOLDER")
    narrate(f"workers that you start yourself need a copy: `{copying}`; over SSH they get one by themselves")
    return Status.DONE


def work_for_fleet(args: argparse.Namespace) -> int:
    """Measure on this host until the process is told to end."""
    require_extra()
    from dlbricks_tui.fleet.engine.worker import run_worker

    certificates = args.certificates or args.data.certificates
    run_worker(args.scheduler, args.name, certificates, narrate, allow_plain=args.allow_plain)
    return Status.DONE
