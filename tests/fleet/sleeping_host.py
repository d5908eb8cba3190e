"""A worker process of a fleet whose host sleeps instead of measuring; the rest of it is real."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from dlbricks_tui.errors import UserError

AT_HOST = "dlbricks_tui.fleet.at_host"


class RefusedError(UserError):
    """An error of the host."""


def report(data_path: str, task: str = "") -> str:
    return json.dumps({"data": data_path, "threads": os.environ.get("OMP_NUM_THREADS", "")})


def carry_out(
    data_path: str, task_json: str, parcels: list[tuple[str, str, bytes]], send: Callable[[str], None]
) -> str:
    """Do what the words of the task's id say, or until it is cancelled; each start leaves a line in a file."""
    Path(data_path).mkdir(exist_ok=True)
    for sha256, suffix, content in parcels:
        if suffix != ".onnx":
            raise RefusedError("a parcel is no model file\nof any kind")
        (Path(data_path) / sha256).write_bytes(content)
    task = json.loads(task_json)["id"]
    name, *words = task.split(" ")
    todo = dict(word.split("=", 1) for word in words)
    with (Path(data_path) / "started").open("a") as file:
        file.write(f"{name}\n")
    if "prints" in todo:
        from distributed import print as print_everywhere

        print_everywhere(todo["prints"])
    if "fault" in todo:
        raise ZeroDivisionError(f"{todo['fault']}\nthe host")
    for number in range(int(todo.get("messages", 0))):
        send(json.dumps({"task": name, "number": number}))
    end = time.monotonic() + float(todo.get("seconds", 0))
    while time.monotonic() < end and not (Path(data_path) / f"cancel {task}").exists():
        time.sleep(0.02)
    return json.dumps({"ended": name})


def control(data_path: str, task_id: str, what: str) -> None:
    (Path(data_path) / f"{what} {task_id}").touch()


if __name__ == "__main__":
    # It takes the place of the host's side in this process.
    module = ModuleType(AT_HOST)
    for function in (report, carry_out, control):
        setattr(module, function.__name__, function)
    sys.modules[AT_HOST] = module
    from dlbricks_tui.fleet import worker

    # Nobody has to wait long for it.
    worker._FIRST_WAIT_SECONDS = 0.1
    worker._SECONDS_TO_CLOSE = 0.5
    address, name, certificates = sys.argv[1:]
    try:
        worker.run_worker(address, name, Path(certificates), lambda _: None)
    except UserError as error:
        sys.exit(str(error))
    os._exit(0)
