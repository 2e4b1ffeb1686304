"""The review app in a browser: judging by click and key, blindly, and when its server ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.driving import PHONE, VIEWS, Visits, expect, faults, fits
from labeler.data.corrections import Correction
from labeler.evidence.units import Units
from labeler.labels.record import LabelRecord
from labeler.review.app import Address, listening, review_server
from labeler.review.plan_reading import PlanReading
from labeler.review.session import ReviewSession
from labeler.sentences.characters import visible
from support.labeled import record
from support.payloads import PAYLOADS, hostile_records
from support.plans import read_cells, write_cells
from support.review_sessions import a_session, labels

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def served(session: ReviewSession | PlanReading, port: int = 0) -> Iterator[Address]:
    """Serve a session until the block ends."""
    complaints: list[str] = []
    with listening(port) as (taken, address):
        server = review_server(session, address=address, on_error=complaints.append)
        running = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        running.start()
        try:
            yield address
        finally:
            server.should_exit = True
            running.join(timeout=60)
    assert not complaints


class Opener:
    """Opens sessions with one corrections folder, each on its own server."""

    def __init__(self, visits: Visits, folder: Path, servers: ExitStack) -> None:
        self.session: ReviewSession
        self._visits, self._folder, self._servers = visits, folder, servers

    def __call__(self, settings: dict[str, Any] | None = None, **options: Any) -> Page:
        """The page, with its first record drawn.

        Args:
            settings: of the browser.
            options: of the session.
        """
        self.session = a_session(self._folder, **options)
        address = self._servers.enter_context(served(self.session))
        own = f"http://127.0.0.1:{address.port}/"
        page = self._visits.open(str(address), own=own, **(settings or {}))
        expect(page.locator(".record")).to_be_visible()
        return page

    def stored(self) -> tuple[Correction, ...]:
        """What stands in the file."""
        return self.session.log.file.read().events


@pytest.fixture
def open_page(visits: Visits, tmp_path: Path) -> Iterator[Opener]:
    """Open the pages of sessions in the test's folder."""
    with ExitStack() as servers:
        yield Opener(visits, tmp_path, servers)
        visits.end()  # before its server: a page may still ask for the next record


def place(page: Page, number: int) -> None:
    """Wait until the record of a number is shown."""
    expect(page.locator("#position")).to_have_value(str(number))


def status(page: Page, text: str) -> None:
    """Wait until the page says what was done."""
    expect(page.locator("#status")).to_contain_text(text)


def press(page: Page, **keys: int | str) -> None:
    """Press keys, and wait after each for the number of a record or a status."""
    for key, then in keys.items():
        page.keyboard.press(key)
        place(page, then) if isinstance(then, int) else status(page, then)


def sentence(page: Page, key: str) -> Any:
    """A sentence's row."""
    return page.locator(f'.sentence[data-key="{key}"]')


def test_one_key_agrees_and_goes_on(open_page: Opener) -> None:
    """What the button says is stored, and the next record comes.

    The token leaves the address at once, from which it could be copied; loading the page anew
    works without it.
    """
    page = open_page()
    assert "token" not in page.url
    page.reload()
    expect(page.locator(".record")).to_be_visible()
    expect(page.locator("#who")).to_contain_text("4 records, in file order")
    press(page, k="This is the first record", z="Nothing to undo", a=2)
    status(page, "Saved record 1: you agree")
    expect(page.locator("#counts")).to_contain_text("3 of 4 left")
    page.get_by_role("button", name="Agree").click()
    place(page, 3)
    assert [event.opinion for event in open_page.stored()] == ["agree", "agree"]


def test_a_page_that_is_loaded_again_goes_on(open_page: Opener) -> None:
    """At the record that was shown, and without single keys where they were turned off."""
    page = open_page()
    for number, then in ((9, "Enter a number from 1 to 4"), (3, 3)):
        page.locator("#position").fill(str(number))
        press(page, Enter=then)
    page.keyboard.press("?")
    page.get_by_label("Single keys work").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    place(page, 3)
    page.keyboard.press("n")
    page.locator("#help-open").click()
    expect(page.get_by_label("Single keys work")).not_to_be_checked()
    assert open_page.stored() == ()


