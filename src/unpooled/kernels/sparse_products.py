"""The products of a minibatch gradient for sparse rows and coefficients in feature-major order, with SIMD.

A non-zero x_ij is broadcast to all lanes and multiplies the coefficients w[jS …] of feature j, which occupy
whole vectors: S is the number C of outputs, rounded up. Only Z, which has C columns, needs a mask, for the
last vector of a row.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.numba_internals import nothing, tools
from unpooled.kernels.outlined import for_floats
from unpooled.kernels.simd import INT64, Vectors, index, width

WIDTH = width()
MOST = 8  # vectors of outputs per block: their sums stay in registers
UNROLLED = 4  # unroll factor over the non-zeros of ``sparse_adjoint``


def _row_of(vectors: Vectors, columns: Any, numbers: Any, q: Any, base: Any, stride: Any) -> Any:
    """The address of the coefficients of non-zero q's feature."""
    builder = vectors.builder
    widen = builder.sext if columns.dtype.signed else builder.zext
    column = widen(builder.load(builder.gep(numbers, [q])), INT64)
    return builder.gep(base, [builder.mul(column, stride)])


def _sums(n_vectors: int) -> Any:
    """The micro-kernel of ``sparse_margins`` for ``n_vectors`` vectors of outputs.

    With few sums the additions would form a dependency chain, so several non-zeros get sums of their own.
    """
    at_once = max(1, MOST // n_vectors)

    @intrinsic
    def sums(
        typing: Any, values: Any, columns: Any, first: Any, stop: Any, w: Any, S: Any, c: Any, Z: Any, i: Any
    ) -> Any:
        """Z[i, c …] ← Σ_q values[q] w[columns[q]·S + c …] over first ≤ q < stop."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vectors = Vectors(context, builder, values.dtype)
            (x, _), (numbers, _) = vectors.array(values, arguments[0]), vectors.array(columns, arguments[1])
            first, stop, stride, c, i = (arguments[k] for k in (2, 3, 5, 6, 8))
            base = builder.gep(vectors.array(w, arguments[4])[0], [c])
            z, (_, n_outputs) = vectors.array(Z, arguments[7])
            places = [index(v * vectors.lanes) for v in range(n_vectors)]
            zero = vectors.constant(0.0)
            totals = [[tools.alloca_once_value(builder, zero) for _ in places] for _ in range(at_once)]

            def add(q: Any, into: list[Any]) -> None:
                spread = vectors.spread(builder.load(builder.gep(x, [q])))
                row = _row_of(vectors, columns, numbers, q, base, stride)
                for place, total in zip(places, into, strict=True):
                    loaded = vectors.load(row, place)
                    builder.store(vectors.fma(spread, loaded, builder.load(total)), total)

            middle = builder.sub(stop, builder.srem(builder.sub(stop, first), index(at_once)))
            with tools.for_range_slice(builder, first, middle, index(at_once), INT64) as (q, _):
                for k in range(at_once):
                    add(builder.add(q, index(k)), totals[k])
            if at_once > 1:
                with tools.for_range_slice(builder, middle, stop, index(1), INT64) as (q, _):
                    add(q, totals[0])
            out = builder.gep(z, [builder.add(builder.mul(i, n_outputs), c)])
            masks = _masks(vectors, n_outputs, c, n_vectors)
            for v, (place, mask) in enumerate(zip(places, masks, strict=True)):
                total = builder.load(totals[0][v])
                for k in range(1, at_once):
                    total = builder.fadd(total, builder.load(totals[k][v]))
                vectors.store(total, out, place, mask)
            return nothing(context)

        number = types.intp
        return types.void(values, columns, number, number, w, number, number, Z, number), write

    return sums


def _additions(n_vectors: int) -> Any:
    """The micro-kernel of ``sparse_adjoint`` for so many vectors of outputs."""

    @intrinsic
    def additions(
        typing: Any, values: Any, columns: Any, first: Any, stop: Any, Z: Any, i: Any, c: Any, G: Any, S: Any
    ) -> Any:
        """G[columns[q]·S + c …] += values[q] Z[i, c …] for first ≤ q < stop."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vectors = Vectors(context, builder, values.dtype)
            (x, _), (numbers, _) = vectors.array(values, arguments[0]), vectors.array(columns, arguments[1])
            first, stop, i, c, stride = (arguments[k] for k in (2, 3, 5, 6, 8))
            z, (_, n_outputs) = vectors.array(Z, arguments[4])
            base = builder.gep(vectors.array(G, arguments[7])[0], [c])
            residuals = builder.gep(z, [builder.add(builder.mul(i, n_outputs), c)])
            places = [index(v * vectors.lanes) for v in range(n_vectors)]
            masks = _masks(vectors, n_outputs, c, n_vectors)
            loaded = [vectors.load(residuals, *each) for each in zip(places, masks, strict=True)]

            def add(q: Any) -> None:
                spread = vectors.spread(builder.load(builder.gep(x, [q])))
                row = _row_of(vectors, columns, numbers, q, base, stride)
                for residual, place in zip(loaded, places, strict=True):
                    vectors.store(vectors.fma(spread, residual, vectors.load(row, place)), row, place)

            middle = builder.sub(stop, builder.srem(builder.sub(stop, first), index(UNROLLED)))
            with tools.for_range_slice(builder, first, middle, index(UNROLLED), INT64) as (q, _):
                for k in range(UNROLLED):
                    add(builder.add(q, index(k)))
            with tools.for_range_slice(builder, middle, stop, index(1), INT64) as (q, _):
                add(q)
            return nothing(context)

        number = types.intp
        return types.void(values, columns, number, number, Z, number, number, G, number), write

    return additions


def _masks(vectors: Vectors, n_outputs: Any, c: Any, n_vectors: int) -> list[Any]:
    """For the vectors of Z from column c on: the last one may reach beyond the outputs."""
    builder = vectors.builder
    last = builder.add(c, index((n_vectors - 1) * vectors.lanes))
    return [None] * (n_vectors - 1) + [vectors.first(builder.sub(n_outputs, last))]


sums_8, sums_4, sums_2, sums_1 = _sums(8), _sums(4), _sums(2), _sums(1)
additions_8, additions_4, additions_2, additions_1 = (_additions(n) for n in (8, 4, 2, 1))


@kernel
def taken(left: int) -> int:
    """How many of the vectors of outputs that are left the next micro-kernel takes."""
    if left >= 4:
        return 8 if left >= 8 else 4
    return 2 if left >= 2 else 1


@kernel
def sparse_margins(
    values: Array, columns: Array, starts: Array, batch: Array, w: Array, stride: int, Z: Array
) -> None:
    """Z[i, c] ← Σ_j x_ij w[jS + c] over the non-zeros of the rows i of the batch, S the stride."""
    lanes = WIDTH // values.itemsize
    for i in range(batch.size):
        first, stop = starts[batch[i]], starts[batch[i] + 1]
        c = 0
        while c < stride:
            n_vectors = taken((stride - c) // lanes)
            if n_vectors == 8:
                sums_8(values, columns, first, stop, w, stride, c, Z, i)
            elif n_vectors == 4:
                sums_4(values, columns, first, stop, w, stride, c, Z, i)
            elif n_vectors == 2:
                sums_2(values, columns, first, stop, w, stride, c, Z, i)
            else:
                sums_1(values, columns, first, stop, w, stride, c, Z, i)
            c += n_vectors * lanes


@kernel
def sparse_adjoint(
    values: Array, columns: Array, starts: Array, batch: Array, Z: Array, G: Array, stride: int
) -> None:
    """G[jS + c] ← G[jS + c] + Σ_i Z[i, c] x_ij over the non-zeros of the rows i of the batch."""
    lanes = WIDTH // values.itemsize
    for i in range(batch.size):
        first, stop = starts[batch[i]], starts[batch[i] + 1]
        c = 0
        while c < stride:
            n_vectors = taken((stride - c) // lanes)
            if n_vectors == 8:
                additions_8(values, columns, first, stop, Z, i, c, G, stride)
            elif n_vectors == 4:
                additions_4(values, columns, first, stop, Z, i, c, G, stride)
            elif n_vectors == 2:
                additions_2(values, columns, first, stop, Z, i, c, G, stride)
            else:
                additions_1(values, columns, first, stop, Z, i, c, G, stride)
            c += n_vectors * lanes


NON_ZEROS = "{f}[::1], u2[::1], i8[::1], i8[::1]"
OUTLINED = {
    "sparse_margins": for_floats(sparse_margins, f"void({NON_ZEROS}, {{f}}[::1], i8, {{f}}[:, ::1])"),
    "sparse_adjoint": for_floats(sparse_adjoint, f"void({NON_ZEROS}, {{f}}[:, ::1], {{f}}[::1], i8)"),
}
