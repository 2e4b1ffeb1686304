from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import labeler
from labeler.errors import UnknownName, UsageError
from labeler.labels.answering import RunCost
from labeler.labels.record import LabelFailure, LabelRecord, Usage
from labeler.sentences.characters import visible
from support.labeled import record, relabeled
from support.rows import write
from support.scored import record as score_record

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
HOSTILE = "\u202e\x1b[31m<img src=x onerror=alert(1)>\n" + "x" * 5_000


def labeled(rows: Any = EXAMPLES, **options: Any) -> labeler.Labels:
    """Labels of the embedded judge, kept nowhere else."""
    return labeler.label(rows, judge="embedded", store=labeler.MemoryStore(), **options)


@pytest.fixture(scope="module")
def labels() -> labeler.Labels:
    """Those of the examples."""
    return labeled()


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Rows of which each says something else."""
    made = []
    for n in range(count):
        texts = {"documents": [f"Item {n} is a lamp."], "response": f"Item {n} is a lamp."}
        made.append({"id": f"r{n}", "question": f"What is item {n}?", **texts, **changes})
    return made


def test_labels_are_a_list_of_outcomes(labels: labeler.Labels) -> None:
    """Whatever treats the list of older versions as a list goes on working."""
    records = list(labels)
    assert labels == records == labels != records[1:]
    assert (len(labels), labels[0], labels[-1]) == (14, records[0], records[-1])
    assert labels[2:4] == records[2:4]
    assert isinstance(labels[2:4], labeler.Labels)
    assert [*labels, *labels] == labels + labels == records + labels
    assert records[3] in labels
    assert labels.index(records[3]) == 3
    assert labels.index("dome-timeout") == labels.index(labels["dome-timeout"])
    with pytest.raises(TypeError):  # its letters are not labels
        labels + "more.jsonl"  # type: ignore[operator]


def test_an_id_gives_one_outcome(labels: labeler.Labels) -> None:
    """An unknown one is named with near ones, and one used twice with its positions."""
    assert labels["dome-timeout"].id == "dome-timeout"
    with pytest.raises(UnknownName, match="did you mean 'dome-timeout'"):
        labels["dome-timeuot"]
    says = r"2 records have the id 'dome-timeout', at positions 8, 22"
    with pytest.raises(UsageError, match=says):
        (labels + labels)["dome-timeout"]
    with pytest.raises(IndexError):
        labels[14]


def test_a_metric_is_found_by_its_name(labels: labeler.Labels) -> None:
    """In summaries, groups, rows and comparisons; also by another name of the same quantity."""
    summary, table = labels.summary(), labels.metrics()
    row = summary["adherence"]
    assert (row.metric.id, row.defined, row.interval is not None) == ("adherence", 14, True)
    assert summary["faithfulness"] == summary["adherence_fraction"]
    assert table["dome-timeout"]["adherence"].value == 1
    grouped = labels.summary("adherence", by="domain", intervals=False)
    assert grouped["adherence", "clinic"].mean == 0.75
    compared = labels.compare(labels.at(support=0.9))
    assert compared["adherence"] in compared.rows
    assert compared["adherence"].mean_a == row.mean
    for wrong, says in (
        (lambda: summary["adherance"], "did you mean 'adherence'"),
        (lambda: table[0]["relevanze"], "did you mean 'relevance'"),
        (lambda: grouped["adherence", "clinics"], "did you mean 'clinic'"),
        (lambda: grouped["adherence", None], "unknown group 'None'"),  # type: ignore[index]
        (lambda: compared["adherance"], "did you mean 'adherence'"),
    ):
        with pytest.raises(UnknownName, match=says):
            wrong()
    with pytest.raises(UsageError, match=r"such as \['adherence', 'clinic'\]"):
        grouped["adherence"]


def test_the_methods_are_the_functions(labels: labeler.Labels) -> None:
    """The same numbers, findings and differences."""
    assert labels.metrics("relevance") == labeler.metrics(list(labels), "relevance")
    assert labels.summary(intervals=None) == labeler.summary(list(labels))
    assert labels.audit() == labeler.audit.audit_labels(list(labels))
    other = labels.at(support=0.9)
    options: dict[str, Any] = {"names": ("labels", "labels at support 0.9"), "metrics": "adherence"}
    assert labels.compare(other, "adherence").rows == labeler.compare(labels, other, **options).rows
    assert labels.diff(other, "adherence") == labeler.comparing.diff_labels(
        labels, other, **options
    )


def test_gates_are_answered_and_not_raised(labels: labeler.Labels) -> None:
    """At least, or at most where lower is better; too many failures miss a gate as well."""
    assert labels.check(adherence=0.6, hallucination_rate=0.2)
    assert not labels.check(adherence=0).missed
    assert labels.check(adherence=1).missed
    missed = labels.check({"adherence": 0.8}, hallucination_rate=0.1)
    assert [one.passed for one in missed] == [False, False]
    assert "(adherence) .64, at least .8 asked for" in repr(missed)
    assert "(hallucination_rate) .19, at most .1 asked for" in repr(missed)
    failed = labels + labeled(rows(1, response=""))
    shown = repr(missed := failed.check(adherence=0.5))
    assert not missed
    assert "1 of 15 records failed, at most 5 % may (max_failed); failed: r0" in shown
    assert failed.check(adherence=0.5, max_failed=0.1)
    with pytest.raises(UnknownName, match="did you mean 'adherence'"):
        labels.check(adherance=0.5)
    with pytest.raises(UsageError, match="no gate"):
        labels.check()
    with pytest.raises(UsageError, match=r"needs a metric, such as check\(adherence=0.8\), got"):
        labels.check(0.8)  # type: ignore[arg-type] # a common slip


def test_the_table_says_what_labels_are_worth(labels: labeler.Labels) -> None:
    """Each quantity once, intervals, missing values, failures by reason, cost, and the floor."""
    failures = [LabelFailure(id=f"f{n}", reason="refusal", message="no") for n in range(2)]
    shown = repr(labels + failures)
    lines = shown.splitlines()
    assert lines[0].startswith("9 of 14 answers fully supported (64 %")
    assert "14 labels by embedded/lexical/1, 2 failed" in lines
    assert "compares words" in lines[1]
    assert len([line for line in lines if line.startswith("relevance ")]) == 1
    assert not [line for line in lines if line.startswith("context_relevancy ")]
    for part in ("failed: 2 refusal", "undefined context_precision: 1 no_relevant", "cost: "):
        assert part in shown


def test_labels_of_several_trials_are_told_apart() -> None:
    """In the first line by names, of which the first trial is 0, and in tables by numbers."""
    found = labeler.Labels([record(), relabeled(record(), trial=1)])
    assert re.match(r"trial 0: 1 of 1 .* trial 1: 1 of 1 ", repr(found))
    numbers = re.findall(r"^(?:adherence|r1) .*(\d)$", f"{found}\n{found.metrics()}", re.MULTILINE)
    assert numbers == ["1", "2", "1", "2"]
    assert "1 label by test/test-1, 0 failed" in repr(found[:1])


def test_failures_show_which_rows_failed_and_why() -> None:
    """A table of means without a value would say nothing."""
    failures = labeled([*rows(1), {**rows(1)[0], "id": "b", "response": ""}]).failures
    shown = repr(failures)
    assert shown.startswith("0 labels, 1 failed\n")
    assert "\nb   empty_response\n" in shown
    assert repr(failures[:0]) == "0 labels, 0 failed"
    assert "empty response; there is nothing to judge" in shown


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Keep its name."""
        del attrs
        self.found.add(tag)


