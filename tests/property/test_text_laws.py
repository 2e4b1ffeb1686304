"""Texts in keys and prompts: the fast ways give what the plain ones do."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.labels.signature import canonical_json, texts_json
from labeler.sentences import characters
from labeler.sentences.characters import inert_json, plain_json

TEXTS = st.recursive(
    st.text() | st.integers(-(2**40), 2**40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
ODD = st.text(alphabet="ab<>[]|/~!e\u200c\u200d\u00ad\ufe0e\uff5c\u202e \n\x7f\U000e0041")


@given(TEXTS)
def test_texts_are_encoded_as_canonical_json(value: object) -> None:
    """Keys of labels do not depend on the encoder."""
    assert texts_json(value) == canonical_json(value)


def test_a_lone_surrogate_is_an_error() -> None:
    """As in canonical JSON."""
    for encode in (texts_json, canonical_json):
        with pytest.raises(ValueError, match="surrogates"):
            encode(["\ud800"])


@given(ODD | st.text())
def test_control_tokens_are_found_by_their_first_characters(text: str) -> None:
    """Searching for candidates first escapes the same characters."""
    with suppress(UnicodeEncodeError):
        whole = characters._CONTROL_TOKEN.sub(characters._escape, plain_json(text))
        assert inert_json(text) == whole
