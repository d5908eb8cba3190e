"""SSH connections to a real server on the loopback, with another home folder for both sides."""

import asyncio
import re
import socket
import stat
from pathlib import Path

import asyncssh
import pytest

from dlbricks_tui.fleet.engine import ssh as connecting
from dlbricks_tui.fleet.engine.ssh import Connect, HostRefusedError, SshConnection, SshError, check_hosts, connected
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.request import HostEntry
from tests.fleet.ssh_server import USER, Person, SshServer, on_host, served


def _refused(entry: HostEntry, kind: type[FleetError] = HostRefusedError) -> str:
    with pytest.raises(kind) as caught:
        on_host(entry, lambda it: it.run("true", seconds=10))
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_command_gets_its_input_and_tells_its_output_and_status(server: SshServer) -> None:
    connect: Connect = connected
    assert connect is connected
    found = on_host(server.entry(), lambda it: it.run("cat; echo wrong >&2; exit 3", b"x" * 500_000, seconds=30))
    assert (found.status, found.out, found.err) == (3, b"x" * 500_000, b"wrong\n")
    # One that reads no input is run all the same.
    assert on_host(server.entry(), lambda it: it.run("exit 4", b"x" * 5_000_000, seconds=30)).status == 4


def test_a_connection_that_a_busy_server_ends_is_tried_once_more(server: SshServer) -> None:
    server.refusals = 1
    assert on_host(server.entry(), lambda it: it.run("exit 4", seconds=30)).status == 4
    server.refusals = 2
    assert re.search("ended the connection|Connection reset by peer", _refused(server.entry(), SshError))


def test_a_command_that_takes_too_long_or_prints_too_much_is_an_error(server: SshServer) -> None:
    with pytest.raises(SshError, match="longer than 0 seconds there: sleep 60"):
        on_host(server.entry(), lambda it: it.run("sleep 60", seconds=0.1))
    with pytest.raises(SshError, match="prints more than"):
        on_host(server.entry(), lambda it: it.run("yes", seconds=30, most_bytes=100_000))


def test_a_file_is_sent_for_the_user_only_and_a_full_disk_told(server: SshServer, tmp_path: Path) -> None:
    source, target = tmp_path / "source", server.home / "a target's name"
    source.write_bytes(bytes(range(256)) * 4000)
    on_host(server.entry(), lambda it: it.send(source, str(target)))
    assert target.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(SshError, match=r"source cannot be written to /dev/full: .*No space left on device"):
        on_host(server.entry(), lambda it: it.send(source, "/dev/full"))


def test_a_connection_that_is_cut_ends_a_command_at_once(server: SshServer) -> None:

    async def cut(it: SshConnection) -> None:
        asyncio.get_running_loop().call_later(0.2, lambda: asyncio.ensure_future(asyncio.to_thread(server.drop)))
        await it.run("sleep 60", seconds=60)

    with pytest.raises(SshError, match="the connection ended"):
        on_host(server.entry(), cut)


@pytest.mark.parametrize("lax", ["", "Host *\n StrictHostKeyChecking no\n UserKnownHostsFile none\n"])
def test_a_server_with_an_unknown_key_is_refused_whatever_the_configuration_says(
    person: Person, unknown_server: SshServer, lax: str
) -> None:
    person.configure(lax)
    told = _refused(unknown_server.entry())
    assert unknown_server.host_key.get_fingerprint() in told
    assert f"`ssh -p {unknown_server.port} {USER}@127.0.0.1 true`" in told
    assert unknown_server.commands == []


def test_a_server_with_another_key_than_before_is_refused(person: Person, unknown_server: SshServer) -> None:
    known, unknown_server.host_key = unknown_server.host_key, asyncssh.generate_private_key("ssh-ed25519")
    person.trusts(unknown_server)
    unknown_server.host_key = known
    assert "not in known_hosts with this key" in _refused(unknown_server.entry())
    (person.home / ".ssh" / "known_hosts").unlink()
    unknown_server.host_key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    person.trusts(unknown_server)
    assert "none of the keys that known_hosts has" in _refused(unknown_server.entry())


def test_the_first_host_that_ssh_refuses_is_named_in_one_line(person: Person, unknown_server: SshServer) -> None:
    with pytest.raises(HostRefusedError) as caught:
        check_hosts([unknown_server.entry(name=name) for name in ("one", "two", "three")])
    told = str(caught.value)
    assert told.startswith(f"one: 127.0.0.1 port {unknown_server.port} is not in known_hosts with this key")
    assert told.endswith("(and 2 more: dlbricks fleet doctor --hosts FILE)")
    person.trusts(unknown_server)
    check_hosts([])

    async def in_a_notebook() -> None:
        check_hosts([unknown_server.entry(), unknown_server.entry(name="two")])

    asyncio.run(in_a_notebook())