def test_no_value_fills_a_screen_or_escapes_it() -> None:
    """Each repr is below 3,000 characters, without markup, control or direction characters."""
    changes = {"metadata": {"group": HOSTILE}, "documents": [HOSTILE] * 3, "response": HOSTILE}
    given = [{**row, "id": f"{row['id']}{HOSTILE}"} for row in rows(25, **changes)]
    hostile = labeled(given)
    failure = LabelFailure(id=HOSTILE, reason=HOSTILE, message=HOSTILE)
    broken, diff = hostile + labeler.Labels([failure]), hostile.diff(hostile.at(support=1))
    audit, table, compared = broken.audit(by="group"), broken.metrics(), hostile.compare(hostile)
    first = cast("LabelRecord", hostile[0])
    shown: list[object] = [
        *(broken, failure, first.example, first.answer, table, table[0], table[-1]),
        *(broken.summary(), broken.summary(by="group"), broken.summary()[0]),
        *(audit, audit.records[0], audit.rows[0]),
        labeler.audit.Finding("c", "note", HOSTILE, ("a",) * 999),
        *(diff, diff.records, diff.flips[0], diff.metrics[0], compared, compared.rows[0]),
        labeler.comparing.compare_labels(hostile, hostile, by="group"),
        broken.check(adherence=0.99, by="group"),
    ]
    tags = {*["p", "b", "style", "table", "tr", "th", "td", "small", "br"]}
    assert Tags(first._repr_html_()).found <= tags | {"code", "details", "summary", "div"}
    assert visible(str(first)) == str(first)
    for value in shown:
        forms = [repr(value)]
        if type(value).__str__ is not object.__str__:
            forms.append(str(value))
        if draw := getattr(value, "_repr_html_", None):
            forms.append(draw())
            assert Tags(forms[-1]).found <= tags
        for form in forms:
            assert len(form) < (3_000 if not isinstance(value, tuple) or draw else 40_000)
            assert visible(form) == form


