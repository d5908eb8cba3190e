"""The variant in which a runtime runs a model: its threads, batch size, precision and kernels."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from itertools import product
from typing import Any, TypeVar

# Shapes of all frameworks can hold this batch size.
MOST_IN_A_BATCH = 2**31 - 1

# As the identity of a runtime spells them.
_THREADS = re.compile(r"\bthreads-(\d{1,9})\b")
_PRECISION = re.compile(r"\bprecision-(\w+)")
# oneDNN 2 and 3 read this variable: no kernel uses wider instructions.
INSTRUCTIONS_VARIABLE = "DNNL_MAX_CPU_ISA"
# The worker of ONNX Runtime reads this one.
OPTIMISATION_VARIABLE = "ORT_OPTIMISATION"
# Engines of language models find the precision of their cache here.
CACHE_VARIABLE = "DLBRICKS_CACHE"
# llama.cpp is asked for flash attention, or for none, by this one.
FLASH_ATTENTION_VARIABLE = "DLBRICKS_FLASH_ATTENTION"
_VARIABLES = (INSTRUCTIONS_VARIABLE, OPTIMISATION_VARIABLE, CACHE_VARIABLE, FLASH_ATTENTION_VARIABLE)
_VARIANT_WORDS = ("threads-", "precision-", *(f"{it}=" for it in _VARIABLES))


class Precision(str, Enum):
    """The type of the numbers that a runtime computes with."""

    F32 = "f32"
    BF16 = "bf16"
    # A quantised copy of the model.
    INT8 = "int8"
    # The types of a file that is quantised itself, and runs as it is.
    FILE = "file"

    @property
    def is_unchecked(self) -> bool:
        """True if the runtime computes with other numbers than the author of the model chose."""
        return self in (Precision.BF16, Precision.INT8)

    @property
    def in_words(self) -> str:
        """The precision as messages show it."""
        if self is Precision.FILE:
            return "quantised in its file"
        return f"{self.value}, accuracy not checked" if self.is_unchecked else self.value

    @property
    def remark(self) -> str:
        """The sentence beside tables of figures in this precision; empty if the model is as its author made it."""
        if not self.is_unchecked:
            return ""
        how = ": the model is a copy, quantised with synthetic data" if self is Precision.INT8 else ""
        return f"{self.value}: accuracy was not checked{how}"


# The precisions that a user can ask for.
CHOSEN_PRECISIONS = (Precision.F32, Precision.BF16, Precision.INT8)


def remarks_on(precisions: Iterable[Precision]) -> list[str]:
    """Return the remark on each precision that needs one, once."""
    return [each.remark for each in dict.fromkeys(precisions) if each.remark]


class InstructionSet(str, Enum):
    """The vector instructions that oneDNN's kernels use at most, by oneDNN's own names."""

    SSE41 = "sse41"
    AVX = "avx"
    AVX2 = "avx2"
    AVX2_VNNI = "avx2_vnni"
    AVX512_CORE = "avx512_core"
    AVX512_CORE_VNNI = "avx512_core_vnni"
    AVX512_CORE_BF16 = "avx512_core_bf16"
    AVX512_CORE_FP16 = "avx512_core_fp16"
    # Without a limit: all that the processor has.
    ALL = "all"


class Optimisation(str, Enum):
    """The level up to which ONNX Runtime optimises a graph; each level includes the ones after it."""

    ALL = "all"
    # Without the NCHWc layout.
    EXTENDED = "extended"
    # Without fused layers that only ONNX Runtime has.
    BASIC = "basic"
    NONE = "none"


class CachePrecision(str, Enum):
    """How an engine of language models keeps the keys and values of earlier tokens; int8 has scales beside them."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    INT8 = "int8"

    @property
    def bits(self) -> int:
        return {"f32": 32, "f16": 16, "bf16": 16, "int8": 8}[self.value]


class FlashAttention(str, Enum):
    """Attention in one pass, without an array of all scores, in an engine of language models."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Kernels:
    """The limits on the kernels that a runtime chooses from; by default there are none."""

    instructions: InstructionSet = InstructionSet.ALL
    optimisation: Optimisation = Optimisation.ALL

    @property
    def instructions_in_words(self) -> str:
        """The instruction set as messages show it: `avx2 kernels`; empty without a limit."""
        return "" if self.instructions is InstructionSet.ALL else f"{self.instructions.value} kernels"

    @property
    def optimisation_in_words(self) -> str:
        """The optimisation level as messages show it: `optimisation extended`; empty without a limit."""
        return "" if self.optimisation is Optimisation.ALL else f"optimisation {self.optimisation.value}"

    @property
    def words(self) -> tuple[str, ...]:
        """The limits as messages show them; none without limits."""
        return tuple(filter(None, (self.instructions_in_words, self.optimisation_in_words)))


USUAL_KERNELS = Kernels()


@dataclass(frozen=True, kw_only=True)
class AskedVariant:
    """The parts of a variant that somebody asks for; None leaves a part open, such as the file's batch size."""

    # Of the runtime. None: its default number.
    threads: int | None = None
    batch: int | None = None
    precision: Precision | None = None
    instructions: InstructionSet | None = None
    optimisation: Optimisation | None = None


ANY_VARIANT = AskedVariant()


@dataclass(frozen=True, kw_only=True)
class Variant(AskedVariant):
    """How a runtime runs a model. `threads` is None where it is not known."""

    batch: int = 1
    precision: Precision = Precision.F32
    instructions: InstructionSet = InstructionSet.ALL
    optimisation: Optimisation = Optimisation.ALL

    @property
    def kernels(self) -> Kernels:
        """The limits on the kernels."""
        return Kernels(self.instructions, self.optimisation)

    @property
    def parts(self) -> dict[str, Any]:
        """The values by name; those of a result are its variant."""
        return {it.name: getattr(self, it.name) for it in fields(Variant)}


