"""The settings of questions about language models."""

from dataclasses import replace

from dlbricks_tui.language.architecture import LanguagePhase, WeightPrecision
from dlbricks_tui.runtime.variant import CachePrecision, FlashAttention
from dlbricks_tui.settings.setting import Setting, number, one_of, whole

# No model has a longer context.
_MOST_TOKENS = 1 << 20

PROMPT = Setting(
    name="prompt",
    kind=whole(1, _MOST_TOKENS, 16, 128, 512, 1024, 4096, 16384),
    about="tokens of the prompt",
    meaning="tokens to read",
    default=512,
    usual="512",
)
GENERATE = Setting(
    name="generate",
    kind=whole(1, _MOST_TOKENS, 32, 128, 512, 1024),
    about="tokens to generate after the prompt",
    meaning="tokens to make",
    default=128,
    usual="128",
)
WEIGHTS = Setting(
    name="precision",
    kind=one_of(*WeightPrecision),
    about="how the weights are stored: int4, int8 or f32; in OpenVINO also bf16; in llama.cpp q4_k_m (also as int4), "
    "q4_0, q8_0 or f16",
    meaning="of the weights",
    usual="int4",
    kept_in="precisions",
)
BEST_FOR = Setting(
    name="for",
    kind=one_of(*LanguagePhase),
    about="what the best of several executions is best for: the whole answer, its prompt, or generating tokens",
    meaning="decides which is the best",
    default=LanguagePhase.TOTAL,
    usual="total",
    kept_in="best_for",
)
CACHE = Setting(
    name="cache",
    kind=one_of(*CachePrecision),
    about="how the engine keeps keys and values: f32, f16, bf16 or int8",
    meaning="of keys and values",
    usual="that of the engine: f32 in ONNX Runtime, int8 in OpenVINO, f16 in llama.cpp",
    kept_in="caches",
)
FLASH_ATTENTION = Setting(
    name="flash attention",
    kind=one_of(*FlashAttention),
    about="flash attention of llama.cpp: on or off",
    meaning="of llama.cpp",
    usual="llama.cpp decides",
)
# Beside the precision of other models.
WEIGHTS_BESIDE = replace(WEIGHTS, spelled="weights")
AT_LEAST = Setting(
    name="at least",
    kind=number(1e6),
    about="with --list: only models that fit, and that make at least N tokens per second",
)
