"""Signals, and what Python makes of them."""

from __future__ import annotations

import signal
import sys
import threading
import weakref

import pytest

from labeler.cli.terminal import Interrupted, signals_raise


class Thing:
    """Something that can be referred to weakly."""


def tidy_up_and_wait(number: signal.Signals) -> None:
    """Have a signal come in a weak reference's callback, and then wait."""
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(number))
    del thing
    assert reference() is None
    threading.Event().wait(30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_python_tidies_up_is_heard_all_the_same(
    number: signal.Signals,
) -> None:
    """What a weak reference's callback raises is dropped: one Ctrl-C would do nothing."""
    with pytest.raises(Interrupted) as heard, signals_raise():
        tidy_up_and_wait(number)
    assert heard.value.exit_code == 128 + number


def test_other_exceptions_that_are_dropped_are_told_of_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And after it, all are."""
    told: list[str] = []

    def note(unraisable: sys.UnraisableHookArgs) -> None:
        told.append(str(unraisable.exc_value))

    monkeypatch.setattr(sys, "unraisablehook", note)

    def fail(_: object) -> None:
        raise ValueError("dropped")

    with signals_raise():
        thing = Thing()
        reference = weakref.ref(thing, fail)
        del thing
        assert reference() is None
    assert told == ["dropped"]
    assert sys.unraisablehook is note
