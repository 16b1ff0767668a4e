"""An outside truth for singular values: Jacobi's method in extended precision, good to 1e-18."""

import numpy as np

TINY = np.longdouble(2) ** -62


def svd(A):
    """Orthogonal rows B and orthonormal rows Q with Qᵀ B = A, or = Aᵀ where A is tall (then True)."""
    S = np.asarray(A, np.longdouble)
    tall = S.shape[0] > S.shape[1]
    B = (S.T if tall else S).copy()
    Q = np.eye(len(B), dtype=np.longdouble)
    for _ in range(60):
        rotations = 0
        for i in range(len(B) - 1):
            for j in range(i + 1, len(B)):
                inner, a, b = B[i] @ B[j], B[i] @ B[i], B[j] @ B[j]
                if abs(inner) <= TINY * np.sqrt(a * b):
                    continue
                rotations += 1
                half = (b - a) / 2
                t = inner / (half + np.copysign(np.sqrt(half * half + inner * inner), half))
                c = 1 / np.sqrt(1 + t * t)
                for M in (B, Q):
                    M[i], M[j] = c * M[i] - c * t * M[j], c * t * M[i] + c * M[j]
        if rotations == 0:
            return B, Q, tall
    raise ArithmeticError("no convergence in extended precision")


def singular_values(A):
    B, _, _ = svd(A)
    return np.sort(np.sqrt((B * B).sum(axis=1)))[::-1]


def threshold(A, t):
    """U diag((σ − t)₊) Vᵀ."""
    B, Q, tall = svd(A)
    sigma = np.sqrt((B * B).sum(axis=1))
    factor = np.where(sigma > t, 1 - t / np.where(sigma > t, sigma, 1), 0)
    X = Q.T @ (factor[:, None] * B)
    return X.T if tall else X


def norm(X):
    """‖X‖_F, in extended precision."""
    return float(np.sqrt((np.asarray(X, np.longdouble) ** 2).sum()))
