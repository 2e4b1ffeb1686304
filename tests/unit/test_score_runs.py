"""Runs that score: what is asked, what is stored, what is never bought twice."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler import api
from labeler.errors import FatalJudgeError, UnknownName, UsageError
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.judge import UnusableAnswer
from labeler.judges.scripted import ReplayJudge
from labeler.judges.task import JudgeReply, Task
from labeler.labels.record import LabelFailure
from labeler.plugins.scores.api import read_scores, score
from labeler.plugins.scores.collected import compare_raters
from labeler.plugins.scores.criteria import Criterion, choose_criteria, read_criteria
from labeler.plugins.scores.records import ScoreOutcome, ScoreRecord, StepsRecord
from labeler.sentences.example import Frozen
from labeler.store import MemoryStore
from labeler.store.disk import DiskStore
from support.fakes import CountingJudge, agreeable, scoring
from support.scored import ROW, criterion
from support.watching import Watch

ROWS = [{**ROW, "id": f"r{n}", "response": f"Paris. Item {n}."} for n in range(3)]


def scored(
    judge: CountingJudge | list[Any],
    asked: Criterion | list[str | Path | Criterion] | str | None = None,
    rows: Iterable[dict[str, Any]] | None = None,
    **options: Any,
) -> list[ScoreOutcome]:
    """Score rows, into a store of their own unless one is given."""
    chosen = criterion() if asked is None else asked
    given = ROWS if rows is None else rows
    judges = judge if isinstance(judge, list) else [judge]
    return list(score(given, criteria=chosen, judges=judges, **{"store": MemoryStore(), **options}))


def refuse(_: Task) -> JudgeReply[Frozen]:
    """A judge that answers nothing."""
    raise UnusableAnswer("no", reason="refusal", attempts=1, lasting=True)


def test_each_row_has_each_criterion_in_turn() -> None:
    """In input order; a row that cannot be read fails once, not once for each criterion."""
    judge, names = CountingJudge(scoring(5)), ("rubric_faithfulness", "rubric_answer_relevancy")
    bad, *done = scored(judge, ",".join(names), [{"id": "bad"}, *ROWS])
    assert (bad.kind, judge.closed) == ("failure", 1)
    found = [(o.id, o.criterion.name, o.answer.score) for o in done if isinstance(o, ScoreRecord)]
    assert found == [(f"r{n}", name, 5) for n in range(3) for name in names]


def test_more_trials_ask_for_the_missing_ones_alone() -> None:
    """Samples and repeats are trials, stored apart; a stricter threshold is no trial."""
    judge, store = CountingJudge(scoring()), MemoryStore()
    scored(judge, store=store)
    done = scored(judge, criterion(threshold=5), store=store)
    assert {o.criterion.threshold for o in done if isinstance(o, ScoreRecord)} == {5}
    assert len(judge.asked) == 3
    done = scored(judge, store=store, samples=2, repeat=2)
    assert len(judge.asked) == 3 + 9
    assert [o.signature.trial for o in done[:4] if o.signature] == [0, 1, 2, 3]
    assert {o.samples for o in done if isinstance(o, ScoreRecord)} == {2}


def test_steps_are_written_once_and_reused(tmp_path: Path) -> None:
    """Before the rows, by the judge that scores; the same text has the same, as a file's has."""
    judge, steps, store = CountingJudge(scoring()), ("Read it.", "Weigh it."), tmp_path / "s"
    scored(judge, criterion(steps=steps), store=store)
    before = len(judge.asked)
    done = scored(judge, criterion(steps=None), store=store)
    assert judge.asked[before:] == ["tone"]
    assert {o.criterion.steps for o in done if isinstance(o, ScoreRecord)} == {steps}
    again = CountingJudge(scoring())
    scored(again, criterion(name="mood", steps=None), store=store)
    assert again.asked == ["r0", "r1", "r2"]
    with DiskStore(store, create=False) as opened:
        assert sum(isinstance(record, StepsRecord) for record in opened) == 1


def test_without_steps_no_row_is_asked_about() -> None:
    """The run names the criterion; of several judges the first has cost no more than its own."""
    first, second = CountingJudge(scoring(), model="a"), CountingJudge(refuse, model="b")
    with pytest.raises(FatalJudgeError, match="criterion 'tone' has no evaluation steps"):
        scored([first, second], criterion(steps=None))
    assert (first.asked, second.asked) == (["tone"], ["tone"])


