"""SIMD vectors as LLVM instructions, for micro-kernels that are faster than plain loops.

One source serves float32 and float64 and every vector width (AVX2, AVX-512, NEON). This module is imported
only while kernels compile, so it may import numba.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from llvmlite import ir
from numba import types

from unpooled.kernels.numba_internals import array_of, host, tools

INT32, INT64 = ir.IntType(32), ir.IntType(64)


REGISTERS = {0: 0, 16: 32, 32: 16, 64: 32}  # registers by vector size in bytes: none, NEON, AVX2, AVX-512


@functools.cache
def width() -> int:
    """The vector size in bytes that numba compiles for; 0 to use the plain loops.

    It follows from the CPU features that key numba's cache on disk, so another host never loads this host's
    code. The environment variable UNPOOLED_SIMD overrides it: "off", or a number of bytes (LLVM splits
    vectors that are too wide for the host). Each setting has its own cache.
    """
    asked = os.environ.get("UNPOOLED_SIMD")
    if asked:
        chosen = {"off": 0, **{str(bytes): bytes for bytes in REGISTERS if bytes}}
        if asked not in chosen:
            raise ValueError(f"UNPOOLED_SIMD must be one of {', '.join(chosen)}, got {asked!r}")
        return chosen[asked]
    triple, features = host()
    if triple.startswith(("aarch64", "arm64")):
        return 16
    if "+avx512f" in features:
        return 64
    return 32 if {"+avx2", "+fma"} <= features else 0


def block() -> tuple[int, int]:
    """The (long, short) sides of a register block: long·short sums and their operands fill the registers."""
    return (5, 5) if REGISTERS[width()] == 32 else (5, 2)


def fits(*kinds: Any) -> bool:
    """Whether SIMD versions support these argument types: contiguous arrays of one float type."""
    arrays = [kind for kind in kinds if isinstance(kind, types.Array)]
    floats = {array.dtype for array in arrays if isinstance(array.dtype, types.Float)}
    return (
        width() > 0
        and floats in ({types.float32}, {types.float64})
        and all(array.layout == "C" for array in arrays)
    )


class Vectors:
    """Emit instructions on vectors of one type at the position of ``builder``."""

    def __init__(self, context: Any, builder: Any, dtype: Any):
        self.context, self.builder = context, builder
        self.bytes = dtype.bitwidth // 8
        self.lanes = width() // self.bytes
        self.scalar = ir.FloatType() if self.bytes == 4 else ir.DoubleType()
        self.type = ir.VectorType(self.scalar, self.lanes)
        self.integers = ir.VectorType(ir.IntType(dtype.bitwidth), self.lanes)
        self.flags = ir.VectorType(ir.IntType(1), self.lanes)
        self.suffix = f"v{self.lanes}f{dtype.bitwidth}"

    def array(self, kind: Any, value: Any) -> tuple[Any, list[Any]]:
        """The pointer to an array's first entry, and its shape."""
        return array_of(self.context, self.builder, kind, value)

    def constant(self, number: float) -> Any:
        """A vector with this number in all lanes."""
        return ir.Constant(self.type, [number] * self.lanes)

    def integer(self, number: int) -> Any:
        """A vector with this integer in all lanes, of the same width as the floats."""
        return ir.Constant(self.integers, [number] * self.lanes)

    def spread(self, x: Any, vector: Any = None) -> Any:
        """A vector with x in all lanes."""
        undefined = ir.Constant(vector or self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, x, ir.Constant(INT32, 0))
        return self.builder.shuffle_vector(
            first, undefined, ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        )

    def first(self, count: Any) -> Any:
        """A mask of the first ``count`` lanes."""
        numbers = ir.VectorType(INT64, self.lanes)
        return self.builder.icmp_signed(
            "<", ir.Constant(numbers, list(range(self.lanes))), self.spread(count, numbers)
        )

    def load(self, pointer: Any, offset: Any, mask: Any = None) -> Any:
        """The vector at pointer + offset; zero in masked-out lanes."""
        address = self._address(pointer, offset)
        if mask is None:
            loaded = self.builder.load(address)
            loaded.align = self.bytes
            return loaded
        kinds = (address.type, INT32, self.flags, self.type)
        arguments = [address, ir.Constant(INT32, self.bytes), mask, self.constant(0.0)]
        return self._call(f"llvm.masked.load.{self.suffix}.p0", self.type, kinds, arguments)

    def store(self, x: Any, pointer: Any, offset: Any, mask: Any = None) -> None:
        """Write x to pointer + offset, in the lanes of the mask."""
        address = self._address(pointer, offset)
        if mask is None:
            self.builder.store(x, address).align = self.bytes
            return
        kinds = (self.type, address.type, INT32, self.flags)
        arguments = [x, address, ir.Constant(INT32, self.bytes), mask]
        self._call(f"llvm.masked.store.{self.suffix}.p0", ir.VoidType(), kinds, arguments)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x·y + z, rounded once."""
        return self._call(f"llvm.fma.{self.suffix}", self.type, (self.type,) * 3, [x, y, z])

    def total(self, x: Any) -> Any:
        """The sum of the lanes."""
        zero = ir.Constant(self.scalar, -0.0)
        name, kinds = f"llvm.vector.reduce.fadd.{self.suffix}", (self.scalar, self.type)
        return self._call(name, self.scalar, kinds, [zero, x], fastmath=("reassoc",))

    def _address(self, pointer: Any, offset: Any) -> Any:
        place = self.builder.gep(pointer, [offset], inbounds=True)
        return self.builder.bitcast(place, self.type.as_pointer())

    def _call(self, name: str, result: Any, kinds: tuple[Any, ...], arguments: Any, **options: Any) -> Any:
        kind = ir.FunctionType(result, kinds)
        function = tools.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments, **options)


def index(number: int) -> Any:
    """A constant index."""
    return ir.Constant(INT64, number)
