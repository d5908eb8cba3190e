"""SIGINT at any moment of a command: status 130, one line, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The program with a finder of modules that sends SIGINT when a module is about to be imported.
INTERRUPTED = """
import os, signal, sys
wanted = sys.argv.pop(1)
sys.argv[0] = "dlbricks"

class Interrupting:
    def find_spec(self, name, *_):
        if name == wanted:
            sys.meta_path.remove(self)
            {act}

sys.meta_path.insert(0, Interrupting())
from dlbricks_tui.__main__ import main
sys.exit(main())
"""
SEND = "os.kill(os.getpid(), signal.SIGINT)"
# Extension modules raise an ImportError of their own when one of their imports is interrupted.
REPLACE = f"""
            try:
                {SEND}
            except KeyboardInterrupt:
                raise ImportError("numpy cannot be imported") from None
"""
# Python prints the exceptions of finalizers, and goes on.
IGNORE = f"""
            class Finalized:
                def __del__(self):
                    {SEND}
            Finalized()
"""


def interrupted(act: str, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line that is interrupted while it imports a module."""
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(act=act), module, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("act", "module", "command"),
    [
        (SEND, "dlbricks_tui.cli", "models"),
        (SEND, "argparse", "models"),
        (REPLACE, "dlbricks_tui.cli.models", "models"),
        (IGNORE, "dlbricks_tui.models.library", "models"),
        (SEND, "dlbricks_tui.cli.estimate", "estimate squeezenet1.1"),
        (REPLACE, "numpy", "estimate squeezenet1.1"),
        (IGNORE, "dlbricks_tui.cli.run_progress", "run squeezenet1.1 --runtime onnxruntime"),
        *(
            pytest.param(act, module, "estimate squeezenet1.1", marks=pytest.mark.soak)
            for act in (REPLACE, IGNORE)
            for module in ("dlbricks_tui.cli", "argparse", "dlbricks_tui.cli.estimate")
        ),
    ],
)
def test_an_interrupted_import_is_one_line_and_status_130(act: str, module: str, command: str, tmp_path: Path) -> None:
    ended = interrupted(act, module, *command.split(), "--data-dir", str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "dlbricks: interrupted\n")


def test_an_interrupt_after_the_command_is_no_traceback_either(tmp_path: Path) -> None:
    program = "import sys, dlbricks_tui.__main__ as door, os, signal, atexit\n"
    program += f"atexit.register(lambda: {SEND})\nsys.argv = ['dlbricks', '--version']\nsys.exit(door.main())"
    script = tmp_path / "dlbricks"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (130, "dlbricks: interrupted\n")
