"""Tasks for Label Studio, and its exports: our own form of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labeler.data.corrections import Correction, Judgment, judgment_of
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


def task(*, blind: bool = False, of: LabelRecord = RECORD) -> dict[str, Any]:
    """A task, as it comes out of its file."""
    made = task_of(of, "random", blind=blind)
    value: dict[str, Any] = json.loads(json.dumps(made))
    return value


def answered(given: dict[str, Any], by: Any = None, at: str = EARLY) -> dict[str, Any]:
    """A task whose suggestion a person took as it is."""
    done = deepcopy(given)
    (prediction,) = done["predictions"]
    annotation = {"completed_by": 1 if by is None else by, "updated_at": at}
    done["annotations"] = [annotation | {"result": prediction["result"]}]
    return done


def imported(
    *tasks: dict[str, Any],
    events: Sequence[Correction] = (),
    records: Sequence[LabelRecord] = (RECORD,),
    **more: Any,
) -> Imported:
    """What becomes of an exported file."""
    return import_answers(list(tasks), records, events, now=lambda: NOW, **more)


def result(done: dict[str, Any], name: str) -> dict[str, Any]:
    """One result of the only annotation, by its id."""
    found: dict[str, Any]
    (found,) = [r for r in done["annotations"][0]["result"] if r.get("id") == name]
    return found


# -- there and back -------------------------------------------------------------------------------


def test_a_suggestion_that_is_taken_as_it_is_agrees_once() -> None:
    """Key by key, with strings that Label Studio cannot show; the same file adds nothing."""
    (made,) = imported(answered(task())).added
    assert made.judgment == judgment_of(RECORD.label)
    assert (made.key, made.id) == (RECORD.key, RECORD.id)
    assert (made.opinion, made.queue, made.blind) == ("agree", "random", False)
    assert made.source == "label-studio"
    done = answered(task())
    first = imported(done)
    again = imported(done, events=first.added)
    assert (len(first.added), len(again.added), again.known) == (1, 0, 1)


def test_turns_and_tool_outputs_stand_above_the_question_and_keep_their_support() -> None:
    """Who takes a suggestion as it is also takes support that Label Studio cannot draw."""
    talked = record(turns=1, support={"a": ["t0a"], "b": ["h0b", "0a"]})
    given = task(of=talked)
    question = given["data"]["question"]
    lines = ["[h0a] user: Hello.", "[h0b] user: Why?", "[t0a] tool: 18"]
    assert question.splitlines()[:3] == lines
    (found,) = imported(answered(given), records=[talked]).added
    assert found.judgment == judgment_of(talked.label)


def test_a_blind_task_shows_nothing_of_the_label() -> None:
    """Neither suggestion nor explanation; and it is known when it comes back."""
    given = task(blind=True)
    assert not given.get("predictions")
    assert not given.get("suggestions")
    assert "because" not in json.dumps(given)
    shown = answered(task())
    shown |= {name: given[name] for name in ("data", "metadata") if name in given}
    assert imported(shown).added[0].blind is True


def test_texts_are_shown_as_texts() -> None:
    """What a terminal or a browser would obey is written out; no markup is made of it."""
    shown = json.dumps(task())
    assert "<img src=x onerror=alert(1)> &" in shown
    assert "<U+001B>[31m" in shown
    assert "\\u0000" not in shown


def test_what_was_withdrawn_stays_so() -> None:
    """The same file again does not bring it back."""
    done = answered(task())
    (said,) = imported(done).added
    elsewhere = correction(RECORD, by=said.annotator, withdrawn=True, at=LATE)
    facts = {"withdrawn": True, "judgment": None, "at": LATE}
    in_review_app = said.model_copy(update=facts)  # which keeps what it takes back as it was
    for back in (elsewhere, in_review_app):
        assert imported(done, events=[said, back]).added == []


def test_several_people_answer_one_task() -> None:
    """Each under a name; these can be other ones here."""
    done, other = (answered(task(), by=by) for by in (1, 2))
    done["annotations"] += other["annotations"]
    found = imported(done, names={"user 1": "ann"})
    assert [made.annotator for made in found.added] == ["ann", "user 2"]


def test_what_was_not_answered_or_is_of_other_labels_is_told() -> None:
    """A task without an answer is counted; marks in other sentences say nothing of these."""
    found = imported(task())
    assert (found.added, found.unanswered, found.ignored) == ([], 1, [])
    found = imported(answered(task()), records=[record(documents=[3])])
    assert found.ignored == ["task 1: speaks of a label that is not there"]
    done = answered(task())
    done["data"]["response"][0]["text"] += "!"
    assert imported(done).ignored[0].endswith("its sentences are not those of the label")


@pytest.mark.parametrize("exported", [{}, None, "text", [1], [{}], [{"data": 3, "fields": 3}]])
def test_what_is_no_export_is_refused(exported: object, tmp_path: Path) -> None:
    """With its name, and the export that is wanted."""
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(exported))
    with pytest.raises(UsageError, match=r"answers.json: .*: export from Label Studio as JSON"):
        read_tasks(str(path))


# -- Label Studio ---------------------------------------------------------------------------------


def studio(change: Callable[[dict[str, Any]], object]) -> Imported:
    """What becomes of an answered task of Label Studio with something changed."""
    done = answered(task())
    change(done)
    return imported(done)


def studio_judgment(change: Callable[[dict[str, Any]], object]) -> Judgment:
    """The judgment of it."""
    (made,) = studio(change).added
    assert made.opinion == "disagree"
    assert made.judgment is not None
    return made.judgment


def test_the_labeling_configuration_is_xml_without_html() -> None:
    """Nothing in it makes Label Studio read text as HTML."""
    tags = {element.tag for element in ET.fromstring(labeling_configuration()).iter()}  # noqa: S314 - it is our own
    assert "HyperText" not in tags
    assert {"Paragraphs", "ParagraphLabels", "Choices", "Text", "TextArea"} <= tags


def test_a_region_counts_in_utf_16_as_browsers_do() -> None:
    """An emoji is two."""
    (prediction,) = task()["predictions"]
    ends = {r["id"]: r["value"].get("endOffset") for r in prediction["result"] if "id" in r}
    shown = task()["data"]["documents"][1]["text"]
    assert ends["d-0b"] == len(shown) + 1


def results(done: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the only annotation."""
    found: list[dict[str, Any]] = done["annotations"][0]["result"]
    return found