def test_labels_of_a_file_are_read_when_they_are_needed(tmp_path: Path) -> None:
    """With ``output``; a look-up reads its record alone."""
    path = tmp_path / "labels.jsonl"
    found = labeled(rows(30), output=path)
    assert found == labeled(rows(30))
    ids = [one.id for one in (found[-1], found["r7"], *found[3:5])]
    assert ids == ["r29", "r7", "r3", "r4"]
    text, state = path.read_bytes().splitlines(keepends=True), path.stat()
    text[5] = b"#" * (len(text[5]) - 1) + b"\n"
    write(path, b"".join(text))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert found[6].id == "r6"
    with pytest.raises(UsageError, match=r"labels\.jsonl:6: "):
        found[5]


def store_of(found: labeler.Labels, folder: Path) -> Path:
    """A store of labels."""
    with labeler.DiskStore(folder / "store") as store:
        for one in found:
            store.put(cast("LabelRecord", one)).result()
    return folder / "store"


FORMS: list[Callable[[labeler.Labels, Path], Path]] = [
    lambda found, folder: found.save(folder / "labels.jsonl"),
    lambda found, folder: found.save(folder / "labels.jsonl.gz"),
    lambda found, folder: found.save(folder / "labels.parquet"),
    lambda found, folder: found.save(folder / "labels.parquet").parent,
    store_of,
]