def test_marks_are_turned_by_click_and_by_key(open_page: Opener) -> None:
    """And what is stored is what the page shows."""
    page = open_page()
    for key in ("a", "a", "b"):
        sentence(page, key).press("s")
    expect(page.locator(".chosen")).to_have_attribute("data-key", "b")
    mark = sentence(page, "b").locator(".mark.verdict")
    expect(mark).to_have_attribute("aria-label", "not supported (the judge: supported)")
    expect(page.locator(".explanation")).to_contain_text("You✗ not supported")
    expect(page.locator(".overall-button")).to_contain_text("not supported")
    relevant = sentence(page, "0b").get_by_role("button", name="relevant")
    expect(relevant).to_have_attribute("aria-pressed", "false")
    relevant.click()
    expect(relevant).to_have_attribute("aria-pressed", "true")
    sentence(page, "0a").click()
    page.keyboard.press("u")
    expect(sentence(page, "0a")).to_be_focused()
    expect(page.locator("#differences")).to_contain_text("4 differences from the judge")
    page.locator("#comment").fill("b goes too far")
    press(page, **{"Control+Enter": 2})
    [event] = open_page.stored()
    assert (event.opinion, event.comment) == ("disagree", "b goes too far")
    assert event.judgment is not None
    assert event.judgment.model_dump() == {
        "relevant": ("0a", "0b"),
        "utilized": (),
        "support": {"a": ("0a",)},
        "overall_supported": False,
    }
    page.keyboard.press("k")
    expect(page.locator("#comment")).to_have_value("b goes too far")
    sentence(page, "b").press("s")
    expect(page.locator(".overall-button")).to_contain_text("not supported")


def test_keys_change_the_marked_sentence_at_once(open_page: Opener) -> None:
    """It has the focus: nothing is clicked before, on the first record or on the next."""
    page = open_page()
    for number in (1, 2):
        place(page, number)
        expect(page.locator("[aria-current]")).to_have_attribute("data-key", "a")
        expect(sentence(page, "a")).to_be_focused()
        for key in ("ArrowDown", "s", "ArrowLeft", "r", "d"):
            page.keyboard.press(key)
    place(page, 3)
    for event in open_page.stored():
        assert event.judgment is not None
        assert (event.judgment.relevant, event.judgment.support) == ((), {"a": ("0a",)})


ELSEWHERE: tuple[Callable[[Any], object], ...] = (
    lambda page: page.locator(".question").click(),
    lambda page: page.locator("#figures-open").click(),
    lambda page: (page.keyboard.press("s"), page.locator("#reset").click()),  # disabled then
    lambda page: sentence(page, "0b").hover(),
    lambda page: (page.locator("#help-open").click(), page.keyboard.press("Escape")),
    lambda page: (page.locator("#comment").click(), page.keyboard.press("Escape")),
)


def test_keys_change_the_marked_sentence_wherever_the_mouse_was(open_page: Opener) -> None:
    """The mark stays where it is, and gets the keys."""
    page = open_page(records=labels(len(ELSEWHERE)))
    for number, go in enumerate(ELSEWHERE, start=1):
        place(page, number)
        sentence(page, "b").click()
        go(page)
        marked = page.locator("[aria-current]").get_attribute("data-key")
        page.keyboard.press("s")
        page.keyboard.press("d")
        expect(page.locator("#counts")).to_contain_text(f"{number} disagree")
        judgment = open_page.stored()[-1].judgment
        assert judgment is not None
        assert {"a", "b"} - judgment.support.keys() == {marked}


