"""Vectors: how they are read, and how alike they are."""

from __future__ import annotations

import base64
import math
import random
import struct

import numpy as np
import pytest

from labeler.plugins.similarity.embedder import Vector, as_vector, cosine, decoded


def encoded(vector: Vector) -> str:
    """The base64 of a server."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def drawn(seed: int, size: int) -> Vector:
    """A vector of chance."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    return as_vector([dice.gauss(0, 1) for _ in range(size)])


@pytest.mark.parametrize("size", [1, 3, 256, 1536])
def test_the_cosine_is_that_of_numpy(size: int) -> None:
    """To a millionth and far beyond, whatever the lengths of the vectors."""
    for seed in range(20):
        one, other = drawn(seed, size), drawn(1000 + seed, size)
        a, b = np.array(one), np.array(other)
        expected = float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
        assert cosine(one, other) == pytest.approx(expected, abs=1e-12)


def test_the_cosine_of_a_vector_with_itself_is_one_and_with_its_opposite_minus_one() -> None:
    """Rounding takes it no further than that."""
    for seed in range(50):
        one = drawn(seed, 17)
        other = tuple(-3.0 * number for number in one)
        assert cosine(one, one) == pytest.approx(1.0, abs=1e-12)
        assert cosine(one, other) == pytest.approx(-1.0, abs=1e-12)
        assert -1.0 <= (cosine(one, other) or 0.0) <= (cosine(one, one) or 0.0) <= 1.0


def test_the_order_of_dimensions_changes_nothing() -> None:
    """The sum is rounded once."""
    one, other = drawn(1, 300), drawn(2, 300)
    shuffled = list(range(300))
    random.Random(3).shuffle(shuffled)  # noqa: S311 - no secret
    turned = [tuple(vector[place] for place in shuffled) for vector in (one, other)]
    assert cosine(*turned) == pytest.approx(cosine(one, other) or math.nan, rel=1e-15)


def test_a_vector_of_zeros_is_like_nothing() -> None:
    """It has no direction, not even with itself."""
    assert cosine((0.0, 0.0), (1.0, 2.0)) is None
    assert cosine((0.0, 0.0), (0.0, 0.0)) is None


def test_tiny_and_huge_vectors_have_a_cosine() -> None:
    """Their squares are neither lost nor infinite."""
    tiny, huge = as_vector([1e-38, 1e-38]), as_vector([3e38, 3e38])
    assert cosine(tiny, tiny) == pytest.approx(1.0)
    assert cosine(huge, tiny) == pytest.approx(1.0)


def test_vectors_of_two_sizes_are_not_compared() -> None:
    """An error, not a number over what they share."""
    with pytest.raises(ValueError, match="of 2 and of 3 numbers"):
        cosine((1.0, 2.0), (1.0, 2.0, 3.0))


def test_a_vector_comes_back_bit_by_bit() -> None:
    """What single precision can hold is kept as it is."""
    vector = drawn(7, 1536)
    assert decoded(encoded(vector)) == vector


def test_numbers_are_rounded_to_single_precision() -> None:
    """A server that writes decimals and one that sends bytes give the same vector."""
    assert as_vector([0.1, 1]) == struct.unpack("<2f", struct.pack("<2f", 0.1, 1.0))


@pytest.mark.parametrize(
    "numbers", [[], ["1"], [None], [math.nan], [math.inf], [1e300], [10**400], [[1.0]]]
)
def test_what_is_no_finite_number_is_refused(numbers: list[object]) -> None:
    """Before it could enter a sum."""
    with pytest.raises(ValueError, match="number"):
        as_vector(numbers)


@pytest.mark.parametrize("text", ["", "AAA", "AAAAAAA=", "äöü", "!!!!", encoded((math.inf,))])
def test_what_is_no_vector_in_base64_is_refused(text: str) -> None:
    """Empty, cut short, other letters, and what is not finite."""
    with pytest.raises(ValueError, match=r"base64|bytes are not|not finite"):
        decoded(text)