@pytest.mark.parametrize("save", FORMS)
def test_every_form_of_stored_labels_is_loaded(
    save: Callable[[labeler.Labels, Path], Path],
    labels: labeler.Labels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also from another folder later; what has changed on disk is not read, but loaded again."""
    first = save(labels[:9], tmp_path)
    old = labeler.load(first)
    assert len(old) == 9
    monkeypatch.chdir(tmp_path)
    found = labeler.load(save(labels, tmp_path).relative_to(tmp_path))
    monkeypatch.chdir("/")
    by_id = {outcome.id: outcome for outcome in labels}
    assert {outcome.id: outcome for outcome in found} == by_id
    assert found[0] in list(found)
    assert len(found[2:5]) == 3
    assert found["log-rotation"] == by_id["log-rotation"]
    assert [row.mean for row in found.summary()] == [row.mean for row in labels.summary()]
    assert "14 labels by embedded/lexical/1" in repr(found)
    for read in (lambda: old[3], old.summary, lambda: list(old)):
        with pytest.raises(UsageError, match="has changed since it was opened: load it again"):
            read()


def test_a_file_of_mixed_outcomes_gives_its_labels(labels: labeler.Labels, tmp_path: Path) -> None:
    """Scores are left out, blank lines and a byte order mark too; scores alone are an error."""
    path, score = tmp_path / "mixed.jsonl", '{"kind":"score",'
    first, second = (json.loads(one.model_dump_json()) for one in labels[:2])
    reordered = json.dumps(dict(reversed(second.items())))
    write(path, f"\ufeff{json.dumps(first)}\n\n{score}\n{reordered}\n")
    assert labeler.load(path) == labels[:2]
    write(path, f"{labels[0].model_dump_json()}\n{score_record().model_dump_json()}\n")
    assert {row.metric.kind for row in labeler.load(path).summary()} == {"label"}
    write(path, f"{score}\n")
    with pytest.raises(UsageError, match="no labels; numbers of other records"):
        labeler.load(path)
    with pytest.raises(UsageError, match=r"cannot read .*nothing\.jsonl"):
        labeler.load(tmp_path / "nothing.jsonl")


def test_rows_of_equal_texts_cost_one_request(tmp_path: Path) -> None:
    """They share one label; answers without usage still cost what the budget counted."""
    equal = [row | {"id": f"r{n}", "question": "Why?"} for n, row in enumerate(rows(1) * 5)]
    assert labeler.Labels(list(labeled(equal))).cost.requests == labeled(equal[:1]).cost.requests
    usage = {"usage": Usage(prompt_tokens=1234)}
    paid = (made := record()).model_copy(update={"reply": made.reply.model_copy(update=usage)})
    read = labeler.load(labeler.Labels([paid, paid]).save(tmp_path / "paid.jsonl"))
    assert "1,234" in str(read.cost)
    assert str(RunCost(3, Usage(), 0.5, "a list")).startswith("$0.5000 by a list")


def test_a_slice_of_a_compressed_file_reads_it_once(tmp_path: Path) -> None:
    """And gives what a list gives, from either end; a pipe is read once in all."""
    kept = labeled(rows(6))
    kept.save(tmp_path / "labels.jsonl.gz")
    loaded = labeler.load(tmp_path / "labels.jsonl.gz")
    assert loaded[1:5:2] == kept[1:5:2]
    assert loaded[::-2] == kept[::-2]
    kept.save(tmp_path / "labels.jsonl")
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "labels.jsonl").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    assert labeler.load(tmp_path / "pipe") == kept
    writer.join()


def test_a_record_and_a_plot_in_a_notebook() -> None:
    """The record is what ``labeler show`` prints; the plot has each bin and group, escaped."""
    labels = labeled(rows(6, metadata={"group": "<b>"}))
    assert "response  (✓ supported, ✗ not, ? not judged)" in str(labels[0])
    assert "fully supported" in cast("LabelRecord", labels[0])._repr_html_()
    drawn = labels.plot("adherence", by="group")
    assert drawn.svg == drawn._repr_html_()
    assert "6 of 6 rows" in repr(drawn)
    assert "&lt;b&gt;" in drawn.svg
    assert Tags(drawn.svg).found <= {"svg", "title", "text", "rect", "path"}
    with pytest.raises(UsageError, match="a plot is of one metric"):
        labels.plot("all")
    assert "no row has a value" in labels.failures.plot("adherence").svg
    both = labels + [relabeled(cast("LabelRecord", one), model="m-9") for one in labels]
    assert ">&lt;b&gt;, embedded/m-9</text>" in both.plot("adherence", by="group").svg
    # At a prompt, a record is a table with a title of its verdicts and what they rest on.
    title, *rest = repr(record(id="r1", support={"a": ["0a"], "b": []}, response=2)).splitlines()
    assert re.fullmatch("label 'r1' by .*: not supported", title)
    assert [line.split()[-1] for line in rest if line.startswith(("a ", "b "))] == ["0a", "no"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda labels: labels.audit(chek=1),
            "unknown option of Labels.audit() 'chek'; did you mean 'checks'",
        ),
        (lambda labels: labels.metrics(idz=1), "have: ids"),
        (lambda labels: labels.compare(labels, levl=1), "did you mean 'level'"),
        (lambda labels: labels.diff(labels, topp=1), "did you mean 'top'"),
        (lambda labels: labels.report("r.html", metrix="T"), "did you mean 'metrics'"),
        (lambda labels: labeler.summary(labels, bye="x"), "unknown option of summary() 'bye'"),  # type: ignore[call-arg]
        (lambda _: labeler.open_rows([], mapp={}), "unknown option of open_rows() 'mapp'"),  # type: ignore[call-arg]
        (lambda labels: labels.save(3), "path must be the path of a file"),
        (lambda labels: labels.report(None), "path must be the path of a file"),
        (lambda _: labeler.load(3), "path must be the path of a file"),  # type: ignore[arg-type]
        (lambda labels: labels[None], "taken by its id, a text, or its position"),
        (lambda labels: labels["a":"b"], "got slice('a', 'b', None)"),
        (lambda labels: labels[np.arange(2)], "got array([0, 1])"),
        (lambda _: repr(labeler.Labels(["a"])), "an outcome is a str, not a label"),  # type: ignore[list-item]
        (lambda labels: labels.metrics()[None], "a row is taken by"),
        (lambda labels: labels.summary()[None], "a row is taken by"),
        (lambda labels: labels.audit(3), "checks are ids such as"),
        (lambda labels: labels.anchors("x"), "n must be a whole number"),
    ],
)
def test_wrong_calls_are_told_what_is_allowed(
    labels: labeler.Labels, call: Callable[[Any], object], says: str
) -> None:
    """An error of this package; an unknown keyword is a TypeError, too."""
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        call(labels)
    assert isinstance(caught.value, TypeError) is ("unknown option" in str(caught.value))