def test_saving_without_a_look_asks_first(open_page: Opener) -> None:
    """By key and by mouse; neither a key that is held down nor a double click confirms."""
    page = open_page()
    page.keyboard.down("d")
    page.keyboard.down("d")
    page.keyboard.up("d")
    status(page, "You changed nothing. Press d again to agree")
    press(page, j=2)
    page.locator("#save").dblclick()
    status(page, "You changed nothing")
    assert open_page.stored() == ()
    page.wait_for_timeout(600)  # so that the next click is no third one
    page.locator("#save").click()
    place(page, 3)
    sentence(page, "b").locator(".mark.verdict").click()
    page.locator("#save").click()
    place(page, 4)
    press(page, k=3, d=4)  # it was looked at before
    assert [event.opinion for event in open_page.stored()] == ["agree", "disagree", "disagree"]


def test_a_document_sentence_is_linked_to_the_chosen_one(open_page: Opener) -> None:
    """By its button, and off again by Enter; or by arrows and the space bar."""
    page = open_page()
    sentence(page, "a").click()
    sentence(page, "1a").get_by_role("button", name="supports a").click()
    sentence(page, "0a").press("Enter")
    sentence(page, "b").focus()
    for key in ("ArrowLeft", "ArrowDown", "ArrowDown", "Space"):
        page.keyboard.press(key)
    expect(sentence(page, "b").locator(".support")).to_have_text("0b 1a")
    expect(sentence(page, "1a")).to_have_class("sentence lit")
    sentence(page, "b").focus()
    page.get_by_role("button", name="numerical_reasoning").click()
    page.locator(".overall-button").click()
    press(page, d=2)
    judgment = open_page.stored()[0].judgment
    assert judgment is not None
    assert judgment.support == {"a": ("1a",), "b": ("0b", "1a", "numerical_reasoning")}
    assert not judgment.overall_supported


def test_undo_takes_back_the_last_answer_alone(open_page: Opener) -> None:
    """The record comes back, not judged; or with the answer and comment that were replaced."""
    page = open_page()
    press(page, n="unsure")
    expect(page.locator("#counts")).to_contain_text("3 of 4 left")
    press(page, z="Undone")
    expect(page.locator("#counts")).to_contain_text("4 of 4 left")
    sentence(page, "b").press("s")
    page.locator("#comment").fill("not there")
    press(page, **{"Control+Enter": 2}, k=1, n="you are unsure")
    place(page, 2)
    press(page, z="record 1 has your earlier answer")
    _, withdrawn, first, unsure, restored = open_page.stored()
    assert (withdrawn.withdrawn, unsure.opinion, restored.opinion) == (True, "unsure", "disagree")
    assert (restored.judgment, restored.comment) == (first.judgment, "not there")


def test_unsaved_marks_survive_moving_on(open_page: Opener) -> None:
    """They stand there until they are saved or thrown away; a comment may hold any letter."""
    page = open_page()
    page.locator("#comment").press_sequentially("a dank zany jaunt")
    assert page.locator("#comment").input_value() == "a dank zany jaunt"
    place(page, 1)
    sentence(page, "b").press("s")
    page.keyboard.press("o")
    expect(page.get_by_role("button", name="Agree")).to_be_disabled()
    press(page, a="Your marks differ from the judge's", j=2, k=1)
    expect(page.locator("#differences")).to_contain_text("1 difference from the judge")
    page.locator("#reset").click()
    page.keyboard.press("s")
    expect(page.locator("#differences")).to_contain_text("2 differences from the judge")
    page.locator("#reset").click()
    page.locator("#comment").fill("")
    expect(page.locator("#differences")).to_contain_text("No changes")
    page.reload()  # the browser would ask if anything was unsaved
    assert open_page.stored() == ()


