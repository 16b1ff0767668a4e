"""The products of a minibatch gradient, Z = XWᵀ and G = ZᵀX, and exponentials, with SIMD instructions.

``dots`` and ``outer`` are the micro-kernels: a block of sums stays in registers while their operands stream
through. ``margins`` and ``adjoint`` tile the matrices with such blocks. ``plain_products`` is the same in
plain loops, ``sparse_products`` the same for sparse rows.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import intrinsic

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.numba_internals import nothing, tools
from unpooled.kernels.outlined import for_floats
from unpooled.kernels.simd import INT64, Vectors, block, index, width

LONG, SHORT = block()
WIDTH = width()
PANEL = 3200  # bytes of a row per panel of ``margins``: LONG panels fit in the L1 cache


def _dots(n_rows: int, n_outputs: int, n_vectors: int = 1) -> Any:
    """The micro-kernel of ``margins`` for a block of rows, outputs and vectors of features."""

    @intrinsic
    def dots(typing: Any, X: Any, batch: Any, i: Any, w: Any, c: Any, j: Any, stop: Any, Z: Any) -> Any:
        """Z[i + r, c + k] += Σ of x_{batch[i + r]}[q] w_{c + k}[q] over j ≤ q < stop."""

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            vectors = Vectors(context, builder, X.dtype)
            (x, (_, p)), (numbers, _) = vectors.array(X, values[0]), vectors.array(batch, values[1])
            (coefficients, _), (z, (_, width)) = vectors.array(w, values[3]), vectors.array(Z, values[7])
            i, c, j, stop = values[2], values[4], values[5], values[6]
            drawn = [builder.load(builder.gep(numbers, [builder.add(i, index(r))])) for r in range(n_rows)]
            xs = [builder.gep(x, [builder.mul(row, p)]) for row in drawn]
            outputs = [builder.add(c, index(k)) for k in range(n_outputs)]
            ws = [builder.gep(coefficients, [builder.mul(output, p)]) for output in outputs]
            zero = vectors.constant(0.0)
            sums = [
                [[tools.alloca_once_value(builder, zero) for _ in range(n_vectors)] for _ in ws] for _ in xs
            ]

            def add(q: Any, v: int, mask: Any = None) -> None:
                loaded = [vectors.load(output, q, mask) for output in ws]
                for r in range(n_rows):
                    row = vectors.load(xs[r], q, mask)
                    for k in range(n_outputs):
                        place = sums[r][k][v]
                        builder.store(vectors.fma(row, loaded[k], builder.load(place)), place)

            many, one = index(n_vectors * vectors.lanes), index(vectors.lanes)
            middle = builder.sub(stop, builder.srem(builder.sub(stop, j), many))
            left = builder.srem(builder.sub(stop, j), one)
            end = builder.sub(stop, left)
            with tools.for_range_slice(builder, j, middle, many, INT64) as (q, _):
                for v in range(n_vectors):
                    add(builder.add(q, index(v * vectors.lanes)), v)
            if n_vectors > 1:
                with tools.for_range_slice(builder, middle, end, one, INT64) as (q, _):
                    add(q, 0)
            with tools.if_unlikely(builder, builder.icmp_signed(">", left, index(0))):
                add(end, 0, vectors.first(left))
            for r in range(n_rows):
                row = builder.gep(z, [builder.mul(builder.add(i, index(r)), width)])
                for k in range(n_outputs):
                    place = builder.gep(row, [outputs[k]])
                    lanes = builder.load(sums[r][k][0])
                    for v in range(1, n_vectors):
                        lanes = builder.fadd(lanes, builder.load(sums[r][k][v]))
                    total = vectors.total(lanes)
                    builder.store(builder.fadd(builder.load(place), total), place)
            return nothing(context)

        number = types.intp
        return types.void(X, batch, number, w, number, number, number, Z), write

    return dots


def _outer(n_outputs: int, n_vectors: int, masked: bool = False) -> Any:
    """The micro-kernel of ``adjoint`` for a block of outputs and vectors of features."""

    @intrinsic
    def outer(typing: Any, X: Any, batch: Any, Z: Any, c: Any, j: Any, G: Any) -> Any:
        """G_{c + k}[q] ← Σ_i Z[i, c + k] x_{batch[i]}[q] for the features q of the vectors from j on."""

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            vectors = Vectors(context, builder, X.dtype)
            (x, (_, p)), (numbers, (size,)) = vectors.array(X, values[0]), vectors.array(batch, values[1])
            (z, (_, width)), (gradient, _) = vectors.array(Z, values[2]), vectors.array(G, values[5])
            c, j = values[3], values[4]
            mask = vectors.first(builder.sub(p, j)) if masked else None
            zero = vectors.constant(0.0)
            starts = [index(v * vectors.lanes) for v in range(n_vectors)]
            sums = [[tools.alloca_once_value(builder, zero) for _ in starts] for _ in range(n_outputs)]
            with tools.for_range(builder, size, intp=INT64) as loop:
                drawn = builder.load(builder.gep(numbers, [loop.index]))
                row = builder.gep(x, [builder.add(builder.mul(drawn, p), j)])
                xs = [vectors.load(row, start, mask) for start in starts]
                residuals = builder.gep(z, [builder.add(builder.mul(loop.index, width), c)])
                for k in range(n_outputs):
                    residual = vectors.spread(builder.load(builder.gep(residuals, [index(k)])))
                    for v in range(n_vectors):
                        total = vectors.fma(residual, xs[v], builder.load(sums[k][v]))
                        builder.store(total, sums[k][v])
            for k in range(n_outputs):
                output = builder.gep(gradient, [builder.add(builder.mul(builder.add(c, index(k)), p), j)])
                for v in range(n_vectors):
                    vectors.store(builder.load(sums[k][v]), output, starts[v], mask)
            return nothing(context)

        return types.void(X, batch, Z, types.intp, types.intp, G), write

    return outer


dots_long_short, dots_long_1, dots_1_1 = _dots(LONG, SHORT), _dots(LONG, 1, 2), _dots(1, 1, 4)
outer_short_long, outer_1_long = _outer(SHORT, LONG), _outer(1, 2 * LONG)
outer_short_left, outer_1_left = _outer(SHORT, 1, masked=True), _outer(1, 1, masked=True)


@kernel
def margins(X: Array, batch: Array, w: Array, Z: Array) -> None:
    """Z ← XWᵀ for the rows of the batch.

    A block takes LONG rows and SHORT outputs; the last block of rows overlaps the one before. The rows of a
    block are the outer loop and stay in the L1 cache, panel by panel, while all of W streams through.
    """
    p, b, n_outputs = X.shape[1], batch.size, Z.shape[1]
    panel = PANEL // X.itemsize
    whole = n_outputs - n_outputs % SHORT
    for first in range(0, b, LONG if b >= LONG else 1):
        i = min(first, b - LONG) if b >= LONG else first
        for r in range(i, min(i + LONG, b)):
            for c in range(n_outputs):
                Z[r, c] = 0
        for j in range(0, p, panel):
            stop = min(j + panel, p)
            if b >= LONG:
                for c in range(0, whole, SHORT):
                    dots_long_short(X, batch, i, w, c, j, stop, Z)
                for c in range(whole, n_outputs):
                    dots_long_1(X, batch, i, w, c, j, stop, Z)
            else:
                for c in range(n_outputs):
                    dots_1_1(X, batch, i, w, c, j, stop, Z)


@kernel
def adjoint(X: Array, batch: Array, Z: Array, G: Array) -> None:
    """G ← ZᵀX over the rows of the batch, LONG vectors of features and SHORT outputs a block.

    The features are the outer loop: the batch's piece of X stays in the L1 cache for all outputs. The last
    block of features overlaps the one before; fewer features than a block go vector by vector.
    """
    p, n_outputs = X.shape[1], Z.shape[1]
    lanes = WIDTH // X.itemsize
    short, stride = n_outputs - n_outputs % SHORT, LONG * lanes
    for first in range(0, p, stride if p >= stride else lanes):
        j = min(first, p - stride) if p >= stride else first
        for c in range(0, short, SHORT):
            if p >= stride:
                outer_short_long(X, batch, Z, c, j, G)
            else:
                outer_short_left(X, batch, Z, c, j, G)
    stride *= 2  # single outputs leave registers for twice the features
    for first in range(0, p, stride if p >= stride else lanes):
        j = min(first, p - stride) if p >= stride else first
        for c in range(short, n_outputs):
            if p >= stride:
                outer_1_long(X, batch, Z, c, j, G)
            else:
                outer_1_left(X, batch, Z, c, j, G)


OUTLINED = {
    "margins": for_floats(margins, "void({f}[:, ::1], i8[::1], {f}[::1], {f}[:, ::1])"),
    "adjoint": for_floats(adjoint, "void({f}[:, ::1], i8[::1], {f}[:, ::1], {f}[::1])"),
}


def _exp(typing: Any, z: Any, j: Any, count: Any) -> Any:
    """z[q] ← e^{z[q]} in the first ``count`` lanes of the vector at j, for z ≤ 0; about one ulp.

    e^z = 2^k e^r with |r| ≤ ½ log 2, and Taylor's polynomial for e^r. k is rounded by adding 1½·2^m, m the
    bits of a float's fraction: the sum's lowest bits are k. Where e^z would leave the normal numbers, it is
    the smallest of them (NaN stays NaN).
    """

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vectors = Vectors(context, builder, z.dtype)
        single = vectors.bytes == 4
        bits, bias, degree, least = (23, 127, 7, -87.0) if single else (52, 1023, 13, -708.0)
        # log 2 in two parts, the first with so few bits that k·high is exact
        high = 0.693359375 if single else 6.93145751953125e-1
        low = -2.12194440e-4 if single else 1.42860682030941723212e-6
        pointer, _ = vectors.array(z, values[0])
        mask = vectors.first(values[2])
        x = vectors.load(pointer, values[1], mask)
        x = builder.select(builder.fcmp_ordered("<", x, vectors.constant(least)), vectors.constant(least), x)
        shift = vectors.constant(1.5 * 2.0**bits)
        shifted = vectors.fma(x, vectors.constant(1 / math.log(2)), shift)
        k = builder.fsub(shifted, shift)
        r = vectors.fma(k, vectors.constant(-high), x)
        r = vectors.fma(k, vectors.constant(-low), r)
        power = vectors.constant(1 / math.factorial(degree))
        for n in range(degree - 1, -1, -1):
            power = vectors.fma(power, r, vectors.constant(1 / math.factorial(n)))
        exponent = builder.add(builder.bitcast(shifted, vectors.integers), vectors.integer(bias))
        scale = builder.bitcast(builder.shl(exponent, vectors.integer(bits)), vectors.type)
        vectors.store(builder.fmul(power, scale), pointer, values[1], mask)
        return nothing(context)

    return types.void(z, types.intp, types.intp), write


exp: Any = intrinsic(_exp)


@kernel
def exponentials(Z: Array) -> None:
    """Z ← e^Z, entry by entry, for Z ≤ 0."""
    z = Z.reshape(-1)
    lanes = WIDTH // z.itemsize
    for j in range(0, z.size, lanes):
        exp(z, j, z.size - j)
