"""The folder of a fleet run: its request, and the commands of its user."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, create_fleet, read_fleet_request
from dlbricks_tui.fleet.request import FleetRequest, HostEntry
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.settings.fleets import Question
from tests.runs.runs import Site

HOSTS = (HostEntry(name="one", address="10.0.0.1", port=2222), HostEntry(name="two", price_per_hour=0.17))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


@pytest.fixture
def request_(site: Site) -> FleetRequest:
    return FleetRequest(run=site.request(), hosts=HOSTS, question=Question.WHICH_HOST, probe_seconds=5.0)


def test_a_request_reads_as_it_was_written_and_another_is_refused(site: Site, request_: FleetRequest) -> None:
    folder = create_fleet(request_, site.data)
    assert read_fleet_request(folder.request_file) == request_
    for text in ("{}", "[", '{"schema": 99}', '{"schema": 1, "run": {}}'):
        folder.request_file.write_text(text)
        with pytest.raises(JobError, match="start a new"):
            read_fleet_request(folder.request_file)


def test_fleet_runs_are_found_and_named_as_such(site: Site, request_: FleetRequest) -> None:
    folder = create_fleet(request_, site.data)
    folders = FleetFolders(site.data.fleets)
    found = folders.find("last")
    assert isinstance(found, FleetFolder)
    assert found.run == folder.run
    with pytest.raises(JobError, match="no fleet run is called 'nonsense'; `dlbricks fleet list` shows"):
        folders.find("nonsense")


def test_hosts_that_are_added_are_kept_for_later(site: Site, request_: FleetRequest) -> None:
    folder = create_fleet(request_, site.data)
    folder.add_hosts([HostEntry(name="three", user="me", port=22)])
    with folder.commands_file.open("ab") as file:
        # A torn command loses no other one.
        file.write(b'{"event":"HostAdded","na')
    folder.add_hosts([HostEntry(name="four", price_per_hour=1.5)])
    assert folder.added_hosts() == (
        HostEntry(name="three", user="me", port=22),
        HostEntry(name="four", price_per_hour=1.5),
    )
    assert folder.host_names() == ("one", "two", "three", "four")
    with pytest.raises(FleetError, match="has a host three already"):
        folder.add_hosts([HostEntry(name="three")])


def test_a_command_for_an_unknown_host_names_those_there_are(site: Site, request_: FleetRequest) -> None:
    folder = create_fleet(request_, site.data)
    for command in (folder.pause_host, folder.unpause_host, folder.cancel_host):
        with pytest.raises(FleetError, match="has no host 'nine'; its hosts are one, two"):
            command("nine")


def test_a_command_for_a_fleet_run_that_has_ended_is_refused(site: Site, request_: FleetRequest) -> None:
    folder = create_fleet(request_, site.data)
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    with pytest.raises(JobError, match=r"fleet run .* is finished: there is nothing to pause"):
        folder.pause_host("one")
