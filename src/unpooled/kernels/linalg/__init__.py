"""Small dense linear algebra that compiled code calls: roots, eigenvectors, singular values, Lanczos."""
