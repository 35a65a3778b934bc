"""The BiLSTM encoder, learned from scratch."""

from __future__ import annotations

import numpy as np
import torch

from dmin.encoder.bilstm import bilstm_encoder


def test_vectors_do_not_depend_on_their_batch_and_learn() -> None:
    encoder = bilstm_encoder(device="cpu", seed=1)
    assert encoder.width == 256
    texts = ["one short text", "another text that is quite a bit longer than the first", "x"]
    vectors = encoder.encode(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.allclose(encoder.encode([text])[0], vector, atol=1e-5)
    assert np.array_equal(vectors, bilstm_encoder(device="cpu", seed=1).encode(texts))
    assert not np.allclose(vectors, bilstm_encoder(device="cpu", seed=2).encode(texts))
    encoder.network(encoder.tokenize(texts)).sum().backward()
    assert all(w.grad is not None and torch.isfinite(w.grad).all() for w in encoder.network.parameters())


def test_attention_weighs_the_tokens() -> None:
    """The mean of the scaled states is the attention-weighted sum of the states."""
    encoder = bilstm_encoder(device="cpu")
    backbone = encoder.network.backbone
    ids = torch.tensor([encoder.tokenize(["where is my parcel"])[0]])
    with torch.no_grad():
        states, _ = backbone.lstm(backbone.embedding(ids))
        weights = backbone.outer(torch.tanh(backbone.inner(states))).softmax(dim=1)
        expected = (weights * states).sum(dim=1)
    assert np.allclose(encoder.encode(["where is my parcel"]), expected.numpy(), atol=1e-5)
