"""The two products of a minibatch gradient for sparse rows and coefficients that lie feature by feature.

A non-zero x_ij is spread over the lanes and multiplies the C coefficients w[jC …]. They are covered by
vectors of which the last overlaps the one before, so that none is masked where C is long enough.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.simd import INT64, Vectors, index, width

WIDTH = width()
MOST = 8  # vectors of outputs at once: their sums stay in registers


def _cover(vectors: Vectors, n_outputs: Any, c: Any, n_vectors: int, masked: bool) -> tuple[list[Any], Any]:
    """Where the vectors of outputs begin, counted from c on, and the mask of their lanes."""
    builder = vectors.builder
    left = builder.sub(n_outputs, c)
    if masked:
        return [index(0)], vectors.first(left)
    last = builder.sub(left, index(vectors.lanes))
    places = []
    for v in range(n_vectors):
        place = index(v * vectors.lanes)
        beyond = builder.icmp_signed(">", place, last)
        places.append(builder.select(beyond, last, place))
    return places, None


def _sums(n_vectors: int, masked: bool = False) -> Any:
    """The micro-kernel of ``sparse_margins`` for so many vectors of outputs.

    Few sums would wait for each other: then several non-zeros have sums of their own.
    """
    at_once = max(1, MOST // (2 * n_vectors))

    @intrinsic
    def sums(
        typing: Any, values: Any, columns: Any, first: Any, stop: Any, w: Any, c: Any, Z: Any, i: Any
    ) -> Any:
        """Z[i, c …] ← Σ_q values[q] w[columns[q]·C + c …] over first ≤ q < stop."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vectors = Vectors(context, builder, values.dtype)
            (x, _), (numbers, _) = vectors.array(values, arguments[0]), vectors.array(columns, arguments[1])
            (coefficients, _), (z, (_, n_outputs)) = (
                vectors.array(w, arguments[4]),
                vectors.array(Z, arguments[6]),
            )
            first, stop, c, i = arguments[2], arguments[3], arguments[5], arguments[7]
            places, mask = _cover(vectors, n_outputs, c, n_vectors, masked)
            zero = vectors.constant(0.0)
            totals = [[cgutils.alloca_once_value(builder, zero) for _ in places] for _ in range(at_once)]

            def add(q: Any, into: list[Any]) -> None:
                spread = vectors.spread(builder.load(builder.gep(x, [q])))
                column = builder.sext(builder.load(builder.gep(numbers, [q])), INT64)
                row = builder.gep(coefficients, [builder.add(builder.mul(column, n_outputs), c)])
                for place, total in zip(places, into, strict=True):
                    loaded = vectors.load(row, place, mask)
                    builder.store(vectors.fma(spread, loaded, builder.load(total)), total)

            count = builder.sub(stop, first)
            middle = builder.sub(stop, builder.srem(count, index(at_once)))
            with cgutils.for_range_slice(builder, first, middle, index(at_once), INT64) as (q, _):
                for k in range(at_once):
                    add(builder.add(q, index(k)), totals[k])
            if at_once > 1:
                with cgutils.for_range_slice(builder, middle, stop, index(1), INT64) as (q, _):
                    add(q, totals[0])
            out = builder.gep(z, [builder.add(builder.mul(i, n_outputs), c)])
            for v, place in enumerate(places):
                total = builder.load(totals[0][v])
                for k in range(1, at_once):
                    total = builder.fadd(total, builder.load(totals[k][v]))
                vectors.store(total, out, place, mask)
            return context.get_dummy_value()

        number = types.intp
        return types.void(values, columns, number, number, w, number, Z, number), write

    return sums


