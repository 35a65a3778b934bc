"""Algorithm 1 of the paper as literal loops over Python numbers: slow, plain, independent of the package."""

from __future__ import annotations

import math

Vector = list[float]


def squash(x: Vector) -> Vector:
    squared = sum(a * a for a in x)
    return [squared / (1 + squared) * a / math.sqrt(squared + 1e-9) for a in x]


def pearson(x: Vector, y: Vector) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    spread = math.sqrt(sum((a - mean_x) ** 2 for a in x)) * math.sqrt(sum((b - mean_y) ** 2 for b in y))
    return covariance / spread if spread > 1e-14 else 0.0


def dot(x: Vector, y: Vector) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def softmax(x: Vector) -> Vector:
    peak = max(x)
    raised = [math.exp(a - peak) for a in x]
    return [a / sum(raised) for a in raised]


def route(
    memory: list[Vector],
    query: Vector,
    weight: list[Vector],
    bias: Vector,
    capsules: int,
    iterations: int,
    softmax_over: str,
) -> Vector:
    """q' for one memory and one query; rows j*v:(j+1)*v of weight and bias are W_j and b_j."""
    width = len(query) // capsules

    def transformed(x: Vector, j: int) -> Vector:
        rows = range(j * width, (j + 1) * width)
        return squash([dot(weight[row], x) + bias[row] for row in rows])

    n = len(memory)
    m_hat = [[transformed(memory[i], j) for j in range(capsules)] for i in range(n)]
    q_hat = [transformed(query, j) for j in range(capsules)]
    alpha = [[0.0] * capsules for _ in range(n)]
    p = [[math.tanh(pearson(m_hat[i][j], q_hat[j])) for j in range(capsules)] for i in range(n)]
    v: list[Vector] = []
    for _ in range(iterations):
        if softmax_over == "capsules":
            d = [softmax(alpha[i]) for i in range(n)]
        else:
            columns = [softmax([alpha[i][j] for i in range(n)]) for j in range(capsules)]
            d = [[columns[j][i] for j in range(capsules)] for i in range(n)]
        v = []
        for j in range(capsules):
            v_hat = [0.0] * width
            for i in range(n):
                for k in range(width):
                    v_hat[k] += (d[i][j] + p[i][j]) * m_hat[i][j][k]
            v.append(squash(v_hat))
        for i in range(n):
            for j in range(capsules):
                alpha[i][j] += p[i][j] * dot(m_hat[i][j], v[j])
        for j in range(capsules):
            q_hat[j] = [(a + b) / 2 for a, b in zip(q_hat[j], v[j], strict=True)]
        for i in range(n):
            for j in range(capsules):
                p[i][j] = math.tanh(pearson(m_hat[i][j], q_hat[j]))
    return [number for capsule in v for number in capsule]
