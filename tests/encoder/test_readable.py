"""Texts that an encoder cannot read: other scripts, emoji, and mixtures."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from dmin.data import load_corpus
from dmin.encoder import UNREADABLE, TextEncoder, open_encoder
from dmin.encoder.readable import Reader

UNREAD = {
    "Chinese": "我想退款，我的包裹在哪里？",
    "Russian": "я хочу вернуть деньги за заказ",
    "Arabic": "أين طلبي؟ أريد استرداد أموالي",
    "Hindi": "नमस्ते मुझे रिफंड चाहिए",
    "Korean": "안녕하세요 환불 해주세요",
    "Greek": "θέλω τα λεφτά μου πίσω",
    "Thai": "สวัสดีครับ ขอเงินคืน",
    "emoji": "😀😀 🎉!!",
}
READ = {
    "English": "where is my parcel?",
    "accents": "Café in Łódź, naïve façade, Ångström",
    "German": "Ich möchte mein Geld zurück",
    "numbers": "order 4711-22, £12.50 (!)",
    "marks": "?!... --",
    "formula": "the α and β decay of the nucleus in the lab",
}
MIXED = {
    "please 退款 now": 0.5,
    "please вернуть деньги now": 0.5,
    "thanks a lot 😀": 0.25,
    "the Russian word привет means hello": 1 / 6,
}


@pytest.fixture(scope="module", params=["bge-small", "static", "minilm", "bge-small+static"])
def encoder(request: pytest.FixtureRequest) -> TextEncoder:
    return open_encoder(request.param, device="cpu")


def test_other_scripts_and_emoji(encoder: TextEncoder) -> None:
    assert dict(zip(UNREAD, encoder.unreadable(list(UNREAD.values())), strict=True)) == dict.fromkeys(UNREAD, 1.0)


def test_what_can_be_read(encoder: TextEncoder) -> None:
    found = dict(zip(READ, encoder.unreadable(list(READ.values())), strict=True))
    assert found.pop("formula") == pytest.approx(2 / 11) and found == dict.fromkeys(found, 0.0)
    assert encoder.unreadable([]) == []


def test_mixed_texts_by_the_part_of_their_words(encoder: TextEncoder) -> None:
    assert encoder.unreadable(list(MIXED)) == pytest.approx(list(MIXED.values()))


def test_no_built_in_text_is_taken_for_unreadable() -> None:
    assert max(open_encoder().unreadable(load_corpus("starter").texts)) < UNREADABLE


def test_a_vocabulary_of_another_script_reads_single_characters() -> None:
    """In a Chinese or multilingual vocabulary they are words; only the unknown token counts there."""
    vocabulary = {"[UNK]": 0, "a": 1, "b": 2} | {character: place for place, character in enumerate("我想退款", 3)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    assert Reader(tokenizer, "[UNK]").unreadable(["我想退款", "我想x款"]) == [0.0, 0.25]
