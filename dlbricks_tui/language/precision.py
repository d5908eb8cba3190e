"""How the weights of language models are stored."""

from enum import Enum


class WeightPrecision(str, Enum):
    """How the weights of products are stored: 4 or 8 bits in blocks of 32, or 32-bit floating point."""

    INT4 = "int4"
    INT8 = "int8"
    F32 = "f32"

    @property
    def bits(self) -> int:
        return {"int4": 4, "int8": 8, "f32": 32}[self.value]
