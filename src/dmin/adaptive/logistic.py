"""Multinomial logistic regression in its dual form, by L-BFGS in the geometry of the rows' own inner products.

The weights are W = A'X with A [n, C]: each row's part in each class's score is known, which explanations need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array

TOLERANCE = 5e-5  # of the gradient's norm, relative to the start: logits then agree with scikit-learn's to 1e-3
ROUNDS, MEMORY = 300, 8

Value = Callable[[Array], tuple[float, Array]]
Pair = tuple[Array, Array, Array, Array, float]  # s, y, K s, K y, 1 / <s, y>


def fit_logistic(rows: Array, target: Array, weight: Array, regularisation: float) -> Array:
    """Dual weights A [n, C] of min c·Σ w_i·CE_i + |W|²/2, without intercept.

    Args:
        rows: X [n, D].
        target: probabilities of the classes [n, C], one-hot for examples.
        weight: w [n].
        regularisation: c.
    """
    kind, (rows, target, weight) = rows.dtype, _doubles(rows, target, weight)
    xp = array_namespace(rows)
    cost = regularisation * weight[:, None]  # [n, 1]

    def value(logits: Array) -> tuple[float, Array]:
        shifted = logits - xp.max(logits, axis=1, keepdims=True)
        exponent = xp.exp(shifted)
        total = xp.sum(exponent, axis=1, keepdims=True)
        loss = _dot(cost, xp.log(total) - xp.sum(target * shifted, axis=1, keepdims=True))
        return loss, cost * (target - exponent / total)

    return xp.astype(minimise(product(rows), value, xp.zeros_like(target)), kind)


def fit_column(rows: Array, is_new: Array, known: Array, own: Array, weight: Array, regularisation: float) -> Array:
    """Dual weights [n] of one class more, the logits of all others frozen.

    Args:
        rows: X [n, D], the new class's rows among them.
        is_new: which rows are the new class's [n], boolean.
        known: log of the sum of the exponents of each row's frozen logits [n].
        own: frozen logit of each row's own class [n]; not used for the new class's rows.
        weight: w [n].
        regularisation: c.
    """
    kind, (rows, known, own, weight) = rows.dtype, _doubles(rows, known, own, weight)
    xp = array_namespace(rows)
    target, cost = xp.astype(is_new, rows.dtype), regularisation * weight

    def value(logits: Array) -> tuple[float, Array]:
        new = logits[:, 0]
        top = xp.maximum(known, new)
        total = top + xp.log(xp.exp(known - top) + xp.exp(new - top))  # [n]
        loss = _dot(cost, total - xp.where(is_new, new, own))
        return loss, (cost * (target - xp.exp(new - total)))[:, None]

    return xp.astype(minimise(product(rows), value, xp.zeros_like(rows[:, :1]))[:, 0], kind)


def _doubles(*arrays: Array) -> tuple[Array, ...]:
    """Arrays in double precision: in single, where the rounds stop depends on how a processor rounds its products."""
    return tuple(array_namespace(one).astype(one, array_namespace(one).float64) for one in arrays)


def primal_of(dual: Array, rows: Array) -> Array:
    """W = A'X [C, D], summed in double precision."""
    xp = array_namespace(rows)
    return xp.astype(xp.astype(dual, xp.float64).T @ xp.astype(rows, xp.float64), rows.dtype)


def one_hot(owner: np.ndarray[Any, Any], classes: int, kind: Array) -> Array:
    """Targets [n, C] of the type of `kind`."""
    xp = array_namespace(kind)
    columns = xp.arange(classes, device=device(kind))[None, :]
    return xp.astype(xp.asarray(owner, device=device(kind))[:, None] == columns, kind.dtype)


def product(rows: Array) -> Callable[[Array], Array]:
    """The product M -> X X' M, by the cheaper way."""
    if rows.shape[0] > 2 * rows.shape[1]:
        return lambda matrix: rows @ (rows.T @ matrix)
    gram = rows @ rows.T  # [n, n]
    return lambda matrix: gram @ matrix


def minimise(multiply: Callable[[Array], Array], value: Value, start: Array) -> Array:
    """Minimise loss(K A) + tr(A'K A)/2 over A [n, m] by L-BFGS, with one product with K per round.

    The gradient's coordinates are A - R with R = minus the loss's gradient, so A stays exact.

    Args:
        multiply: M [n, m] -> K M.
        value: logits K A [n, m] -> the loss and R [n, m].
        start: zeros [n, m].
    """
    a = f = start
    loss, r = value(f)
    g, kg = a - r, f - multiply(r)
    first = max(_dot(g, kg), 0.0) ** 0.5
    history: list[Pair] = []
    for _ in range(ROUNDS):
        norm = max(_dot(g, kg), 0.0) ** 0.5
        if norm <= TOLERANCE * first:
            break
        d, kd = _direction(g, kg, history, norm)
        step, new_loss, new_r = _line_search(value, (a, f), (d, kd), loss, _dot(g, kd))
        a, f, loss = a + step * d, f + step * kd, new_loss
        new_g, new_kg = a - new_r, f - multiply(new_r)
        change = (step * d, new_g - g, step * kd, new_kg - kg)
        curvature = _dot(change[2], change[1])
        if curvature > 1e-10:
            history = [*history[-MEMORY + 1 :], (*change, 1 / curvature)]
        g, kg = new_g, new_kg
    return a


def _line_search(
    value: Value, point: tuple[Array, Array], direction: tuple[Array, Array], loss: float, slope: float
) -> tuple[float, float, Array]:
    """(step, loss, R) of the first step of 1, 1/2, 1/4, ... that lowers the whole enough."""
    (a, f), (d, kd) = point, direction
    square, mixed, other = _dot(a, f), _dot(a, kd), _dot(d, kd)
    step, before = 1.0, loss + 0.5 * square
    while True:
        new_loss, new_r = value(f + step * kd)
        after = new_loss + 0.5 * (square + 2 * step * mixed + step * step * other)
        if after <= before + 1e-4 * step * slope or step < 1e-4:
            return step, new_loss, new_r
        step /= 2


def _direction(g: Array, kg: Array, history: Sequence[Pair], norm: float) -> tuple[Array, Array]:
    """The L-BFGS direction and its product with K (two loops)."""
    q, kq, factors = g, kg, []
    for _, y, ks, ky, rho in reversed(history):
        factors.append(rho * _dot(ks, q))
        q, kq = q - factors[-1] * y, kq - factors[-1] * ky
    scale = 1 / max(1.0, norm) if not history else 1 / (history[-1][4] * _dot(history[-1][3], history[-1][1]))
    q, kq = q * scale, kq * scale
    for (s, _, ks, ky, rho), factor in zip(history, reversed(factors), strict=True):
        back = factor - rho * _dot(ky, q)
        q, kq = q + back * s, kq + back * ks
    return -q, -kq


def _dot(left: Any, right: Any) -> float:
    """The inner product of two arrays, in double precision."""
    xp = array_namespace(left)
    return float(xp.sum(left * right, dtype=xp.float64))