def _additions(n_vectors: int, masked: bool = False) -> Any:
    """The micro-kernel of ``sparse_adjoint`` for so many vectors of outputs."""

    @intrinsic
    def additions(
        typing: Any, values: Any, columns: Any, first: Any, stop: Any, Z: Any, i: Any, c: Any, G: Any
    ) -> Any:
        """G[columns[q]·C + c …] += values[q] Z[i, c …] for first ≤ q < stop."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vectors = Vectors(context, builder, values.dtype)
            (x, _), (numbers, _) = vectors.array(values, arguments[0]), vectors.array(columns, arguments[1])
            (z, (_, n_outputs)), (gradient, _) = (
                vectors.array(Z, arguments[4]),
                vectors.array(G, arguments[7]),
            )
            first, stop, i, c = arguments[2], arguments[3], arguments[5], arguments[6]
            places, mask = _cover(vectors, n_outputs, c, n_vectors, masked)
            residuals = builder.gep(z, [builder.add(builder.mul(i, n_outputs), c)])
            loaded = [vectors.load(residuals, place, mask) for place in places]
            with cgutils.for_range_slice(builder, first, stop, index(1), INT64) as (q, _):
                spread = vectors.spread(builder.load(builder.gep(x, [q])))
                column = builder.sext(builder.load(builder.gep(numbers, [q])), INT64)
                row = builder.gep(gradient, [builder.add(builder.mul(column, n_outputs), c)])
                # all are read before any is written: the last vector overlaps
                new = [
                    vectors.fma(spread, residual, vectors.load(row, place, mask))
                    for residual, place in zip(loaded, places, strict=True)
                ]
                for total, place in zip(new, places, strict=True):
                    vectors.store(total, row, place, mask)
            return context.get_dummy_value()

        number = types.intp
        return types.void(values, columns, number, number, Z, number, number, G), write

    return additions


sums_8, sums_4, sums_2, sums_1, sums_masked = _sums(8), _sums(4), _sums(2), _sums(1), _sums(1, masked=True)
additions_8, additions_4, additions_2 = _additions(8), _additions(4), _additions(2)
additions_1, additions_masked = _additions(1), _additions(1, masked=True)


@kernel
def sparse_margins(values: Array, columns: Array, starts: Array, batch: Array, w: Array, Z: Array) -> None:
    """Z[i, c] ← Σ_j x_ij w[jC + c] over the non-zeros of the rows i of the batch."""
    n_outputs, lanes = Z.shape[1], WIDTH // values.itemsize
    for i in range(batch.size):
        first, stop = starts[batch[i]], starts[batch[i] + 1]
        for chunk in range(0, n_outputs, MOST * lanes):
            left = n_outputs - chunk
            if n_outputs < lanes:
                sums_masked(values, columns, first, stop, w, chunk, Z, i)
            elif left > 4 * lanes:
                sums_8(values, columns, first, stop, w, chunk, Z, i)
            elif left > 2 * lanes:
                sums_4(values, columns, first, stop, w, chunk, Z, i)
            elif left > lanes:
                sums_2(values, columns, first, stop, w, chunk, Z, i)
            else:
                sums_1(values, columns, first, stop, w, n_outputs - lanes, Z, i)


@kernel
def sparse_adjoint(values: Array, columns: Array, starts: Array, batch: Array, Z: Array, G: Array) -> None:
    """G[jC + c] ← G[jC + c] + Σ_i Z[i, c] x_ij over the non-zeros of the rows i of the batch.

    Where the outputs take several chunks, the last one must not add twice what the one before has added: it
    goes through the masked kernel.
    """
    n_outputs, lanes = Z.shape[1], WIDTH // values.itemsize
    for i in range(batch.size):
        first, stop = starts[batch[i]], starts[batch[i] + 1]
        for chunk in range(0, n_outputs, MOST * lanes):
            left = n_outputs - chunk
            if left < lanes:
                additions_masked(values, columns, first, stop, Z, i, chunk, G)
            elif left > 4 * lanes:
                additions_8(values, columns, first, stop, Z, i, chunk, G)
            elif left > 2 * lanes:
                additions_4(values, columns, first, stop, Z, i, chunk, G)
            elif left > lanes:
                additions_2(values, columns, first, stop, Z, i, chunk, G)
            else:
                additions_1(values, columns, first, stop, Z, i, chunk, G)