def test_a_blind_person_judges_first_and_then_sees_the_judge(open_page: Opener) -> None:
    """Nothing of the label is in the page before; every response sentence must be decided.

    Who marks a document sentence knows of marks, and is not asked whether any is relevant.
    """
    page = open_page(blind=True)
    assert "because" not in page.content()
    expect(page.get_by_role("button", name="Agree")).to_be_hidden()
    whole, chips = page.locator(".overall-button"), page.locator(".record-head .chips")
    expect(whole).to_have_text("? not judged overall")
    expect(whole).to_have_attribute("aria-pressed", "mixed")
    expect(chips).to_contain_text("? 2 sentences not judged")
    press(page, a="hidden", o="Decide on the sentences", d="Undecided")
    sentence(page, "a").press("s")
    expect(whole).to_have_text("? not judged overall")
    expect(chips).to_contain_text("1 of 2 sentences supported, 1 not judged")
    page.keyboard.press("d")
    expect(sentence(page, "b")).to_be_focused()
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(whole).to_contain_text("not supported")
    press(page, d="No sentence is relevant (R) or utilized (U). Press d again")
    assert open_page.stored() == ()
    page.keyboard.press("d")
    expect(page.locator("#lead")).to_contain_text("you disagree with the judge")
    expect(page.locator("#differences")).to_contain_text("not supported")
    assert "because" in page.content()
    assert open_page.stored()[0].blind
    press(page, Enter=2)
    assert "because" not in page.content()
    for key, letter in (("a", "s"), ("b", "s"), ("0a", "u")):
        sentence(page, key).press(letter)
    page.keyboard.press("d")
    expect(page.locator("#differences")).to_contain_text("not relevant")
    judgment = open_page.stored()[1].judgment
    assert judgment is not None
    assert (judgment.relevant, judgment.utilized) == ((), ("0a",))


def test_figures_follow_each_judgment(open_page: Opener) -> None:
    """While they are shown; before, the response is seen whole, above the bar."""
    page = open_page(queue="random")
    response = page.locator(".record-response").bounding_box()
    bar = page.locator(".review-bar").bounding_box()
    assert response is not None
    assert bar is not None
    assert response["y"] + response["height"] <= bar["y"]
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("f")
    expect(page.locator("#figures")).to_contain_text("No judgments yet")
    page.keyboard.press("a")
    expect(page.locator("#figures")).to_contain_text("1 judged record")
    page.keyboard.press("a")
    for words in ("2 judged records", "100.0 %", "change no mean", "2 random records"):
        expect(page.locator("#figures")).to_contain_text(words)
    expect(page.locator("#figures table").nth(1)).to_contain_text("1.000")


def test_hostile_texts_stay_texts(open_page: Opener) -> None:
    """Before and after they are judged, and as one's own comment; the fixture sees what runs.

    The tests of the report open a record of every payload; of these, each sixth is enough.
    """
    by_key = {one.key: one for one in hostile_records() if isinstance(one, LabelRecord)}
    records = [*by_key.values()][::6]
    page = open_page(records=records, name=records[0].example.question)
    for number, one in enumerate(records, start=1):
        place(page, number)
        sentence(page, "a").click()
        page.locator("#comment").fill(one.example.question)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#counts")).to_contain_text(
            f"{len(records) - number} of {len(records)} left"
        )
    status(page, "All records are judged")
    assert page.locator("#later:disabled, #next:disabled").count() == 2
    press(page, l="You have judged every record")
    expect(page.locator(".review-change")).to_contain_text("Corrections change")
    expect(page.locator("#figures table").first).to_be_visible()


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_fault(open_page: Opener, view: dict[str, Any]) -> None:
    """With figures and changes in sight, and in the help."""
    page = open_page({**view, "reduced_motion": "reduce"}, queue="random")
    for number in (1, 2):
        place(page, number)
        sentence(page, "b").click()
        page.keyboard.press("s")
        page.keyboard.press("d" if number == 1 else "f")
    expect(page.locator("#figures table").first).to_be_visible()
    assert faults(page) == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(page, "#help") == []


def test_a_phone_shows_all_without_scrolling_sideways(open_page: Opener) -> None:
    """With targets of 44 pixels at least in both directions, and one can judge by tapping."""
    page = open_page({"viewport": PHONE, "has_touch": True})
    sentence(page, "b").tap()
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.locator("button, input, select, summary, a[href]").evaluate_all(_SMALL) == []
    sentence(page, "b").locator(".mark.verdict").tap()
    page.get_by_role("button", name="Save").tap()
    place(page, 2)
    assert fits(page)
    assert [event.opinion for event in open_page.stored()] == ["disagree"]