def test_a_row_that_lacks_a_part_fails_by_that_criterion_alone() -> None:
    """Its failure is signed, so that it counts there and nowhere else."""
    bare = [{**ROW, "reference": None}]
    needy = criterion(name="needy", shows=("reference",))
    first, second = scored(CountingJudge(scoring()), [criterion(), needy], bare)
    assert isinstance(first, ScoreRecord)
    assert isinstance(second, LabelFailure)
    assert (second.reason, second.key) == ("no_reference", None)
    assert second.signature is not None
    assert "needy" in str(second.signature)


def test_a_score_off_the_scale_is_a_lasting_failure() -> None:
    """As any broken contract: asked again on request."""
    store = MemoryStore()

    def answer(request: Task[Any]) -> JudgeReply[Any]:
        return scoring(9 if request.example.id == "r0" else 4)(request)

    failure, _ = scored(CountingJudge(answer), rows=ROWS[:2], store=store)
    assert isinstance(failure, LabelFailure)
    assert (failure.reason, failure.lasting) == ("contract", True)
    assert failure.violations[0].kind == "score_outside_scale"
    quiet, loud = CountingJudge(scoring()), CountingJudge(scoring())
    assert scored(quiet, rows=ROWS[:1], store=store)[0].kind == "failure"
    assert scored(loud, rows=ROWS[:1], store=store, retry_failed=True)[0].kind == "score"
    assert (quiet.asked, loud.asked) == ([], ["r0"])


def test_labels_and_scores_share_a_store(tmp_path: Path) -> None:
    """Each reader sees its own; an export carries all, and so does an import."""
    folder = tmp_path / "s"
    api.label(ROWS, judge=CountingJudge(agreeable), store=folder)
    scored(CountingJudge(scoring()), criterion(steps=None), store=folder)
    kinds = [outcome.kind for outcome in api.stored_outcomes(folder)]
    assert sorted(kinds) == ["label"] * 3 + ["score"] * 3 + ["steps"]
    assert {outcome.kind for outcome in api.read_labels(folder)} == {"label"}
    assert {outcome.kind for outcome in read_scores(folder)} == {"score"}
    api.write_labels(api.stored_outcomes(folder), tmp_path / "all.jsonl")
    imported = labeler.store.import_labels(
        api.stored_outcomes(tmp_path / "all.jsonl"), tmp_path / "other"
    )
    assert (imported.new, imported.present, imported.differing) == (7, 0, [])
    assert list(api.stored_outcomes(tmp_path / "other")) == list(api.stored_outcomes(folder))


STEPLESS = criterion(steps=None)
NEEDY = {
    "asked": [criterion(), criterion(name="b", shows=("reference",))],
    "rows": [{**ROW, "reference": None}],
}
WRONG: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "embedded": ([EmbeddedJudge()], {}, "can label but not score.*use judge openai model"),
    "embedded, steps": ([EmbeddedJudge()], {"asked": STEPLESS}, "can label but not score"),
    "replay": ([ReplayJudge([], name="none")], {}, "can label but not score"),
    "no judge": ([], {}, "need a judge"),
    # A judge agrees with itself by the store; rows may lack what a criterion needs.
    "one judge twice": ([CountingJudge(), CountingJudge()], NEEDY, "twice"),
    "no samples": ([CountingJudge()], {"samples": 0}, "must be a whole number, 1 or more"),
    "no repeats": ([CountingJudge()], {"repeat": 0}, "must be a whole number, 1 or more"),
}


