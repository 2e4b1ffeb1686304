from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from labeler.api import write_labels
from labeler.audit import findings_of
from labeler.calculators import Intervals, measure, select_metrics, summarize
from labeler.calculators.summary_text import in_words
from labeler.data.label_files import read_outcomes
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import AnyOutcome
from labeler.report import write_report, writing
from labeler.report.page import pack
from labeler.report.report_data import MAX_GROUPS, ReportData
from labeler.report.views import record_view
from labeler.sentences.characters import visible
from support.labeled import (
    claims_output,
    expects,
    failure,
    output,
    record,
    reference_output,
    relabeled,
    right,
    says,
    verbatim,
    wrong,
)
from support.pages import Page, assert_inert, read_page, records_of, unpacked
from support.payloads import PAYLOADS, harmless, hostile_column, hostile_records

FEW = Intervals()


def _report(
    outcomes: Sequence[AnyOutcome], path: Path, *, name: str = "labels.jsonl", **options: Any
) -> Page:
    """The first page of a report."""
    return read_page(write_report(iter(outcomes), path, name=name, intervals=FEW, **options)[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the report is written."""
    return tmp_path / "report.html"


def _some(count: int, **facts: Any) -> list[AnyOutcome]:
    return [record(id=f"r{n}", **facts) for n in range(count)]


def _torn(count: int) -> Iterator[AnyOutcome]:
    """So many records, and where the next one is read an error."""
    yield from _some(count)
    raise UsageError("the file is damaged")


def test_what_is_packed_comes_out_again() -> None:
    """Whatever text it is; in letters that no markup can be made of, and without a time."""
    value = {"texts": list(PAYLOADS), "lone": "\ud800", "number": 0.1, "none": None}
    text = pack(value)
    assert re.fullmatch(r"[A-Za-z0-9+/]+=*", text)
    assert unpacked(f'"{text}"') == value
    stream = base64.b64decode(pack([1]))
    assert gzip.decompress(stream) == b"[1]"
    assert stream[4:8] == bytes(4)


def test_the_records_of_a_page_are_those_of_the_file(path: Path) -> None:
    """Each with its sentences, label, metrics, findings and doubt; the failed ones in place."""
    records = [record(id=f"r{n}", support={"a": ["0a"], "b": []}) for n in range(250)]
    outcomes: list[AnyOutcome] = [*records[:120], failure("f1"), *records[120:]]
    page = _report(outcomes, path)
    found = records_of(page)
    assert [len(page.blocks[f"chunk-{n}"]) for n in range(3)] == [100, 100, 51]
    assert [each["id"] for each in found] == [outcome.id for outcome in outcomes]
    assert found[120] == {"id": "f1", "failed": {"reason": "refusal", "message": "No."}}
    own = json.loads(json.dumps(record_view(records[0], findings=findings_of(records[0]))))
    doubt = page.blocks["index"]["records"]["doubt"][0]
    assert found[0] == own | {"metrics": found[0]["metrics"], "doubt": doubt}
    assert found[0]["metrics"]["adherence"] == {"value": 0.0, "text": "0.0000 (0/1)"}


def test_the_index_has_a_column_for_each_fact(path: Path) -> None:
    """Metrics, findings, doubt, pattern, subset and signature of each record, in order."""
    answer = output(support={"a": ["0a"], "b": []}, overall=True)
    odd = record(id="odd", answer=answer, metadata={"domain": "law"})
    plain = record(id="plain", relevant=(), utilized=(), metadata={"domain": "art"})
    failed = failure("f1", metadata={"domain": "law"})
    page = _report([failed, odd, plain], path, by="domain")
    index = page.blocks["index"]
    records = index["records"]
    assert index["name"] == "labels.jsonl"
    assert index["subset"] == {"column": "domain", "values": ["art", "law"]}
    assert records["id"] == ["f1", "odd", "plain"]
    assert records["subset"] == [1, 1, 0]
    assert records["signature"] == [-1, 0, 0]
    assert records["failed"] == ["refusal", None, None]
    assert records["question"] == ["", *["What is the capital of France?"] * 2]
    assert records["metrics"]["relevance"] == [None, 1 / 3, 0.0]
    assert records["metrics"]["completeness"] == [None, 1.0, None]
    assert (records["doubt"][0], records["doubt"][1] > 0) == (None, True)
    found = [index["checks"][place]["id"] for place in records["findings"][1]]
    assert found == list(dict.fromkeys(finding.check for finding in findings_of(odd)))
    assert [index["patterns"][place]["id"] for place in records["patterns"][1]] == ["ungrounded"]
    assert records["patterns"][0] == records["findings"][0] == []
    metrics = records.pop("metrics")
    assert {len(column) for column in (*records.values(), *metrics.values())} == {3}


def test_a_page_of_too_many_records_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the option that takes any number; the rest is not read."""
    monkeypatch.setattr(writing, "PAGE_RECORDS", 2)
    with pytest.raises(UsageError, match=r"2 records at most: write a folder .* as \S+/report/"):
        write_report(_torn(3), path, name="l")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("name", ["report", "report.v2/", "made.html"])
def test_a_folder_has_a_page_and_files_of_records(tmp_path: Path, name: str) -> None:
    """The same blocks as one page has; the page is inert, but for scripts that its own loads."""
    (tmp_path / "made.html").mkdir()
    outcomes = [*_some(101), failure("f1")]
    files = write_report(outcomes, f"{tmp_path}/{name}", name="l", intervals=FEW)
    folder = tmp_path / name
    names = ["index.html", "records/index.js", "records/chunk-0.js", "records/chunk-1.js"]
    assert files == [folder / each for each in names]
    page, whole = read_page(files[0]), _report(outcomes, tmp_path / "whole.html")
    assert_inert(page)
    assert page.policy.count("'strict-dynamic'") == 1
    told, shown = (" ".join(each.texts.split()) for each in (whole, page))
    told = told.replace("This file loads nothing", "This page loads files of its folder only")
    assert shown == told.replace("labels.jsonl", "l")
    assert {file.stem: _block(file) for file in files[1:]} == whole.blocks | {
        "index": whole.blocks["index"] | {"name": "l"}
    }


def _block(file: Path) -> Any:
    """What a file of a folder passes to the page: letters that can be nothing else."""
    call = re.fullmatch(r'receiveBlock\(("[A-Za-z0-9+/]+=*")\);\n', file.read_text())
    assert call
    return unpacked(call[1])


def test_a_report_takes_the_place_of_an_earlier_one_alone(tmp_path: Path) -> None:
    """In a folder; anything else in it is somebody's work."""
    folder = tmp_path / "report"
    write_report(_some(150), folder, name="l", intervals=FEW)
    write_report(_some(1), folder, name="l", intervals=FEW)
    written = {path.name: path.read_bytes() for path in folder.rglob("*.*")}
    assert sorted(written) == ["chunk-0.js", "index.html", "index.js"]
    (folder / "records/notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"has records/notes.txt, which is not part of a report"):
        write_report(_some(1), folder, name="l")
    (folder / "records/notes.txt").unlink()
    assert {path.name: path.read_bytes() for path in folder.rglob("*.*")} == written


@pytest.mark.parametrize(
    ("name", "told", "text"),
    [
        ("index.html", "index.html", "<!doctype html><h1>My site</h1>"),
        ("notes.txt", "notes.txt", "mine"),
        ("records", "records", "mine"),
        # Only a list of records that calls our function first makes a folder ours.
        ("records/chunk-0.js", "records", "export const receive = () => receiveBlock(1);"),
        ("records/index.js", "records", "export const receive = () => receiveBlock(1);"),
    ],
)
def test_a_page_of_others_is_no_report(tmp_path: Path, name: str, told: str, text: str) -> None:
    """Though it has the name of ours."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=f"has {told}, which is not part of a report"):
        write_report(_some(1), tmp_path, name="l")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_what_breaks_off_leaves_the_old_report(tmp_path: Path) -> None:
    """A page or a folder: nothing half-written stands under the name, and nothing besides."""
    with pytest.raises(UsageError, match=r"l: no labels: name what"):
        write_report([], tmp_path / "none.html", name="l")
    with pytest.raises(UsageError, match="nowhere"):
        write_report(_some(1), tmp_path / "nowhere" / "r.html", name="l")
    assert list(tmp_path.iterdir()) == []
    page, folder = tmp_path / "report.html", tmp_path / "report"
    page.write_text("old")
    write_report(_some(1), folder, name="l", intervals=FEW)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for target in (page, folder, tmp_path / "new", tmp_path / "new.html"):
        with pytest.raises(UsageError, match="damaged"):
            write_report(_torn(150), target, name="l", intervals=FEW)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_failures_alone_make_a_report(path: Path) -> None:
    """It says how many for which reason, also for none, and which judge labeled nothing."""
    refused = [failure("x"), failure("y", made_by=record()), failure("z", "")]
    page = _report(refused, path)
    assert "0 labeled" in " ".join(page.texts.split())
    assert "No labels: every row failed." in page.texts
    assert page.tags["svg"] == 0
    assert '{"failed":"refusal"}' in page.with_attribute("data-filter")
    assert page.blocks["index"]["records"]["failed"] == ["refusal", "refusal", "(none)"]


def test_the_five_worst_answers_are_shown_with_their_sentence_and_a_link(path: Path) -> None:
    """Least support first, of the configuration with most labels first; a long text is cut."""
    made = [record(id=f"r{n}", support={"a": [], "b": ["0a"], "c": ["0a"]}) for n in range(40)]
    made[30] = record(id="worst of all", support={"a": [], "b": [], "c": []})
    made[31] = record(id="long", documents=[["x" * 5000]], support={"a": [], "b": []})
    other = relabeled(record(id="other", support={"a": []}), model="a-1")
    page = _report([other, *made], path)
    links = [link for link in page.with_attribute("href") if link.startswith("#record=")]
    names = ["worst+of+all", "long", "r0", "r1", "r2", "other"]
    assert links == [f"#record={name}&sentence=a" for name in names]
    shown = " ".join(page.texts.split())
    assert "0 of 3 sentences supported" in shown
    assert "1 more unsupported sentence" in shown
    assert "All 40 answers without full support" in shown
    assert "x" * 421 not in page.texts


def test_undefined_values_are_counted_with_their_reason(path: Path) -> None:
    """No metric takes them for 0, no chart shows them, and a footnote stands for a tile."""
    bare = record(id="r2", relevant=(), utilized=())
    page = _report([record(id="r1"), bare], path, metrics="completeness")
    assert "1 undefined: no relevant sentences" in page.texts
    assert "relevant sentences used; 1 without a value" in page.texts
    assert page.blocks["index"]["records"]["metrics"] == {"completeness": [1.0, None]}
    shown = [each["metrics"]["completeness"]["text"] for each in records_of(page)]
    assert shown == ["1.0000 (1/1)", "undefined: no_relevant_sentences"]
    page = _report([bare], path)
    assert "1 labeled" in " ".join(page.texts.split())
    assert "no record has a value: relevant sentences used (no relevant sentences)" in page.texts
    assert_inert(page)
    assert _report([bare], path, metrics="completeness").tags["figure"] == 0


def test_richer_labels_bring_their_metrics_and_claims(path: Path) -> None:
    """Records of each profile stand side by side; each has what its label allows."""
    claims = claims_output([says("a", ["0a"]), says("b")], relevant=["0a"])
    reference = reference_output([right("a", ["0a"]), wrong("b")], [expects(["0a"], found=True)])
    outcomes = [record(id="c", answer=claims), record(id="g", answer=reference), record(id="t")]
    page = _report(outcomes, path)
    metrics = page.blocks["index"]["records"]["metrics"]
    assert metrics["answer_relevancy"] == [1.0, 1.0, None]
    assert metrics["context_recall"] == [None, 1.0, None]
    found = records_of(page)
    assert [len(each["label"]["claims"] or ()) for each in found] == [2, 2, 0]
    assert len(found[1]["label"]["reference_claims"]) == 1
    assert "Configuration 3 of 3" in page.texts


def test_very_many_configurations_are_not_all_summed_up(path: Path) -> None:
    """Trials of a thousand records would make a page that nobody can read."""
    outcomes = [relabeled(record(id=f"r{n}"), model=f"m{n}") for n in range(25)]
    page = _report(outcomes, path, metrics="adherence")
    assert "Configuration 20 of 25" in page.texts
    assert "Configurations after the first 20" in page.texts
    assert len(page.blocks["index"]["signatures"]) == 25


def test_the_figures_are_those_of_the_summary(path: Path) -> None:
    """As ``labeler metrics`` prints them; a null column is as a column that is not there."""
    supports = [{"a": ["0a"], "b": ["0b"] if n % 3 else []} for n in range(30)]
    outcomes = [
        record(id=f"r{n}", support=support, metadata={"domain": "law" if n % 2 else None})
        for n, support in enumerate(supports)
    ]
    page = _report(outcomes, path, by="domain", metrics="adherence_fraction")
    chosen = select_metrics("adherence_fraction")
    metrics = [measure(outcome, chosen) for outcome in outcomes]
    rows = summarize(metrics, chosen, None, intervals=FEW)
    rows += summarize(metrics, chosen, "domain", intervals=FEW)
    assert len(rows) == 3
    for row in rows:
        assert all(part in page.texts for part in in_words(row))
    assert rows[0].interval is not None
    assert f"{rows[0].mean:.4f}" in page.texts
    assert f"{rows[0].interval.low:.3f} to {rows[0].interval.high:.3f}" in page.texts
    assert {'{"subset":"law"}', '{"subset":"(none)"}'} <= {*page.with_attribute("data-filter")}


def test_the_same_labels_make_the_same_bytes(tmp_path: Path) -> None:
    """No time of writing, no order of a set, no name of the machine."""
    outcomes = [record(id=f"r{n}", stored=verbatim(utilized=["0b"])) for n in range(120)]
    first, second = (
        write_report(outcomes, tmp_path / name, name="l", intervals=FEW)[0].read_bytes()
        for name in ("a.html", "b.html")
    )
    assert first == second
    assert str(tmp_path).encode() not in first


def test_an_unknown_column_or_metric_is_refused(path: Path) -> None:
    """With the columns that there are."""
    outcomes = _some(2, metadata={"domain": "law"})
    with pytest.raises(UsageError, match=r"has a column 'topic' to group by.*domain"):
        _report(outcomes, path, by="topic")
    with pytest.raises(UsageError, match=r"no row has a column 'topic' to draw records by.*domain"):
        write_report(outcomes, path, name="l", intervals=Intervals(group="topic"))
    with pytest.raises(UnknownName, match="relevanze"):
        _report(outcomes, path, metrics="relevanze")


def test_hostile_texts_bring_no_tag_and_no_attribute(tmp_path: Path) -> None:
    """The page has the tags and attributes of harmless texts; what would be obeyed is readable."""
    attacked, benign = (_hostile(tmp_path / dress.__name__, dress) for dress in (str, harmless))
    shapes = []  # how often each tag stands there with which attributes
    for page in (attacked, benign):
        assert_inert(page)
        tags = Counter((tag, *attributes) for tag, attributes in page.elements)
        shapes.append(tags + page.ends)
    assert shapes[0] == shapes[1]
    questions = {each.get("question") for each in records_of(attacked)}
    assert {visible(payload) for payload in PAYLOADS} <= questions
    assert PAYLOADS[30] in attacked.texts
    raw = json.dumps(attacked.blocks, ensure_ascii=False)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff]", raw + attacked.texts)


def _hostile(folder: Path, dress: Callable[[str], str]) -> Page:
    """A report of hostile records, or of their harmless twins."""
    folder.mkdir()
    write_labels(hostile_records(dress), folder / "labels.jsonl")
    return _report(
        list(read_outcomes(folder / "labels.jsonl")),
        folder / "report.html",
        by=hostile_column(dress),
        name=dress(PAYLOADS[30]),
    )


def test_subsets_beyond_those_that_are_listed_take_no_time() -> None:
    """Their intervals would be found for nobody; the browser knows all of them."""
    made = [record(id=f"r{n}", metadata={"set": f"{max(n, 1):03}"}) for n in range(61)]
    data = ReportData(made, io.BytesIO(), lambda _: None, by="set", intervals=FEW)
    assert len(data.groups) == 60
    assert {row.group for row in data.grouped} == {f"{n + 1:03}" for n in range(MAX_GROUPS)}