_SMALL = """nodes => nodes.filter(node => node.checkVisibility()).map(node => {
  const { width, height } = node.getBoundingClientRect();
  return [node.outerHTML.slice(0, 80), width, height];
}).filter(([, width, height]) => Math.min(width, height) < 44)"""


def test_agreement_needs_a_look_at_each_document(open_page: Opener) -> None:
    """The first press leads to a document out of sight, the second agrees."""
    page = open_page({"viewport": {"width": 1280, "height": 360}})
    for key in "ad":  # to save the judge's own marks is to agree
        press(page, **{key: "Not seen yet: Document 1"}, j=2, k=1)
    assert open_page.stored() == ()
    page.keyboard.press("a")
    press(page, a=2)


def test_work_survives_a_server_that_ends(browser: Browser, tmp_path: Path) -> None:
    """The page says so, keeps what was entered, and goes on where the new address is opened.

    With the token of an old address it says which one to open.
    """
    context = browser.new_context()
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    session = a_session(tmp_path)
    with served(session) as address:
        page.goto(str(address))
        sentence(page, "b").click()
        press(page, d=2)
        sentence(page, "b").press("s")
        with page.expect_event("dialog"):  # as there are unsaved marks
            page.reload()
        place(page, 2)
        expect(page.locator("#differences")).to_contain_text("2 differences from the judge")
    page.keyboard.press("d")
    expect(page.get_by_role("alert")).to_contain_text(f"--port {address.port}")
    expect(page.locator("#differences")).to_contain_text("2 differences from the judge")
    assert len(session.log.file.read().events) == 1
    with served(a_session(tmp_path), address.port) as again:
        page.goto(str(again).replace(again.token, "old"))
        expect(page.get_by_role("alert")).to_contain_text("open the address that the terminal")
        page.goto(str(again))
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.locator("#counts")).to_contain_text("3 of 4 left")
        place(page, 2)
        expect(page.locator("#differences")).to_contain_text("2 differences from the judge")
        press(page, d=3)
    context.close()
    assert [event.opinion for event in session.log.file.read().events] == ["agree", "disagree"]


def test_a_plan_is_read_with_one_key_an_answer(visits: Visits, tmp_path: Path) -> None:
    """Hostile texts stay texts; an answer is taken back; at the end the page says so."""
    plan, answers = tmp_path / "plan.csv", tmp_path / "answers.csv"
    hostile = [one for one in PAYLOADS if one.strip()][:2]
    read = [record(id=text, documents=[[text]]) for text in hostile]
    goal = {"metric": "relevance", "within": 0.1}
    header = json.dumps({"goal": goal, "labels": Units(read, "relevance").digest()})
    write_cells(plan, ({"plan": header, "id": text, "sentence": "0a"} for text in hostile))
    with served(PlanReading(plan, read, answers, "ann")) as address:
        page = visits.open(str(address), own=f"http://127.0.0.1:{address.port}/")
        assert faults(page) == []
        for key, place_after in (("k", 0), ("j", 1), ("y", 0)):
            page.keyboard.down(key)
            expect(page.locator(".read")).to_have_text(visible(hostile[place_after]))
            page.keyboard.down(key)  # held down
            page.keyboard.up(key)
        page.keyboard.press("z")
        expect(page.locator("#counts")).to_have_text("2 of 2 left")
        expect(page.locator("#progress")).to_have_js_property("value", 0)
        press(page, z="Nothing to undo")
        page.keyboard.press("n")
        expect(page.locator("#counts")).to_have_text("1 of 2 left")
        page.keyboard.press("j")
        expect(page.get_by_role("button", name="No")).to_have_attribute("aria-pressed", "true")
        page.reload()
        expect(page.locator(".read")).to_have_text(visible(hostile[0]))
        page.get_by_role("button", name="Yes").click()
        expect(page.locator(".done")).to_contain_text("All sentences are read")
        page.set_viewport_size(PHONE)
        assert fits(page)
    assert [row["answer"] for row in read_cells(answers)] == ["yes", "no"]
