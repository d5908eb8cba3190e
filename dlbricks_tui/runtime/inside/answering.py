"""The loop of the worker: read a request, answer it, go on."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import Backend, RefusalError, imported
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
from dlbricks_tui.runtime.lines import ProtocolError, decode, encode

if TYPE_CHECKING:
    # The function for each type of request.
    Performers = dict[type[protocol.Request[Any]], Callable[[Any], protocol.Reply]]


def answer_all(requests: BinaryIO, replies: BinaryIO, framework: str) -> None:
    """Write one reply per request, in order."""
    performers: Performers = {}
    for line in requests:
        replies.write(encode(_answer(line, performers, framework)))
        replies.flush()


def _answer(line: bytes, performers: Performers, framework: str) -> protocol.Reply:
    try:
        request = decode(protocol.Request, line)
        if isinstance(request, protocol.Quantise):
            # Without the backend, whose thread pool the sessions of the quantiser could not share.
            imported("numpy", "numpy")
            from dlbricks_tui.runtime.inside.ort_session import write_quantised

            return write_quantised(request)
        if type(request) not in performers:
            is_of_engine = isinstance(request, (protocol.OpenEngine, protocol.Generate, protocol.Serve))
            performers.update(_engine_performers(framework) if is_of_engine else _performers(framework))
        return performers[type(request)](request)
    except RefusalError as refusal:
        return refusal.refused
    except ProtocolError as error:
        return protocol.Refused(protocol.Reason.MALFORMED, str(error))


# Backends import numpy, which may be missing, too: the framework or numpy is checked before each of them.
def _mxnet() -> Backend:
    mxnet = load_mxnet()
    from dlbricks_tui.runtime.inside.mxnet_backend import MXNet

    return MXNet(mxnet)


def _onnxruntime() -> Backend:
    imported("numpy", "numpy")
    from dlbricks_tui.runtime.inside.ort_backend import OnnxRuntime
    from dlbricks_tui.runtime.inside.ort_session import load_onnxruntime

    return OnnxRuntime(load_onnxruntime())


def _openvino() -> Backend:
    imported("numpy", "numpy")
    from dlbricks_tui.runtime.inside.openvino_backend import OpenVino
    from dlbricks_tui.runtime.inside.openvino_models import load_openvino

    return OpenVino(load_openvino())


BACKENDS: dict[str, Callable[[], Backend]] = {"mxnet": _mxnet, "onnxruntime": _onnxruntime, "openvino": _openvino}


def _engine_performers(framework: str) -> Performers:
    # Without a backend, which would bring threads of its own.
    imported("numpy", "numpy")
    if framework == "openvino":
        from dlbricks_tui.runtime.inside.language_engines import openvino_engine
        from dlbricks_tui.runtime.inside.openvino_models import load_openvino

        decoding = openvino_engine(load_openvino())
        return {protocol.OpenEngine: decoding.open, protocol.Generate: decoding.generate}
    from dlbricks_tui.runtime.inside.language_engines import GenaiEngine, load_genai

    engine = GenaiEngine(load_genai())
    return {protocol.OpenEngine: engine.open, protocol.Generate: engine.generate, protocol.Serve: engine.serve}


def _performers(framework: str) -> Performers:
    backend = BACKENDS[framework]()
    from dlbricks_tui.runtime.inside.measuring import LoadedPrograms

    def described(request: protocol.Describe) -> protocol.Described:
        packages = {**packages_of(framework), **backend.chosen()}
        return protocol.Described(platform.python_version(), framework, backend.version, packages)

    programs = LoadedPrograms(backend)
    return {
        protocol.Describe: described,
        protocol.Infer: backend.infer,
        protocol.Fuse: backend.fuse,
        protocol.Record: backend.record,
        protocol.Explain: backend.explain,
        protocol.Load: programs.load,
        protocol.Sample: programs.sample,
        protocol.Profile: programs.profile,
        protocol.TraceRuns: programs.trace,
        protocol.Unload: programs.unload,
    }


_COMMIT = re.compile(r"git-commit-id=(\w+)")


def packages_of(framework: str) -> dict[str, str]:
    """Return the versions by name: Python, numpy, and a framework, which are imported, with the build of the latter."""
    found = {"python": platform.python_version()}
    for name in (framework, "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str) and version:
            found[name] = version
    if framework == "onnxruntime":
        # The version of OpenVINO contains the commit. MXNet and older versions do not tell it.
        commit = _COMMIT.search(getattr(sys.modules.get(framework), "get_build_info", str)())
        if commit:
            found["onnxruntime_build"] = commit[1]
    return found
