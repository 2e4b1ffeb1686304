"""Criteria that ship, and those that users write down."""

from __future__ import annotations

from pathlib import Path

import pytest

from labeler.errors import UnknownName, UsageError
from labeler.plugins.scores.criteria_files import choose_criteria, read_criteria
from labeler.plugins.scores.records import CRITERIA
from support.scored import criterion

TONE = """
[[criterion]]
name = "tone"
criteria = "Is the response kind?"
steps = ["Read it.", "Weigh it."]
shows = ["question", "response"]
low = 0
high = 10
threshold = 6.5
[criterion.anchors]
10 = "Warm throughout."
0 = "Rude."
"""


def written(folder: Path, text: str, name: str = "mine.toml") -> Path:
    """A file of criteria."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_all_of_a_criterion(tmp_path: Path) -> None:
    """Every field, as it is written."""
    assert read_criteria(written(tmp_path, TONE)) == [
        criterion(
            criteria="Is the response kind?",
            steps=("Read it.", "Weigh it."),
            low=0,
            high=10,
            threshold=6.5,
            anchors={0: "Rude.", 10: "Warm throughout."},
        )
    ]


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    """One to five, a pass from the middle on, and steps that the judge is to write."""
    short = '[[criterion]]\nname = "tone"\ncriteria = "Kind?"\nshows = ["response"]\n'
    (found,) = read_criteria(written(tmp_path, short))
    assert (found.low, found.high, found.threshold, found.steps) == (1, 5, 3, None)
    (none,) = read_criteria(written(tmp_path, short + "steps = []\n"))
    assert none.steps == ()


def test_the_middle_of_an_even_scale_is_a_half(tmp_path: Path) -> None:
    """1 to 4 passes from 2.5 on."""
    text = '[[criterion]]\nname = "t"\ncriteria = "x"\nshows = ["response"]\nhigh = 4\n'
    assert read_criteria(written(tmp_path, text))[0].threshold == 2.5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "tone"', 'name = "My Tone"', "name: .*'My Tone'"),
        ('name = "tone"', 'name = "rubric_faithfulness"', "name belongs to a criterion that ships"),
        ('name = "tone"', "", "name: Field required"),
        ('criteria = "Is the response kind?"', "criteria = 3", "criteria: .* string; got 3"),
        ('["Read it.", "Weigh it."]', '"Read it."', "steps: .*'Read it.'"),
        ('["Read it.", "Weigh it."]', '[" "]', "steps.0: "),
        ('"question", "response"', '"answer"', "shows.0: .*'documents'.*; got 'answer'"),
        ('"question", "response"', '"question", "question"', "shows must .* none twice"),
        ('shows = ["question", "response"]', "", "shows: Field required"),
        ('shows = ["question", "response"]', "shows = []", "shows must name one part"),
        ("low = 0", "low = true", "low: .*integer; got True"),
        ("high = 10", "high = 0", "low must be below high, by 100 at most"),
        ("high = 10", "high = 101", "low must be below high, by 100 at most"),
        ("threshold = 6.5", "threshold = 11", "threshold must lie on the scale"),
        ("threshold = 6.5", "threshold = nan", "threshold must lie on the scale"),
        ('0 = "Rude."', '11 = "Rude."', "anchors are for scores of the scale"),
        ('0 = "Rude."', 'low = "Rude."', "anchors.low.*: .*integer"),
        ('0 = "Rude."', "0 = 1", "anchors.0: .*string; got 1"),
        ("low = 0", "loww = 0", "loww: .*; fields are name, criteria, steps"),
    ],
)
def test_an_error_names_file_criterion_field_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """So that the line can be found and mended."""
    assert old in TONE
    path = written(tmp_path, TONE.replace(old, new))
    with pytest.raises(UsageError, match=rf"mine\.toml: criterion 1 \(.*\): {said}"):
        read_criteria(path)


def test_a_criterion_needs_criteria_or_steps(tmp_path: Path) -> None:
    """One of the two says what is judged."""
    path = written(tmp_path, '[[criterion]]\nname = "t"\nshows = ["response"]\nsteps = []\n')
    with pytest.raises(UsageError, match=r"criterion 1 \(t\): criteria or steps are needed"):
        read_criteria(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"criteria stand in tables \[\[criterion\]\], one at least"),
        ("[criterion]\nname = 't'\n", r"criteria stand in tables \[\[criterion\]\]"),
        ("criterion = [1]\n", r"criterion 1 is not a table"),
        (TONE + "[more]\n", "got also 'more'"),
        ("a = ", "is not a TOML file"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With the form that it must have."""
    with pytest.raises(UsageError, match=said):
        read_criteria(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And bytes that are no text."""
    with pytest.raises(UsageError, match=r"cannot read criteria from .*none\.toml"):
        read_criteria(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not a TOML file"):
        read_criteria(tmp_path / "bad.toml")


def test_names_files_and_criteria_may_stand_together(tmp_path: Path) -> None:
    """Parted by commas in one text, or in a list; the order is kept."""
    path = written(tmp_path, TONE)
    names = f"rubric_faithfulness, {path}"
    assert [one.name for one in choose_criteria(names)] == ["rubric_faithfulness", "tone"]
    both = choose_criteria([path, criterion(name="other"), "rubric_context_recall"])
    assert [one.name for one in both] == ["tone", "other", "rubric_context_recall"]


def test_a_name_is_given_once(tmp_path: Path) -> None:
    """Two criteria of one name would be one metric."""
    with pytest.raises(UsageError, match="criterion 'tone' is given twice"):
        choose_criteria([written(tmp_path, TONE), written(tmp_path, TONE, "again.toml")])


def test_an_unknown_name_lists_what_there_is() -> None:
    """As everywhere."""
    with pytest.raises(UnknownName, match=r"unknown criterion 'rubric_x'; .*rubric_faithfulness"):
        choose_criteria("rubric_x")
    with pytest.raises(UsageError, match=r"no criterion is given; have: rubric_faithfulness, "):
        choose_criteria(" , ")


@pytest.mark.parametrize("name", CRITERIA)
def test_every_rubric_that_ships_has_its_anchors(name: str) -> None:
    """Five descriptions, a pass from 3 on, and no steps to be bought."""
    rubric = CRITERIA[name]
    assert (rubric.name, list(rubric.scale)) == (name, sorted(rubric.anchors))
    assert (rubric.threshold, rubric.steps) == (3, ())
