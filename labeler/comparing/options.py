"""Options that choose and group the two sides of a comparison.

Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from typing_extensions import TypedDict

from labeler.catalog import check_options, keywords_of
from labeler.data.options import Option


class SideKeywords(TypedDict, total=False):
    """The fields of :class:`SideOptions` as keywords of Python functions."""

    by: str | None
    a_signature: str | None
    b_signature: str | None
    trial: int | None
    b_trial: int | None


@dataclass(frozen=True, kw_only=True)
class ChoiceOptions:
    """The labels of a file that are meant."""

    a_signature: Annotated[
        str | None, Option("Use only labels of A whose signature contains this text.")
    ] = None
    trial: Annotated[int | None, Option("Use only this trial.")] = None


@dataclass(frozen=True, kw_only=True)
class SideOptions(ChoiceOptions):
    """The labels of both sides, and their groups."""

    by: Annotated[str | None, Option("Group by this metadata column.")] = None
    b_signature: Annotated[
        str | None, Option("Use only labels of B whose signature contains this text.")
    ] = None
    b_trial: Annotated[
        int | None, Option("Use only this trial of B; by default the one of --trial.")
    ] = None

    @property
    def same_choice(self) -> bool:
        """True if both sides are chosen in the same way."""
        return self.a_signature == self.b_signature and self.b_trial in {None, self.trial}


def side_options(given: SideKeywords, function: Callable[..., Any]) -> SideOptions:
    """Return the options of both sides.

    Args:
        given: keywords of a function.
        function: the function.

    Raises:
        UnknownName: a keyword is not one of them.
    """
    known = (*keywords_of(function), *SideKeywords.__annotations__)
    check_options(function.__name__, given, known)
    return SideOptions(**given)


@dataclass(frozen=True, kw_only=True)
class HumanOptions:
    """Human labels to compare a judge with."""

    human: Annotated[
        str | None,
        Option(
            "Human labels: JSON Lines or CSV with the columns id, sentence, annotator, field, "
            "value; or a file of corrections."
        ),
    ] = None
    random_sample: Annotated[
        bool,
        Option(
            "Treat the human-labeled records as a random sample; of corrections, use only those "
            "drawn at random."
        ),
    ] = False
    blind_only: Annotated[
        bool,
        Option("Use only corrections made without seeing the judge's verdicts."),
    ] = False
