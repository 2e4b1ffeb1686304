from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labeler.data.corrections import Correction, judgment_of
from labeler.data.corrections.file import current
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord
from labeler.plugins.label_studio import labeling_configuration, task_of
from labeler.plugins.label_studio.importing import Imported, import_answers, read_tasks
from support.judged import EARLY, LATE, correction, judgment
from support.labeled import record

ODD = "<img src=x onerror=alert(1)> & \x1b[31m \U0001f600 \x00"
RECORD = record(
    documents=[["It is high.", ODD], ["It rains."]],
    relevant=["0a"],
    utilized=["0a", "1a"],
    support={"a": ["0b", "1a"], "b": ["general"], "c": []},
)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
Change = Callable[[dict[str, Any]], object]
"""Changes an answered task."""


def task(*, blind: bool = False, of: LabelRecord = RECORD) -> dict[str, Any]:
    """A task, as it comes out of its file."""
    value: dict[str, Any] = json.loads(json.dumps(task_of(of, "random", blind=blind)))
    return value


def answered(
    by: Any = 1,
    at: str = EARLY,
    *,
    given: dict[str, Any] | None = None,
    change: Change | None = None,
) -> dict[str, Any]:
    """A task whose suggestion a person took as it is, or with something changed."""
    done = deepcopy(given or task())
    (prediction,) = done["predictions"]
    annotation = {"completed_by": by, "updated_at": at}
    done["annotations"] = [annotation | {"result": prediction["result"]}]
    if change is not None:
        change(done)
    return done


def imported(
    *tasks: dict[str, Any],
    events: Sequence[Correction] = (),
    records: Sequence[LabelRecord] = (RECORD,),
) -> Imported:
    """What becomes of an exported file."""
    return import_answers(list(tasks), records, events, now=lambda: NOW)


def only(found: Imported) -> Correction:
    """The one new correction."""
    (made,) = found.added
    return made


