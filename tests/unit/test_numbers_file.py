"""Every form of stored labels, numbers files among them, has the same numbers to the last digit."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeler
from labeler import api
from labeler.calculators import METRICS, Ratio, Tally
from labeler.calculators.intervals import Intervals
from labeler.calculators.numbers_file import NumbersFile
from labeler.calculators.outcomes import stored_outcomes
from labeler.cli import run
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, ReplyFacts
from labeler.version import __version__
from support.any_labels import random_label
from support.command import Command
from support.labeled import failure, record, relabeled
from support.registries import keep_entries

FORMS = ("parquet", "csv", "jsonl")
Files = tuple[Path, dict[str, Path]]
"""A label file, and its numbers in each form."""


def labels_of(random: Random, count: int, profiles: Sequence[str] = ("trace",)) -> list[AnyOutcome]:
    """Random labels with groups, shared questions, trials, corrections, copies and failures."""
    found: list[AnyOutcome] = []
    for number in range(count):
        one = random_label(random, random.choice(profiles))
        metadata = {"topic": random.choice(["a", "b", 1, None]), "n": number}
        shown = {
            "id": random.choice(["", "=", "+x"]) + f"r{number}",
            "metadata": metadata,
            "question": f"Question {number % 7}?" if number % 5 else " ",
        }
        sampling = {"corrections": "0a1b"} if number % 11 == 0 else {}
        one = one.model_copy(update={"reply": ReplyFacts(served_model=f"m-{number // 30}")})
        found.append(relabeled(one, shown, trial=number % 2, sampling=sampling))
    labeled = [one for one in found if isinstance(one, LabelRecord)]
    found += labeled[:3] + labeled[:1]
    for number, made_by in enumerate([None, labeled[0], None, None]):
        name = labeled[5].id if number == 2 else f"f{number % 3}"
        reason = ("refusal", "timeout")[number // 3]
        found.append(failure(name, reason, made_by=made_by, metadata={"topic": "a"}))
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A label file, and its numbers in each form."""
    labels = tmp_path_factory.mktemp("numbers") / "labels.jsonl"
    profiles = ("trace", "claims", "reference")
    api.write_labels(labels_of(Random(3), 60, profiles), labels)  # noqa: S311 - no secret
    numbers = {form: labels.with_name(f"numbers.{form}") for form in FORMS}
    for path in numbers.values():
        write_numbers(labels, path)
    return labels, numbers


def write_numbers(labels: Path, path: Path) -> None:
    """Write the numbers of labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["labeler", "metrics", str(labels), "--rows", "-o", str(path)])
        assert run() == 0


@pytest.mark.parametrize(
    "options",
    [
        "metrics --json",
        "metrics --json --by topic",
        "metrics --json --group topic --level 0.9",
        "metrics --json --group question",
        "metrics --json --metrics adherence,completeness,faithfulness",
        "metrics --rows",
        "check --json --min adherence=0.5 --max completeness=0.4",
        "check --min relevance=0.5 --on interval --by topic --one-model",
        "check --max relevance=0.5 --junit /dev/stdout --group question --on interval",
    ],
)
def test_a_numbers_file_gives_what_its_labels_give(
    options: str, files: Files, labeler_command: Command
) -> None:
    """Means, intervals, gates, groups, copies and failures."""
    command, *rest = options.split()
    labels, numbers = files
    want = labeler_command(command, labels, *rest)
    assert labeler_command(command, numbers[FORMS[len(options) % 3]], *rest) == want


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the labels and numbers of two sides."""
    folder, random = tmp_path_factory.mktemp("sides"), Random(7)  # noqa: S311 - no secret
    first = [
        relabeled(one, sampling={}) if isinstance(one, LabelRecord) else one
        for one in labels_of(random, 40)
    ]
    second = [one for number, one in enumerate(first[:40]) if number % 10]
    for place, one in enumerate(second):  # every third one is judged otherwise
        if isinstance(one, LabelRecord) and place % 3 == 0:
            shown = {name: getattr(one.example, name) for name in ("id", "metadata", "question")}
            second[place] = relabeled(random_label(random, "trace"), shown, **vars(one.signature))
    for name, outcomes in (("a", first), ("b", second)):
        api.write_labels(outcomes, folder / f"{name}.jsonl")
        for form in FORMS:
            write_numbers(folder / f"{name}.jsonl", folder / f"n{name}.{form}")
    return folder