def test_hosts_that_may_come_back_keep_nobody_waiting(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_SECONDS_TO_CHECK", 0.2)
    with socket.socket() as silent, socket.socket() as closed:
        for each in (silent, closed):
            each.bind(("127.0.0.1", 0))
        silent.listen()
        ports = [each.getsockname()[1] for each in (silent, closed)]
        check_hosts([server.entry(), *(server.entry(name=f"h{port}", port=port) for port in ports)])


def test_a_key_that_the_server_does_not_accept_is_refused(server: SshServer, tmp_path: Path) -> None:
    other = Person(tmp_path / "other")
    told = _refused(server.entry(key=str(other.key)))
    assert (
        told
        == f"127.0.0.1 port {server.port} accepts none of your keys for {USER}: correct user and key in the hosts file"
    )


def test_a_key_with_a_passphrase_needs_the_agent(person: Person, server: SshServer) -> None:
    private = asyncssh.read_private_key(str(person.key))
    private.write_private_key(str(person.key), "pkcs8-pem", passphrase="secret")
    assert f"`ssh-add {person.key}`" in _refused(server.entry(key=str(person.key)))
    assert "keys with a passphrase need ssh-add" in _refused(server.entry())


def test_a_host_is_reached_through_the_jump_host_of_the_hosts_file(
    person: Person, unknown_server: SshServer, tmp_path: Path
) -> None:
    with served(SshServer(tmp_path, Path(f"{person.key}.pub"), {})) as jump:
        entry = unknown_server.entry(jump=f"{USER}@127.0.0.1:{jump.port}")
        assert f"jump host 127.0.0.1 port {jump.port} is not in known_hosts" in _refused(entry)
        person.trusts(jump)
        told = _refused(entry)
        assert f"`ssh -p {unknown_server.port} -J {USER}@127.0.0.1:{jump.port} {USER}@127.0.0.1 true`" in told
        person.trusts(unknown_server)
        assert on_host(entry, lambda it: it.run("echo there", seconds=30)).out == b"there\n"
        assert jump.commands == []
        jump.forwards = False
        assert "cannot be reached from the jump host" in _refused(entry, SshError)


def test_a_host_is_reached_as_the_ssh_configuration_says(
    person: Person, unknown_server: SshServer, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    person.key.rename(key)
    with served(SshServer(tmp_path, Path(f"{person.key}.pub"), {})) as jump:
        person.trusts(jump)
        person.trusts(unknown_server)
        person.configure(
            f"Host gate inner\n HostName 127.0.0.1\n User {USER}\n IdentityFile ~/.ssh/absent\n IdentityFile {key}\n"
            f"Host gate\n Port {jump.port}\nHost inner\n Port {unknown_server.port}\n ProxyJump gate\n"
        )
        assert on_host(HostEntry(name="inner"), lambda it: it.run("echo there", seconds=30)).out == b"there\n"
        assert len(jump.connections) == 1
        # The hosts file goes first.
        on_host(HostEntry(name="inner", jump="none"), lambda it: it.run("true", seconds=30))
        assert len(jump.connections) == 1


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("Host a\n ProxyJump b\nHost b\n ProxyJump a\n", "more than 8 jump hosts"),
        ("Host a\n Port many\n", "your SSH configuration cannot be read"),
    ],
)
def test_a_configuration_that_leads_nowhere_is_refused(person: Person, configuration: str, said: str) -> None:
    person.configure(configuration)
    assert said in _refused(HostEntry(name="a"))


def test_ports_are_forwarded_both_ways_between_the_loopbacks(server: SshServer) -> None:

    async def both(it: SshConnection) -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()

        echo = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = echo.sockets[0].getsockname()[1]
        there = await it.forward_there(port)
        here = await it.forward_here(there)
        assert len({port, there, here}) == 3
        reader, writer = await asyncio.open_connection("127.0.0.1", here)
        writer.write(b"through\n")
        found = await reader.read()
        writer.close()
        echo.close()
        return found

    assert on_host(server.entry(), both) == b"through\n"


def test_a_server_that_forwards_no_ports_is_refused(server: SshServer) -> None:
    server.forwards = False
    with pytest.raises(HostRefusedError, match="set AllowTcpForwarding yes"):
        on_host(server.entry(), lambda it: it.forward_there(1))
