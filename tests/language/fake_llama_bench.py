"""Stands for llama-bench: answers times that are linear in the blocks of a file, or fails in a way of its own.

It imports little, as tests start it hundreds of times.
"""

import os
import struct
import sys
import time

VERSION = "version: 4242 (0a1b2c3d)"
# Milliseconds of a token outside of blocks, in a block, in one with more bits, in a windowed one, and for each token
# before it; of a prompt, this share of them for each token.
OUTSIDE, BLOCK, RICH, WINDOWED, DEPTH, OF_PROMPT = 3.0, 1.0, 0.25, -0.125, 0.001, 0.5


def token_ms(blocks: int, rich: int, windowed: int, depth: float) -> float:
    return OUTSIDE + blocks * BLOCK + rich * RICH + windowed * WINDOWED + depth * DEPTH


def main() -> None:
    manner = os.environ.get("FAKE_MANNER", "")
    if manner == "hang":
        time.sleep(60)
    if manner == "crash":
        sys.exit("GGML_ASSERT(n_tokens > 0) failed")
    if manner == "killed":
        os.kill(os.getpid(), 9)
    words = sys.argv[1:]
    if words == ["--version"]:
        answer(VERSION)
        return
    if manner == "rubbish":
        answer("[{}, 17]")
        return
    with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123 - as above
        log.write(" ".join(words) + "\n")
    if manner.startswith("killed in"):
        with open(os.environ["FAKE_LOG"], encoding="utf-8") as log:  # noqa: PTH123 - as above
            if str(len(log.readlines())) in manner.split():
                os.kill(os.getpid(), 9)
    given = dict(zip(words[::2], words[1::2], strict=True))
    prompt, generate, depth, repeats = (int(given[it]) for it in ("-p", "-n", "-d", "-r"))
    path = given["-m"]
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        content = file.read(1 << 16)
    # Behind its name a value has the number of its type; an array, also that of its items, and their number.
    _, blocks = struct.unpack_from("<II", content, content.index(b".block_count") + len(b".block_count"))
    windowed, pattern = 0, b".sliding_window_pattern"
    if pattern in content:
        begin = content.index(pattern) + len(pattern)
        length = struct.unpack_from("<IIQ", content, begin)[2]
        windowed = sum(content[begin + 16 : begin + 16 + length])
        assert length == blocks
    # The name of a file tells how many blocks have more bits.
    rich = int(path.rpartition("-")[2].partition(".")[0])
    if manner == f"without {blocks}":
        sys.exit("the whole model is too much")
    ms = token_ms(blocks, rich, windowed, depth + generate // 2)
    ms = ms * generate if generate else OF_PROMPT * token_ms(blocks, rich, windowed, 0) * prompt
    samples = ", ".join([str(int(1e6 * ms))] * repeats)
    answer(f'[{{"n_prompt": {prompt}, "n_gen": {generate}, "n_depth": {depth}, "samples_ns": [{samples}]}}]')


def answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
