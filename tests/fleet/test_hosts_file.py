"""Hosts files: what they say, and one line with line and column for what they cannot say."""

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.fleet.hosts_file import hosts_of, read_hosts
from dlbricks_tui.fleet.request import FleetError, HostEntry

FULL = """\
# Two hosts behind a gateway.
[defaults]
user = "ubuntu"
port = 2222
jump = "me@gateway.example.org:2200,inner,[::1]:22"
folder = "~/measuring"
price_per_hour = 0.2

[[host]]
name = "c7i"
address = "10.0.0.4"
price_per_hour = 0.1785

[[host]]
name = "old-xeon.2"
address = "fe80::1%eth0"
port = 22
user = "me"
key = "keys/id"
jump = "none"
folder = "/data/dlbricks"
python = "python3.12"
price_per_hour = 1
"""
WITHOUT_KEY = FULL.replace('key = "keys/id"\n', "")
# The line and column of the fault, and words of the message.
MUTATED: dict[str, tuple[str, str, int, int, str]] = {
    "misspelt key": ('address = "10', 'adress = "10', 11, 1, "no key adress in [[host]]; did you mean address?"),
    "key in capitals": ('user = "me"', 'USER = "me"', 18, 1, "did you mean user?"),
    "unknown key": ("python =", "colour =", 22, 1, "no key colour in [[host]]; the keys of [[host]] are name, address"),
    "misspelt table": ("[defaults]", "[default]", 2, 2, "there is no key default in the file; did you mean defaults?"),
    "name among the defaults": ('user = "ubuntu"', 'name = "ubuntu"', 3, 1, "no key name in [defaults]; the keys"),
    "no name": ('name = "c7i"\n', "", 9, 3, "[[host]] lacks name: add it, up to 63 letters"),
    "a name twice": ("old-xeon.2", "C7I", 15, 1, "another host has the name"),
    "empty name": ('"c7i"', '""', 10, 1, "has to be up to 63 letters"),
    "name with a line break": ('"c7i"', '"c7i\\n"', 10, 1, "has to be up to 63 letters"),
    "name that is too long": ('"c7i"', f'"{"c" * 64}"', 10, 1, "has to be up to 63 letters"),
    "address that is an option": ('"10.0.0.4"', '"-oProxyCommand=x"', 11, 1, "has to be a host name"),
    "port as text": ("port = 22\n", 'port = "22"\n', 17, 1, "from 1 to 65535"),
    "port too large": ("port = 22\n", "port = 65536\n", 17, 1, "from 1 to 65535"),
    "user that is a command": ('"me"', '"$(id)"', 18, 1, "name of a user"),
    "key that is not there": ("keys/id", "keys/other", 19, 1, "there is no file"),
    "public key": ("keys/id", "keys/id.pub", 19, 1, "this is the public key"),
    "empty key": ('"keys/id"', '""', 19, 1, "the path of a private key"),
    "jump with spaces": ('"none"', '"a b"', 20, 1, "[USER@]HOST[:PORT]"),
    "jump with an empty hop": ("2200,inner", "2200,,inner", 5, 1, "[USER@]HOST[:PORT]"),
    "relative folder": ("/data/dlbricks", "data", 21, 1, "an absolute path on the host"),
    "folder with a control code": ("/data/dlbricks", "/data\\u001b", 21, 1, "an absolute path on the host"),
    "python with arguments": ("python3.12", "python3 -O", 22, 1, "the name of a command"),
    "price as text": ("0.1785", '"0.1785"', 12, 1, "dollars per hour as a number"),
    "infinite price": ("0.1785", "inf", 12, 1, "a finite number"),
    "text without quotes": ('"10.0.0.4"', "gateway", 11, 11, "this is not TOML"),
    "no closing quote": ('"10.0.0.4"', '"10.0.0.4', 11, 20, "close the text with a quote"),
    "no closing bracket": ("[defaults]", "[defaults", 2, 10, "add the closing ]"),
    "a key twice": ('user = "me"', "port = 23", 18, 10, "this key is there already"),
    "no value": ("port = 22\n", "port =\n", 17, 7, "this is not TOML"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    for name in ("id", "id.pub"):
        (tmp_path / "keys" / name).touch()
    return tmp_path


def test_hosts_are_read_in_their_order_with_the_defaults_of_the_file(folder: Path) -> None:
    path = folder / "fleet.toml"
    path.write_text(FULL)
    first, second = read_hosts(path)
    usual = {
        "port": 2222,
        "user": "ubuntu",
        "jump": "me@gateway.example.org:2200,inner,[::1]:22",
        "folder": "~/measuring",
    }
    assert asdict(first) == asdict(HostEntry(name="c7i")) | usual | {"address": "10.0.0.4", "price_per_hour": 0.1785}
    reached = {"address": "fe80::1%eth0", "port": 22, "user": "me", "key": str(folder / "keys" / "id"), "jump": "none"}
    own = {"name": "old-xeon.2", "folder": "/data/dlbricks", "python": "python3.12", "price_per_hour": 1.0}
    assert asdict(second) == own | reached
    assert isinstance(second.price_per_hour, float)
    # A host needs only a name; files of Windows are read.
    path.write_bytes(b"\xef\xbb\xbf[[host]]\r\nname = 'h'\r\n")
    assert read_hosts(path) == (HostEntry(name="h"),)


@pytest.mark.parametrize("case", MUTATED)
def test_a_fault_is_told_in_one_line_with_its_line_and_column(folder: Path, case: str) -> None:
    old, new, line, column, words = MUTATED[case]
    assert FULL.count(old) == 1
    told = _refused(FULL.replace(old, new), folder)
    assert told.startswith(f"fleet.toml, line {line}, column {column}: ")
    assert words in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file lacks [[host]]: add one"),
        ("[host]\nname = 'h'", "write [[host]] with two brackets"),
        ("host = []", "host has no items: give at least one"),
        ("host = [1]", "host has the item 1: it has to be a table"),
        ("defaults = 1\n[[host]]\nname = 'h'", "defaults = 1: it has to be a table"),
        ("[[defaults]]\n[[host]]\nname = 'h'", "write [defaults] with one bracket"),
        ("[[host]]\nname = 'h'\n[host.user]\nname = 'x'", "the name of a user"),
        (f"x = {'[' * 40}{']' * 40}", "nest more than"),
    ],
)
def test_a_file_of_another_shape_is_refused(folder: Path, text: str, words: str) -> None:
    assert words in _refused(text, folder)


@given(st.data())
def test_any_change_of_a_file_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(WITHOUT_KEY)))
    end = data.draw(st.integers(begin, min(len(WITHOUT_KEY), begin + 12)))
    text = WITHOUT_KEY[:begin] + data.draw(st.text(max_size=8)) + WITHOUT_KEY[end:]
    try:
        hosts_of(text, "fleet.toml", Path("/nowhere"))
    except FleetError as error:
        assert str(error).isprintable()


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    with pytest.raises(FleetError, match="does not exist"):
        read_hosts(path)
    path.write_bytes(b"[[host]]\nname = '\xff'")
    with pytest.raises(FleetError, match="line 2, column 9: this is not UTF-8"):
        read_hosts(path)


def _refused(text: str, folder: Path) -> str:
    with pytest.raises(FleetError) as caught:
        hosts_of(text, "fleet.toml", folder)
    told = str(caught.value)
    assert told.isprintable()
    return told