def relate(done: dict[str, Any]) -> None:
    """Draw another relation, the other way round."""
    found = [one for one in results(done) if one["type"] != "relation"]
    drawn = {"type": "relation", "from_id": "d-0a", "to_id": "r-a", "direction": "left"}
    results(done)[:] = [*found, drawn]


REDRAWN: dict[str, tuple[Callable[[dict[str, Any]], object], dict[str, object]]] = {
    "a mark is taken away; of a region's labels, each counts for itself": (
        lambda done: result(done, "d-0a")["value"].update(paragraphlabels=["utilized"]),
        {"relevant": ()},
    ),
    "a region over several paragraphs marks each that it touches": (
        lambda done: result(done, "d-0a")["value"].update(
            start="0", startOffset=3, end="2", endOffset=0
        ),
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
def test_what_people_draw_is_their_judgment(
    change: Callable[[dict[str, Any]], object], expected: dict[str, object]
) -> None:
    """They draw as they like."""
    found = studio_judgment(change)
    assert {name: getattr(found, name) for name in expected} == expected


def test_a_comment_is_kept_as_the_reason() -> None:
    """Who is unsure judges nothing, and a cancelled annotation was skipped."""
    text = {"from_name": "comment", "type": "textarea", "value": {"text": ["one", "two"]}}
    assert studio(lambda done: results(done).append(text)).added[0].comment == "one\ntwo"
    unsure = studio(lambda done: result(done, "overall")["value"].update(choices=["unsure"]))
    assert [(made.opinion, made.judgment) for made in unsure.added] == [("unsure", None)]
    found = studio(lambda done: done["annotations"][0].update(was_cancelled=True))
    assert (found.added, found.unanswered) == ([], 1)


def test_people_are_named_by_their_address_where_it_is_there() -> None:
    """Else by their number."""
    found = studio(
        lambda done: done["annotations"][0].update(completed_by={"email": "a@b.c", "id": 3})
    )
    assert found.added[0].annotator == "a@b.c"
    found = studio(lambda done: done["annotations"][0].update(completed_by={"id": 3}))
    assert found.added[0].annotator == "user 3"


def test_a_later_annotation_is_new_and_an_earlier_one_is_not() -> None:
    """By the tool's own clock; an answer in the review app meanwhile is not overruled either."""
    first, changed = (answered(task(), at=at) for at in (EARLY, LATE))
    result(changed, "overall")["value"]["choices"] = ["supported"]
    old, new = imported(first), imported(changed)
    assert imported(changed, events=old.added).added == new.added
    again = imported(first, events=[*old.added, *new.added])
    assert (again.added, again.known) == ([], 1)
    reviewed = correction(RECORD, judgment(), by="user 1", at=LATE)
    assert current([reviewed, *imported(first, events=[reviewed]).added]) == (reviewed,)


STRANGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no choice": lambda done: result(done, "overall").update(value={}),
    "two choices": lambda done: result(done, "overall").update(
        value={"choices": ["supported", "unsure"]}
    ),
    "a choice that is none": lambda done: result(done, "overall").update(value={"choices": [{}]}),
    "a region beyond the end": lambda done: result(done, "d-0a")["value"].update(end="99"),
    "a region from the end": lambda done: result(done, "d-0a")["value"].update(start=2, end=0),
    "a region without a place": lambda done: result(done, "d-0a")["value"].pop("start"),
    "a huge number": lambda done: result(done, "d-0a")["value"].update(end="9" * 5000),
    "another script's digit": lambda done: result(done, "d-0a")["value"].update(start="²"),
    "a path for a place": lambda done: result(done, "d-0a")["value"].update(start="/div[1]"),
    "a mark of another name": lambda done: result(done, "d-0a")["value"].update(
        paragraphlabels=["Relevant"]
    ),
    "a control of another name": lambda done: result(done, "d-0a").update(from_name="marks"),
    "nobody": lambda done: done["annotations"][0].pop("completed_by"),
    "a list for a person": lambda done: done["annotations"][0].update(completed_by=[1]),
    "a name of control characters": lambda done: done["annotations"][0].update(
        completed_by={"email": "a\x00b"}
    ),
    "a huge comment": lambda done: done["annotations"][0]["result"].append(
        {"from_name": "comment", "value": {"text": "x" * 30_000}}
    ),
    "a surrogate": lambda done: done["annotations"][0]["result"].append(
        {"from_name": "comment", "value": {"text": ["\ud800"]}}
    ),
    "no result": lambda done: done["annotations"][0].update(result="none"),
    "no annotation": lambda done: done.update(annotations=[None]),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_annotation_is_left_out_and_told(
    change: Callable[[dict[str, Any]], object],
) -> None:
    """The others are taken."""
    bad = answered(task())
    change(bad)
    good = answered(task(), by=2)
    found = imported(bad, good)
    assert [made.annotator for made in found.added] == ["user 2"]
    assert len(found.ignored) == 1
    assert found.ignored[0].startswith("task 1: ")
    assert len(found.ignored[0]) < 300


def test_unknown_controls_and_fields_are_passed_over() -> None:
    """A team may ask more than we do."""
    more: list[Any] = [
        {"from_name": "tone", "type": "choices", "value": {"choices": ["kind"]}},
        {"from_name": ["a list"], "type": "paragraphlabels"},
        {"type": "relation", "from_id": {}, "to_id": "r-a"},
        7,
    ]
    assert studio(lambda done: results(done).extend(more)).added[0].opinion == "agree"
