"""The algorithm boxes, word for word: the truth that the library's one-vector forms are compared with.

Deterministic: full gradients, all clients. ``clients`` is a list of (weight, X, y); the loss is squared.
"""

import numpy as np


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)


def gradient(w, X, y):
    return X.T @ (X @ w - y) / len(y)


def fast_fedda(clients, lam, w0, mu, gamma, a, E, R):
    """Algorithm 1 with its two vectors g and w̃, α_t = (t + a)² (a = ∞: α_t = 1) and γ = γ̃a²."""
    alpha = (lambda t: 1.0) if np.isinf(a) else (lambda t: (t + a) ** 2)
    scale = gamma if np.isinf(a) else gamma * a**2

    def prox(t, z):
        A = sum(alpha(i) for i in range(t + 1))
        c = mu * A / 2 + scale
        return soft((scale * w0 - z) / c, A * lam / c)

    w, g, wt = w0.copy(), np.zeros_like(w0), alpha(0) * w0
    for r in range(R):
        sent = []
        for pi, X, y in clients:
            w_k, g_k, wt_k = w.copy(), g.copy(), wt.copy()
            for t in range(r * E, (r + 1) * E):
                g_k = g_k + alpha(t) * gradient(w_k, X, y)
                if t < (r + 1) * E - 1:
                    w_k = prox(t, g_k - mu * wt_k / 2)
                    wt_k = wt_k + alpha(t + 1) * w_k
            sent.append((pi, g_k, wt_k))
        t = (r + 1) * E - 1
        g = sum(pi * g_k for pi, g_k, _ in sent)
        wt = sum(pi * wt_k for pi, _, wt_k in sent)
        w = prox(t, g - mu * wt / 2)
        wt = wt + alpha(t + 1) * w
    return w


def c_fedda(clients, lam, w0, mu, gamma, a, E, R):
    """Algorithm 2 without a radius."""
    alpha = (lambda t: 1.0) if np.isinf(a) else (lambda t: (t + a) ** 2)
    scale = gamma if np.isinf(a) else gamma * a**2

    def prox(r, z):
        A = sum(alpha(i) for i in range(r + 1))
        c = (mu * A / 2 + scale) * E
        return soft((scale * E * w0 - z) / c, A * E * lam / c)

    w, g, wt = w0.copy(), np.zeros_like(w0), alpha(0) * w0
    for r in range(R):
        mean = np.zeros_like(g)
        for pi, X, y in clients:
            w_k, g_k = w.copy(), g.copy()
            for _ in range(E):
                g_k = g_k + alpha(r) * gradient(w_k, X, y)
                w_k = prox(r, g_k - mu * E * wt / 2)
            mean = mean + pi * g_k
        g = mean
        w = prox(r, g - mu * E * wt / 2)
        wt = wt + alpha(r + 1) * w
    return w


def fedda(clients, lam, w0, step, server_step, E, R):
    """Yuan et al.: the dual z, its prox with the elapsed step."""
    z = w0.copy()
    for r in range(R):
        mean = np.zeros_like(z)
        for pi, X, y in clients:
            z_k = z.copy()
            for j in range(E):
                w_k = soft(z_k, step * (server_step * r * E + j) * lam)
                z_k = z_k - step * gradient(w_k, X, y)
            mean = mean + pi * (z_k - z)
        z = z + server_step * mean
    return soft(z, step * server_step * R * E * lam)


def fedmid(clients, lam, w0, step, server_step, E, R, server_prox):
    """Yuan et al.: proximal steps at the clients, a proximal step at the server."""
    w = w0.copy()
    for _ in range(R):
        mean = np.zeros_like(w)
        for pi, X, y in clients:
            w_k = w.copy()
            for _ in range(E):
                w_k = soft(w_k - step * gradient(w_k, X, y), step * lam)
            mean = mean + pi * (w_k - w)
        steps = E if server_prox == "round" else 1
        w = soft(w + server_step * mean, server_step * step * steps * lam)
    return w


def fedavg(clients, w0, step, server_step, E, R):
    """McMahan et al."""
    w = w0.copy()
    for _ in range(R):
        mean = np.zeros_like(w)
        for pi, X, y in clients:
            w_k = w.copy()
            for _ in range(E):
                w_k = w_k - step * gradient(w_k, X, y)
            mean = mean + pi * (w_k - w)
        w = w + server_step * mean
    return w


def scaffold(clients, w0, step, server_step, E, R):
    """Karimireddy et al., option II, all clients, weighted."""
    w, c = w0.copy(), np.zeros_like(w0)
    c_clients = [np.zeros_like(w0) for _ in clients]
    for _ in range(R):
        dw, dc = np.zeros_like(w), np.zeros_like(w)
        for k, (pi, X, y) in enumerate(clients):
            w_k = w.copy()
            for _ in range(E):
                w_k = w_k - step * (gradient(w_k, X, y) - c_clients[k] + c)
            new = c_clients[k] - c + (w - w_k) / (step * E)
            dw, dc = dw + pi * (w_k - w), dc + pi * (new - c_clients[k])
            c_clients[k] = new
        w, c = w + server_step * dw, c + dc
    return w