@pytest.mark.parametrize(("judges", "options", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_refused_before_any_row_is_asked_about(
    judges: list[Any], options: dict[str, Any], message: str
) -> None:
    """Nothing is stored."""
    store = MemoryStore()
    with pytest.raises(UsageError, match=message):
        scored(judges, store=store, **options)
    assert len(store) == 0
    assert not any(judge.asked for judge in judges if isinstance(judge, CountingJudge))


# Several judges


def both() -> list[CountingJudge]:
    """Two judges that do not agree."""
    return [CountingJudge(scoring(5), model="a"), CountingJudge(scoring(3), model="b")]


def test_all_judges_score_a_row_before_the_next() -> None:
    """An iterator of rows is read once; each row has one event, and the run one end."""
    judges, watch = both(), Watch()
    rows = iter([{"id": "bad"}, *ROWS])
    done = scored(judges, rows=rows, on_event=watch)
    assert (done[0].kind, watch.finished) == ("failure", 1)
    models = [(o.id, o.signature.model) for o in done if o.signature]
    assert models == [(f"r{n}", model) for n in range(3) for model in "ab"]
    assert watch.results == [outcome.id for outcome in done]
    assert [len(judge.asked) for judge in judges] == [3, 3]
    (panel,) = compare_raters(done)
    assert [rater.mean for rater in panel.raters] == [5.0, 3.0]


def test_each_judge_finds_its_own_scores() -> None:
    """A judge that comes later pays for itself alone."""
    store, judges, watch = MemoryStore(), both(), Watch()
    alone = scored(judges[0], store=store)
    assert scored(judges, store=store, on_event=watch)[::2] == alone
    assert [len(judge.asked) for judge in judges] == [3, 3]
    assert watch.total == 6


def test_scores_are_one_object_with_table_and_gates(tmp_path: Path) -> None:
    """Like labels: metrics by criterion, means, gates, a data frame, a file."""
    found = score(ROWS, criteria=criterion(), judge=CountingJudge(scoring()), store=MemoryStore())
    assert found.metrics("tone")[0]["tone"] == 4
    assert found.summary()["tone"].mean == 4.0
    assert found.check({"tone": 4}, against=found, max_drop=1).passed
    assert found.to_polars("tone")["tone"].to_list() == [4.0] * 3
    path = found.save(tmp_path / "scores.jsonl")
    assert list(read_scores(path)) == found
    assert [row["tone"].value for row in labeler.metrics(path, "tone")] == [4.0] * 3
    means = [(row.metric.id, row.mean) for row in labeler.summary(path)]
    assert means == [("tone", 4.0), ("tone:pass", 1.0)]
    assert "3 scores by" in repr(found)
    with pytest.raises(UnknownName, match=r"metric .tome.; .*of these records: tone, tone:pass"):
        found.metrics("tome")
    assert repr(found[:0]) == "0 scores, 0 failed"
    assert found[:0].to_polars().columns == ["id", "failed"]


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


def test_a_file_says_all_of_a_criterion_or_has_defaults(tmp_path: Path) -> None:
    """One to five, a pass from the middle on, and steps that the judge is to write."""
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
    short = '[[criterion]]\nname = "tone"\ncriteria = "Kind?"\nshows = ["response"]\n'
    (found,) = read_criteria(written(tmp_path, short))
    assert (found.low, found.high, found.threshold, found.steps) == (1, 5, 3, None)
    (none,) = read_criteria(written(tmp_path, f"\ufeff{short}steps = []\nhigh = 4\n"))
    assert (none.steps, none.threshold) == ((), 2.5)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "tone"', 'name = "My Tone"', "name: .*'My Tone'"),
        ('name = "tone"', 'name = "rubric_faithfulness"', "name belongs to a criterion that ships"),
        ('name = "tone"', "", "name: Field required"),
        ('["Read it.", "Weigh it."]', '[" "]', "steps.0: "),
        ('"question", "response"', '"answer"', "shows.0: .*'documents'.*; got 'answer'"),
        ("low = 0", "low = true", "low: .*integer; got True"),
        ('0 = "Rude."', 'low = "Rude."', "anchors.low.*: .*integer"),
        ('name = "tone"', 'name = ["tone"]', "name: .*string"),
        ("high = 10", f"high = 1{'0' * 400}", "low must be below high"),
        ('0 = "Rude."', '010 = "Rude."', "anchors describe a score twice"),
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"criteria stand in tables \[\[criterion\]\], one at least"),
        (b"[criterion]\nname = 't'\n", r"criteria stand in tables \[\[criterion\]\]"),
        (b"criterion = [1]\n", r"criterion 1 is not a table"),
        (TONE.encode() + b"[more]\n", "got also 'more'"),
        (b"\xff\xfe", "cannot be read as TOML"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """With the form that it must have."""
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_criteria(tmp_path / "mine.toml")


def test_names_files_and_criteria_may_stand_together(tmp_path: Path) -> None:
    """In one text or a list, in order, each name once; an unknown name lists what there is."""
    path = written(tmp_path, TONE)
    names = f"rubric_faithfulness, {path}"
    assert [one.name for one in choose_criteria(names)] == ["rubric_faithfulness", "tone"]
    both = choose_criteria([path, criterion(name="other"), "rubric_context_recall"])
    assert [one.name for one in both] == ["tone", "other", "rubric_context_recall"]
    with pytest.raises(UsageError, match="criterion 'tone' is given twice"):
        choose_criteria([written(tmp_path, TONE), written(tmp_path, TONE, "again.toml")])
    with pytest.raises(UnknownName, match=r"'rubric_x'; .*FILE.toml, .*rubric_faithfulness"):
        choose_criteria("rubric_x")
    for taken in ("adherence", "noncommittal", "all", "id", "label"):
        with pytest.raises(UsageError, match=f"'{taken}' has the name of another metric"):
            choose_criteria(criterion(name=taken))
    with pytest.raises(UsageError, match=r"no criterion is given; have: rubric_faithfulness, "):
        choose_criteria(" , ")