@pytest.mark.parametrize("options", ["", "--by topic", "--metrics relevance,adherence", "--top 40"])
def test_numbers_files_are_compared_as_their_labels_are(
    options: str, sides: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differences, tests, the sentences that moved, and pairs by trial; also files with labels."""
    monkeypatch.chdir(sides)
    asked = ("--json", "--trial", "0", "--signature", "splitter", *options.split())
    code, want, err = labeler_command("compare", "a.jsonl", "b.jsonl", *asked)
    assert code == 0
    form = FORMS[len(options) % 3]
    for one in ("a.jsonl", f"na.{form}"):
        found = labeler_command("compare", one, f"nb.{form}", *asked)
        out, said = (
            text.replace(f"na.{form}", "a.jsonl").replace(f"nb.{form}", "b.jsonl")
            for text in found[1:]
        )
        assert (found[0], json.loads(out), said) == (0, json.loads(want), err)


def test_python_reads_numbers_as_labels(files: Files) -> None:
    """The same rows and summaries, with exact ratios, in every form of the file."""

    def read(path: Path) -> object:
        rows = {
            row.id + (row.label or ""): (row.metrics, row.versions, row.failed)
            for row in labeler.metrics(path, "relevance,adherence")
        }
        dropped = labeler.load(labels).check(against=path, max_drop={"adherence": 0.1})
        compared = labeler.compare(path, path, "relevance", signature="trace/v1")
        return rows, labeler.summary(path, intervals=labeler.Intervals()), dropped, compared.rows

    labels, numbers = files
    want = read(labels)
    for path in (*numbers.values(), labels.with_name("numb*.csv")):
        assert read(path) == want


def test_columns_are_what_data_frames_need(files: Files) -> None:
    """One row a record, parts of ratios as numbers, facts of votes, texts of nobody."""
    table = pq.read_table(files[1]["parquet"])
    assert table.num_rows == 60 + 3
    assert {"id", "trial", "judge", "corrected", "documents", "failed"} <= {*table.column_names}
    kinds = {table.schema.field(f"relevance.{part}").type for part in ("numerator", "denominator")}
    assert kinds == {pa.int64()}
    first, *_, last = table.to_pylist()
    assert first["relevance"] == first["relevance.numerator"] / first["relevance.denominator"]
    assert (first["copies"], first["corrected"], first["trial"]) == (2, True, 0)
    assert (last["failed"], last["relevance.reason"]) == ("refusal", None)
    assert "Question" not in files[1]["jsonl"].read_text(encoding="utf-8")


def test_fractions_conventions_and_huge_numbers_stay_exact(
    labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a metric of one's own returns."""
    values = [Ratio(Fraction(1, 3), 7), Ratio(0, 0, convention=0.25), Ratio(1 << 70, 1 << 71)]
    values += [Ratio.missing("odd_reason"), Ratio(-3, 4), Ratio(float("nan"), 1)]  # type: ignore[arg-type]
    label = random_label(Random(1), "trace")  # noqa: S311 - no secret
    keep_entries(METRICS, monkeypatch)

    @labeler.metric("odd", definition="d", default=True, source="s", needs=(), formula="f")
    def odd(tally: Tally) -> Ratio:
        return values[len(tally.documents)]

    made = [
        relabeled(label, {"id": str(number), "documents": ((),) * number})
        for number in range(len(values))
    ]
    for form in FORMS:
        api.write_labels(made, "labels.jsonl")
        asked = ("--rows", "-o", f"n.{form}", "--metrics", "odd")
        assert labeler_command("metrics", "labels.jsonl", *asked)[0] == 0
        rows = labeler.metrics(f"n.{form}")
        assert [row["odd"] for row in rows] == values
        assert labeler.summary(f"n.{form}", "odd") == labeler.summary("labels.jsonl", "odd")


EDITS: dict[str, dict[str, str | None]] = {
    "a value that is not its parts": {"relevance": "0.123"},
    "a fraction of nothing": {"relevance.numerator": "x"},
    "no reason": {"relevance": "", "relevance.numerator": "", "relevance.denominator": "0"},
    "another version of the metric": {"versions": "metrics:relevance.v9"},
    "scores": {"kind": "score"},
    "a kind that nothing reads": {"kind": "labels"},
    "damaged metadata": {"metadata": "{"},
    "a figure with a decimal comma": {"relevance": "0,5"},
    "a label of no configuration": {"label": ""},
    "a label of no metrics": {"versions": ""},
    "metrics of no version": {"versions": "{"},
    "metadata without names": {"metadata": "[1]"},
    "a failure with numbers": {"failed": "perhaps"},
    "half a sentence": {"relevance.numerator": "1.5"},
    "a row of no kind, as a sum below the rows": {"kind": "", "failed": "sum"},
    # Columns that are gone: no metric is left, ranges would be others, and rows mixed or paired
    # that should not be.
    "no exact parts": {"ator": None},
    **{
        f"no {column}": {column: None}
        for column in ("relevance.numerator", "question_group", "answered", "documents")
    },
}
"""Other cells of the first row."""


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_file_is_an_error(
    edit: dict[str, str | None], files: Files, labeler_command: Command
) -> None:
    """It names the file, and nothing is computed."""
    rows = read_rows(files[1]["csv"])
    rows[0] |= {name: cell for name, cell in edit.items() if cell is not None}
    lost = tuple(name for name, cell in edit.items() if cell is None)
    kept = [name for name in rows[0] if not name.endswith(lost)]
    pl.DataFrame(rows).select(kept).write_csv("edited.csv")
    code, out, err = labeler_command("metrics", "edited.csv", "--json", "--by", "topic")
    assert (code, out, "edited.csv" in err) == (2, "", True)


ODD = [("key", {}), ("versions", 2.5), ("copies", [1]), ("id", [""]), ("id", None), ("label", -1)]
HOSTILE = [("copies", "1e999999999"), pytest.param("metadata", "[" * 10**5, id="nested")]


@pytest.mark.parametrize(("column", "cell"), [*ODD, *HOSTILE])
def test_a_cell_of_another_type_is_an_error(
    column: str, cell: object, files: Files, labeler_command: Command
) -> None:
    """JSON can hold in a cell what no numbers file has; only a text that is empty is an id."""
    first, *others = files[1]["jsonl"].read_text("utf-8").splitlines()
    lines = [json.dumps(json.loads(first) | {column: cell}), *others]
    Path("edited.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code, out, err = labeler_command("metrics", "edited.jsonl")
    assert (code, out, "edited.jsonl" in err) == (2, "", True)
    assert f"column {column!r}" in err


def test_numbers_that_a_spreadsheet_or_data_frame_wrote_are_the_same(
    files: Files, labeler_command: Command
) -> None:
    """Nine digits, whole numbers with a point; no cell looks like a date or has an exponent."""
    rows = read_rows(files[1]["csv"])
    odd = re.compile(r"\d+/\d+|\d+e\d+|\d{12,}")
    assert not [cell for row in rows for cell in row.values() if odd.fullmatch(cell)]
    for row in rows:
        for name, cell in row.items():
            if name.endswith(("ator", "copies", "sentences")) and cell.isdigit():
                row[name] = f"{cell}.0"
            elif cell in {"true", "false"}:
                row[name] = cell.upper()
            elif f"{name}.numerator" in row and cell:
                row[name] = f"{float(cell):.9g}"
    path = Path("shown.tsv")
    pl.DataFrame(rows).write_csv(path, separator="\t")
    for asked in (("metrics", "--by", "topic", "--json"), ("check", "--min", "adherence=0.1")):
        want = labeler_command(asked[0], files[1]["csv"], *asked[1:])
        assert labeler_command(asked[0], path, *asked[1:]) == want
    kept, given = (
        [row.facts for row in NumbersFile.read([str(one)]).chosen(None)]
        for one in (path, files[1]["csv"])
    )
    assert kept == given


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read rows of CSV."""
    return pl.read_csv(path, infer_schema=False).fill_null("").to_dicts()


FOREIGN = "have columns id, position, versions, and this file has id, value"
REFUSED = {
    "metrics cut.parquet": "cannot read",
    "metrics other.csv": FOREIGN,
    "audit other.csv": FOREIGN,
    "metrics CSV --metrics relevance:ragbench": "--metrics relevance:ragbench",
    "metrics LABELS CSV": "one kind at a time",
    "report CSV -o x.html": "numbers.csv holds numbers",
    "audit PARQUET": "numbers.parquet holds numbers",
    "show JSONL r1": "numbers.jsonl holds numbers",
    "diff LABELS PARQUET": "numbers.parquet holds numbers",
    "agree CSV LABELS": "numbers.csv holds numbers",
    "metrics CSV --threshold support=0.5": "--threshold needs the probabilities",
    "check CSV --min adherence=0 --threshold support=0.5": "--threshold needs the probabilities",
    "compare LABELS CSV --threshold support=0.5": "--threshold needs the probabilities",
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_a_numbers_file_cannot_give_is_an_error(
    command: str, files: Files, labeler_command: Command
) -> None:
    """Cut off, of other columns, without a metric, next to labels, or where texts are needed."""
    labels, numbers = files
    Path("cut.parquet").write_bytes(numbers["parquet"].read_bytes()[:-100])
    Path("other.csv").write_text("id,value\n1,2\n", encoding="utf-8")
    paths = {"LABELS": labels} | {form.upper(): path for form, path in numbers.items()}
    code, _, err = labeler_command(*(paths.get(word, word) for word in command.split()))
    assert (code, REFUSED[command] in err) == (2, True)
    with pytest.raises(UsageError, match="holds numbers"):
        labeler.load(numbers["jsonl"])


def test_rows_that_are_not_labeled_yet_are_no_numbers(
    tmp_path: Path, labeler_command: Command
) -> None:
    """A CSV of rows, with columns of any names, must be labeled first."""
    for number, text in enumerate(
        ("question,contexts,answer\nq,d,r", "Frage;Kontext;Antwort\nq;d;r")
    ):
        path = tmp_path / f"{number} rows.csv"
        path.write_text(text)
        for command in ("metrics", "worst"):
            assert f"labeler label '{path}' -o" in labeler_command(command, path)[2]
    assert "No such file" in labeler_command("worst", tmp_path / "none.csv")[2]


ODD_IDS = ["=1", "'=2", " a ", "\t-c\rd\x00\x1b[31m", "<U+000D>", "\u202e\u2028\ufeff", "😀" * 999]


@pytest.mark.parametrize("form", FORMS)
def test_any_id_is_read_back(tmp_path: Path, form: str) -> None:
    """Controls, spaces at the ends, formulas, codes that look like escapes, and long ones."""
    made = (record(id=id_) for id_ in ODD_IDS)
    labels, numbers = tmp_path / "labels.jsonl", tmp_path / f"numbers.{form}"
    api.write_labels(made, labels)
    write_numbers(labels, numbers)
    assert [row.id for row in labeler.metrics(numbers)] == ODD_IDS


def written(path: Path, outcomes: Iterable[AnyOutcome]) -> Path:
    """A label file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    api.write_labels(outcomes, path)
    return path


@pytest.fixture(params=["l.jsonl.gz", "l.parquet", "in", "in/*/*.parquet", "several"])
def sources(request: pytest.FixtureRequest, files: Files, tmp_path: Path) -> list[Path]:
    """The labels in every form that the command reads."""
    made, folder = list(stored_outcomes(files[0])), tmp_path / "in"
    if request.param.startswith("l."):
        return [written(tmp_path / request.param, made)]
    names = {"day=1/a": made[:20], "day=2/a": made[20:40], "day=2/b": made[40:], "day=3/none": []}
    paths = [written(folder / f"{name}.parquet", part) for name, part in names.items()]
    return paths[:3] if request.param == "several" else [tmp_path / request.param]


@pytest.mark.parametrize("options", ["", "--by topic --group question", "--metrics all"])
def test_every_form_of_labels_has_the_same_numbers(
    sources: list[Path], options: str, files: Files, labeler_command: Command
) -> None:
    """Compressed, as Parquet, in a folder, by a pattern, and in several files."""
    want = labeler_command("metrics", files[0], "--json", *options.split())
    assert want[0] == 0
    assert labeler_command("metrics", *sources, "--json", *options.split()) == want


def test_a_store_has_the_numbers_of_its_labels(files: Files, labeler_command: Command) -> None:
    """It keeps no failures, and no copies."""
    kept = [one for one in stored_outcomes(files[0]) if not isinstance(one, LabelFailure)]
    labeler.store.import_labels(kept, "store")
    code, out, _ = labeler_command("metrics", "store", "--json")
    rows = [row.as_json(__version__) for row in labeler.summary(kept, intervals=Intervals())]
    assert (code, json.loads(out)) == (0, [{**row, "duplicates": 0} for row in rows])


def test_failed_rows_have_their_reasons(labeler_command: Command, tmp_path: Path) -> None:
    """Below the table, also where no row has a label."""
    path = written(tmp_path / "l.jsonl", [failure("a"), failure("b")])
    found = labeler_command("metrics", path, "--details")
    assert "\nfailed: 2 refusal\n" in found[1]
    numbers = tmp_path / "numbers.csv"
    labeler_command("metrics", path, "--rows", "-o", numbers)
    assert labeler_command("metrics", numbers, "--details") == found


def test_labels_with_a_number_too_large_are_read(labeler_command: Command, tmp_path: Path) -> None:
    """JSON holds it, and no float does."""
    made = record(metadata={"half": "PLACE"})
    path = written(tmp_path / "l.jsonl", [made, record(id="b", metadata={"half": 1})])
    path.write_text(path.read_text().replace('"PLACE"', "1e999"))
    code, out, _ = labeler_command("metrics", path, "--json", "--by", "half")
    assert (code, {row["group"] for row in json.loads(out)}) == (0, {"1", "Infinity"})
