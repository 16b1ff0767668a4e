"""Linear algebra for compiled code: roots, eigenvectors, singular values, Lanczos, Anderson extrapolation."""