USUAL_VARIANT = Variant()
Asked = TypeVar("Asked", bound=AskedVariant)


@dataclass(frozen=True, kw_only=True)
class AskedVariants:
    """Several variants: of each part one value, several, or none, which leaves it open. All combinations are meant."""

    # Of the runtime. None: its default number.
    threads: int | Sequence[int] | None = None
    # Images, sentences or rows in an inference. None: that of each model's file.
    batch: int | Sequence[int] | None = None
    precision: Precision | Sequence[Precision] | None = None
    instructions: InstructionSet | Sequence[InstructionSet] | None = None
    optimisation: Optimisation | Sequence[Optimisation] | None = None

    def each(self, own: Asked) -> list[Asked]:
        """Return a variant with each combination of these values in place of its own.

        Threads and batch sizes change fastest.
        """
        names = [it.name for it in fields(AskedVariant)]
        names = [*names[2:], *names[:2]]
        values = (several(getattr(self, name)) or (getattr(own, name),) for name in names)
        return [replace(own, **dict(zip(names, each, strict=True))) for each in product(*values)]


Value = TypeVar("Value", Precision, InstructionSet, Optimisation, str, int)


def several(values: Value | Sequence[Value] | None) -> tuple[Value, ...]:
    """Return the values of an option that takes one, several or none."""
    if values is None:
        return ()
    return (values,) if isinstance(values, str | int) else tuple(values)


def variant_in_words(variant: Variant) -> str:
    """Return a variant as messages show it: `batch 8, 2 threads, f32`, and its kernels if they are limited."""
    usual = batch_in_words(variant.batch), threads_in_words(variant.threads), variant.precision.in_words
    return ", ".join([*usual, *variant.kernels.words])


def batch_in_words(size: int) -> str:
    """Return a batch size as messages show it."""
    return f"batch {size}"


def kernels_in_words(kernels: Kernels) -> tuple[str, ...]:
    """Return limits on kernels as messages tell them apart."""
    return kernels.words or ("all kernels",)


def cache_in_words(cache: CachePrecision) -> str:
    """Return the precision of an engine's cache as messages show it."""
    return f"{cache.value} cache"


def flash_attention_in_words(flash: FlashAttention) -> str:
    """Return if an engine uses flash attention as messages show it."""
    return f"flash attention {flash.value}"


def threads_in_words(threads: int | None) -> str:
    """Return a number of threads as messages show it; None is the number that the framework starts by default."""
    if threads is None:
        return "default threads"
    return f"{threads} thread{'' if threads == 1 else 's'}"


def stated_python(identity: str) -> str:
    """Return the version of Python in the identity of a runtime; empty for one without."""
    return next((it.removeprefix("python-") for it in identity.split() if it.startswith("python-")), "")


def stated_threads(identity: str) -> int | None:
    """Return the number of threads in the identity of a runtime; None if the framework decides it."""
    found = _THREADS.search(identity)
    return None if found is None else int(found[1])


def stated_precision(identity: str) -> Precision:
    """Return the precision in the identity of a runtime, which leaves out the usual one."""
    found = _PRECISION.search(identity)
    known = {each.value: each for each in Precision}
    return Precision.F32 if found is None else known.get(found[1], Precision.F32)


def stated_kernels(identity: str) -> Kernels:
    """Return the limits on kernels in the identity of a runtime; a limit that is not known here counts as none."""
    settings = dict(word.split("=", 1) for word in identity.split(" ") if "=" in word)
    instructions = settings.get(INSTRUCTIONS_VARIABLE, "").lower()
    optimisation = settings.get(OPTIMISATION_VARIABLE, "").lower()
    return Kernels(
        next((it for it in InstructionSet if it.value == instructions), InstructionSet.ALL),
        next((it for it in Optimisation if it.value == optimisation), Optimisation.ALL),
    )


def stated_cache(identity: str) -> CachePrecision | None:
    """Return the precision of the cache in the identity of a runtime, which leaves out the usual one of the engine."""
    settings = dict(word.split("=", 1) for word in identity.split(" ") if "=" in word)
    return next((it for it in CachePrecision if it.value == settings.get(CACHE_VARIABLE)), None)


def stated_flash_attention(identity: str) -> FlashAttention | None:
    """Return if an engine is asked for flash attention in the identity of a runtime; None: it decides by itself."""
    return next((it for it in FlashAttention if f"{FLASH_ATTENTION_VARIABLE}={it.value}" in identity.split(" ")), None)


def stated_variant(identity: str, batch: int = 1) -> Variant:
    """Return the variant in the identity of a runtime, at a batch size."""
    threads, precision = stated_threads(identity), stated_precision(identity)
    return Variant(threads=threads, batch=batch, precision=precision, **asdict(stated_kernels(identity)))


def states(
    identity: str, threads: int | None, precision: Precision | None = None, kernels: Kernels | None = None
) -> bool:
    """Return whether a runtime of this identity has these threads, precision and kernels; None stands for any."""
    return (
        threads in (None, stated_threads(identity))
        and precision in (None, stated_precision(identity))
        and kernels in (None, stated_kernels(identity))
    )


def without_variant(identity: str) -> str:
    """Return the identity of a runtime without its variant: equal for all variants of one runtime."""
    return " ".join(word for word in identity.split(" ") if not word.startswith(_VARIANT_WORDS))