def results(done: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the only annotation."""
    found: list[dict[str, Any]] = done["annotations"][0]["result"]
    return found


def result(done: dict[str, Any], name: str) -> dict[str, Any]:
    """One result of the only annotation, by its id."""
    (found,) = [r for r in results(done) if r.get("id") == name]
    return found


def valued(name: str, **value: Any) -> Change:
    """Change parts of the value of a result."""
    return lambda done: result(done, name)["value"].update(value)


def annotated(**fields: Any) -> Change:
    """Change fields of the annotation."""
    return lambda done: done["annotations"][0].update(fields)


def commented(text: Any) -> Change:
    """Add a comment."""
    comment = {"from_name": "comment", "type": "textarea", "value": {"text": text}}
    return lambda done: results(done).append(comment)


def test_a_suggestion_that_is_taken_as_it_is_agrees_once() -> None:
    """Key by key, with strings that Label Studio cannot show; the same file adds nothing."""
    made = only(imported(answered()))
    assert made.judgment == judgment_of(RECORD.label)
    assert (made.key, made.id, made.source) == (RECORD.key, RECORD.id, "label-studio")
    assert (made.opinion, made.queue, made.blind) == ("agree", "random", False)
    again = imported(answered(), events=[made])
    assert (again.added, again.known) == ([], 1)


def test_turns_and_tool_outputs_stand_above_the_question_and_keep_their_support() -> None:
    """Who takes a suggestion as it is also takes support that Label Studio cannot draw."""
    talked = record(turns=1, support={"a": ["t0a"], "b": ["h0b", "0a"]})
    given = task(of=talked)
    lines = ["[h0a] user: Hello.", "[h0b] user: Why?", "[t0a] tool: 18"]
    assert given["data"]["question"].splitlines()[:3] == lines
    found = only(imported(answered(given=given), records=[talked]))
    assert found.judgment == judgment_of(talked.label)


def test_a_blind_task_shows_nothing_of_the_label() -> None:
    """Neither suggestion nor explanation; and it is known when it comes back."""
    given = task(blind=True)
    assert given.keys() == {"data"}
    assert "because" not in json.dumps(given)
    assert only(imported(answered() | given)).blind is True


def test_texts_are_shown_as_texts() -> None:
    """What would be obeyed is written out, as no markup; a region counts an emoji as two."""
    shown = json.dumps(task())
    assert "<img src=x onerror=alert(1)> &" in shown
    assert "<U+001B>[31m" in shown
    assert "\\u0000" not in shown
    end = result(answered(), "d-0b")["value"]["endOffset"]
    assert end == len(task()["data"]["documents"][1]["text"]) + 1


def test_what_was_withdrawn_stays_so() -> None:
    """The same file again does not bring it back."""
    said = only(imported(answered()))
    elsewhere = correction(RECORD, by=said.annotator, withdrawn=True, at=LATE)
    facts = {"withdrawn": True, "judgment": None, "at": LATE}
    in_review_app = said.model_copy(update=facts)  # which keeps what it takes back as it was
    for back in (elsewhere, in_review_app):
        assert imported(answered(), events=[said, back]).added == []


def test_several_people_answer_one_task() -> None:
    """Each under an address or a number."""
    done = answered(1)
    done["annotations"] += answered(2)["annotations"]
    assert [made.annotator for made in imported(done).added] == ["user 1", "user 2"]
    for by, name in (({"email": "a@b.c", "id": 3}, "a@b.c"), ({"id": 3}, "user 3")):
        assert only(imported(answered(by))).annotator == name


def test_what_was_not_answered_or_is_of_other_labels_is_told() -> None:
    """A task without an answer is counted; marks in other sentences say nothing of these."""
    for unanswered in (task(), answered(change=annotated(was_cancelled=True))):
        found = imported(unanswered)
        assert (found.added, found.unanswered, found.ignored) == ([], 1, [])
    found = imported(answered(), records=[record(documents=[3])])
    assert found.ignored == ["task 1: speaks of a label that is not there"]
    done = answered()
    done["data"]["response"][0]["text"] += "!"
    assert imported(done).ignored[0].endswith("its sentences differ from the label's")


@pytest.mark.parametrize("exported", [{}, None, "text", [1], [{}], [{"data": 3, "fields": 3}]])
def test_what_is_no_export_is_refused(exported: object, tmp_path: Path) -> None:
    """With its name, and the export that is wanted."""
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(exported))
    with pytest.raises(UsageError, match=r"answers.json: .*: export from Label Studio as JSON"):
        read_tasks(str(path))


def test_the_labeling_configuration_is_xml_without_html() -> None:
    """Nothing in it makes Label Studio read text as HTML."""
    tags = {element.tag for element in ET.fromstring(labeling_configuration()).iter()}  # noqa: S314 - it is our own
    assert "HyperText" not in tags
    assert {"Paragraphs", "ParagraphLabels", "Choices", "Text", "TextArea"} <= tags


def relate(done: dict[str, Any]) -> None:
    """Draw another relation, the other way round."""
    found = [one for one in results(done) if one["type"] != "relation"]
    drawn = {"type": "relation", "from_id": "d-0a", "to_id": "r-a", "direction": "left"}
    results(done)[:] = [*found, drawn]


REDRAWN: dict[str, tuple[Change, dict[str, object]]] = {
    "a mark is taken away; of a region's labels, each counts for itself": (
        valued("d-0a", paragraphlabels=["utilized"]),
        {"relevant": ()},
    ),
    "a region over several paragraphs marks each that it touches": (
        valued("d-0a", start="0", startOffset=3, end="2", endOffset=0),
        {"relevant": ("0a", "0b")},
    ),
    "relations of a sentence that is no longer supported say nothing": (
        lambda done: results(done).remove(result(done, "r-a")),
        {"support": {"b": ("general",)}},
    ),
    "a relation says what supports what in either direction": (
        relate,
        {"support": {"a": ("0a",), "b": ("general",)}},
    ),
}


@pytest.mark.parametrize(("change", "expected"), REDRAWN.values(), ids=REDRAWN.keys())
def test_what_people_draw_is_their_judgment(change: Change, expected: dict[str, object]) -> None:
    """They draw as they like."""
    made = only(imported(answered(change=change)))
    assert made.opinion == "disagree"
    assert {name: getattr(made.judgment, name) for name in expected} == expected


def test_a_comment_is_kept_as_the_reason() -> None:
    """Who is unsure judges nothing."""
    assert only(imported(answered(change=commented(["one", "two"])))).comment == "one\ntwo"
    unsure = only(imported(answered(change=valued("overall", choices=["unsure"]))))
    assert (unsure.opinion, unsure.judgment) == ("unsure", None)


def test_a_later_annotation_is_new_and_an_earlier_one_is_not() -> None:
    """By the tool's own clock; an answer in the review app meanwhile is not overruled either."""
    first, changed = answered(), answered(at=LATE, change=valued("overall", choices=["supported"]))
    old, new = imported(first), imported(changed)
    assert imported(changed, events=old.added).added == new.added
    again = imported(first, events=[*old.added, *new.added])
    assert (again.added, again.known) == ([], 1)
    reviewed = correction(RECORD, judgment(), by="user 1", at=LATE)
    assert current([reviewed, *imported(first, events=[reviewed]).added]) == (reviewed,)


STRANGE: dict[str, Change] = {
    "no choice": lambda done: result(done, "overall").update(value={}),
    "a choice that is none": valued("overall", choices=[{}]),
    "a region beyond the end": valued("d-0a", end="99"),
    "a region from the end": valued("d-0a", start=2, end=0),
    "a region without a place": valued("d-0a", start=None),
    "a huge number": valued("d-0a", end="9" * 5000),
    "another script's digit": valued("d-0a", start="²"),
    "a mark of another name": valued("d-0a", paragraphlabels=["Relevant"]),
    "a control of another name": lambda done: result(done, "d-0a").update(from_name="marks"),
    "nobody": annotated(completed_by=None),
    "a name of control characters": annotated(completed_by={"email": "a\x00b"}),
    "a huge comment": commented("x" * 30_000),
    "a surrogate": commented(["\ud800"]),
    "no result": annotated(result="none"),
    "no annotation": lambda done: done.update(annotations=[None]),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_annotation_is_left_out_and_told(change: Change) -> None:
    """The others are taken."""
    found = imported(answered(change=change), answered(2))
    assert only(found).annotator == "user 2"
    (why,) = found.ignored
    assert why.startswith("task 1: ")
    assert len(why) < 300


def test_unknown_controls_and_fields_are_passed_over() -> None:
    """A team may ask more than we do."""
    more: list[Any] = [
        {"from_name": "tone", "type": "choices", "value": {"choices": ["kind"]}},
        {"from_name": ["a list"], "type": "paragraphlabels"},
        {"type": "relation", "from_id": {}, "to_id": "r-a"},
        7,
    ]
    found = only(imported(answered(change=lambda done: results(done).extend(more))))
    assert found.opinion == "agree"
