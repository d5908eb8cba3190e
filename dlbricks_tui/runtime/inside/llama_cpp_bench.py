"""Answers like llama-bench with the bindings of llama.cpp for Python, in the interpreter that has them."""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import random
import sys
import time
from typing import Any

# The numbers of ggml's types.
_TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}
_BATCH = 2048


class LlamaBindings:
    """A model in a file, and the context that runs it."""

    def __init__(self, library: Any, asked: argparse.Namespace) -> None:
        self._library = library
        library.llama_backend_init()
        self._model = library.llama_model_load_from_file(asked.model.encode(), library.llama_model_default_params())
        if not self._model:
            sys.exit(f"failed to load model {asked.model}")
        params = library.llama_context_default_params()
        params.n_ctx = asked.depth + asked.prompt + asked.generate
        params.n_batch = _BATCH
        params.swa_full = False
        params.type_k, params.type_v = _TYPES[asked.keys], _TYPES[asked.values]
        if asked.threads is not None:
            params.n_threads = params.n_threads_batch = asked.threads
        if asked.flash is not None:
            if hasattr(params, "flash_attn_type"):
                params.flash_attn_type = asked.flash
            else:
                params.flash_attn = bool(asked.flash)
        self._context = library.llama_init_from_model(self._model, params)
        if not self._context:
            sys.exit("failed to create a context: it may not have this type of cache without flash attention")
        self._words = library.llama_vocab_n_tokens(library.llama_model_get_vocab(self._model))

    def sample(self, asked: argparse.Namespace) -> int:
        """Return the nanoseconds of one prompt, or of one answer behind so many tokens."""
        library = self._library
        library.llama_memory_clear(library.llama_get_memory(self._context), False)
        self._read(asked.depth)
        began = time.perf_counter_ns()
        self._read(asked.prompt)
        for _ in range(asked.generate):
            self._read(1)
        return time.perf_counter_ns() - began

    def _read(self, count: int) -> None:
        while count > 0:
            tokens = [random.randrange(self._words) for _ in range(min(count, _BATCH))]
            array = (ctypes.c_int32 * len(tokens))(*tokens)
            if self._library.llama_decode(self._context, self._library.llama_batch_get_one(array, len(tokens))):
                sys.exit("failed to decode")
            self._library.llama_synchronize(self._context)
            count -= len(tokens)


def main() -> None:
    """Time a test as often as it is asked."""
    try:
        llama_cpp: Any = importlib.import_module("llama_cpp")
    except (ImportError, OSError, RuntimeError) as error:
        sys.exit(f"llama-cpp-python cannot be imported: {error}")
    parser = argparse.ArgumentParser(prog="llama-bench")
    parser.add_argument("--version", action="version", version=f"version: python-{llama_cpp.__version__}")
    parser.add_argument("-m", dest="model", required=True)
    parser.add_argument("-o", choices=["json"])
    numbers = {"-p": "prompt", "-n": "generate", "-d": "depth", "-r": "repeats", "-t": "threads", "-fa": "flash"}
    for option, name in numbers.items():
        parser.add_argument(option, dest=name, type=int)
    for option, name in {"-ctk": "keys", "-ctv": "values"}.items():
        parser.add_argument(option, dest=name, choices=list(_TYPES), default="f16")
    asked = parser.parse_args()
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    bindings = LlamaBindings(llama_cpp, asked)
    # What runs first is slower.
    bindings.sample(asked)
    samples = [bindings.sample(asked) for _ in range(asked.repeats)]
    told = {"n_prompt": asked.prompt, "n_gen": asked.generate, "n_depth": asked.depth, "samples_ns": samples}
    sys.stdout.write(json.dumps([told]))


if __name__ == "__main__":
    main()
