"""Access control of the review app, and what its responses never contain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from labeler.errors import StoreError
from labeler.review.access import MOST_BYTES, AccessControl
from labeler.review.app import review_app
from labeler.review.session import ReviewSession
from support.labeled import record
from support.review_sessions import a_session, labels, own, taken_back

PORT = 8123
TOKEN = "a-token-of-this-test"  # noqa: S105 - opens nothing
HOME = f"http://127.0.0.1:{PORT}"
OURS = {"Authorization": f"Bearer {TOKEN}", "Origin": HOME, "Sec-Fetch-Site": "same-origin"}
HOSTILE = '</script><script>alert(1)</script>"><img src=x onerror=alert(1)>'
OWN = own().model_dump(mode="json")


class Harness:
    """A session, and a client of its app."""

    def __init__(self, session: ReviewSession) -> None:
        self.session = session
        self.complaints: list[str] = []
        app = review_app(session, port=PORT, token=TOKEN, on_error=self.complaints.append)
        self.client = TestClient(app, base_url=HOME)

    def body(self, **changes: object) -> dict[str, Any]:
        """An answer to the first record."""
        judged = {"answer": "judged", "judgment": OWN, "comment": ""}
        return {**taken_back(self.session, 0).model_dump(), **judged, **changes}

    def status(self, path: str, **headers: str) -> int:
        """How the page's own request is answered, with other headers."""
        return self.client.get(path, headers=OURS | headers).status_code

    def post(
        self, content: str | bytes | Iterable[bytes] | None = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Send a body as it is, by default the answer to the first record."""
        sent = {**OURS, "Content-Type": "application/json", **headers}
        content = json.dumps(self.body()) if content is None else content
        answer = self.client.post("/api/records/0", content=content, headers=sent)
        return answer.status_code, answer.json()

    def events(self) -> int:
        """How many corrections are stored."""
        return len(self.session.log.file.read().events)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A session over four records without answers."""
    return Harness(a_session(tmp_path))


@pytest.fixture(scope="module")
def unanswered(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """The same for all requests that change nothing."""
    return Harness(a_session(tmp_path_factory.mktemp("unanswered")))


def test_our_own_page_is_served_and_answered(unanswered: Harness) -> None:
    """The page without a token, so without a record or a token; everything else with it."""
    page = unanswered.client.get("/")
    assert page.status_code == 200
    assert "Fact 0." not in page.text
    assert TOKEN not in page.text
    overview = unanswered.client.get("/api/overview", headers=OURS)
    assert (overview.status_code, overview.json()["counts"]["size"]) == (200, 4)


HOSTS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.2")
OTHERS = ("0.0.0.0", "[::1]", "user@127.0.0.1")  # noqa: S104 - nothing listens there


def test_a_name_that_was_made_to_point_here_is_refused(unanswered: Harness) -> None:
    """The page too: a rebound name would be its origin. Both names of this machine are ours."""
    unnamed = ("127.0.0.1", "127.0.0.1:80", "evil.example", "")
    for host in (*unnamed, *(f"{name}:{PORT}" for name in HOSTS + OTHERS)):
        for path in ("/", "/api/overview"):
            named = {"Host": host, "Origin": f"http://{host}"}
            answer = unanswered.client.get(path, headers=OURS | named)
            assert answer.status_code == 421, host
            assert "labels.jsonl" not in answer.text
    for host in (f"localhost:{PORT}", f"LOCALHOST:{PORT}"):
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": host}
        assert unanswered.client.get("/api/overview", headers=headers).status_code == 200


def test_without_the_token_nothing_is_told(unanswered: Harness) -> None:
    """Not even which paths there are; nor for a token that would stand in logs and histories."""
    paths = ("statistics", "records/0", "x", f"overview?token={TOKEN}")
    wrong = ("", "Bearer ", "Bearer wrong", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x")
    others = (f"bearer {TOKEN}", f"Basic {TOKEN}")
    headers = [
        *({"Authorization": value} for value in wrong + others),
        {"Cookie": f"token={TOKEN}"},
    ]
    for path, sent in [*((one, {}) for one in paths), *(("overview", one) for one in headers)]:
        answer = unanswered.client.get(f"/api/{path}", headers=sent)
        assert answer.status_code == 401, (path, sent)
        assert "terminal" in answer.json()["error"]


def test_what_another_page_asks_for_is_refused(unanswered: Harness) -> None:
    """With the right token too; of no page, reading goes and writing does not."""
    origins = ("http://evil.example", "null", f"https://127.0.0.1:{PORT}")
    near = (f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT + 1}", f"{HOME}.evil.example")
    sites = [{"Sec-Fetch-Site": one} for one in ("cross-site", "same-site")]
    for header in [*({"Origin": one} for one in origins + near), *sites]:
        asked = [unanswered.status(path, **header) for path in ("/", "/api/overview")]
        assert [*asked, unanswered.post(**header)[0]] == [403] * 3, header
    nameless = {"Authorization": f"Bearer {TOKEN}"}  # as of an address that was typed in
    assert unanswered.client.get("/api/overview", headers=nameless).status_code == 200
    assert unanswered.client.get("/", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    answer = unanswered.client.post("/api/records/0", json=unanswered.body(), headers=nameless)
    assert answer.status_code == unanswered.post(**{"Sec-Fetch-Site": "none"})[0] == 403
    assert unanswered.events() == 0


@pytest.mark.parametrize("path", ["/", "/api/overview", "/api/records/0"])
def test_other_methods_are_refused(unanswered: Harness, path: str) -> None:
    """No answer allows another origin anything, so the browser never sends what it asked for."""
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    for method in ("OPTIONS", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"):
        for headers in (OURS, {"Origin": "http://evil.example"}):
            answer = unanswered.client.request(method, path, headers={**headers, **asked})
            assert answer.status_code == 405
            assert not [name for name in answer.headers if name.startswith("access-control")]


NOT_UTF_8 = b"\xff\xfe"
DEEP, LONG_NUMBER = "[" * 100_000, '{"a": ' + "9" * 5000 + "}"
UNSOUND = ("", "{", NOT_UTF_8, '{"key": NaN}', '{"key": Infinity}', DEEP, LONG_NUMBER)
UNLIKE_THE_PAGE: list[dict[str, Any]] = [
    {"more": 1},
    {"answer": "maybe"},
    {"annotator": "bob"},
    # The last is half a character, which a file cannot hold.
    *({"comment": text} for text in ("x" * 10_001, None, "\ud800")),
    {"judgment": None},
    {"judgment": {}},
    *({"judgment": {**OWN, "overall_supported": value}} for value in ("yes", 1)),
    *({"judgment": {**OWN, "relevant": value}} for value in (["0z"], "0a")),
    {"judgment": {**OWN, "support": {"a": ["../../etc/passwd"]}}},
    {"judgment": {**OWN, "extra": []}},
    {"answer": "agree"},
    *({"answer": other} for other in ("unsure", None)),
]

ENDLESS = [b" " * 65_536] * (MOST_BYTES // 65_536 + 1)
"""A body that comes in pieces and does not say its length."""
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "")
"""Content types that a form can send without asking, or that are not JSON."""
REFUSED: list[tuple[int, str, Any]] = [
    *((422, "application/json", sent) for sent in (*UNSOUND, *UNLIKE_THE_PAGE)),
    *((415, kind, {}) for kind in FORMS),
    *((413, "application/json", sent) for sent in ({"comment": "x" * MOST_BYTES}, ENDLESS)),
    # The label of another place, as an outdated page sends it, and of none.
    *((409, "application/json", {"key": key}) for key in (labels()[1].key, "f" * 64)),
]


@pytest.mark.parametrize(("status", "kind", "sent"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_the_page_would_not_send_is_refused(
    unanswered: Harness, status: int, kind: str, sent: str | bytes | list[bytes] | Mapping[str, Any]
) -> None:
    """Nothing is guessed, and nothing is stored."""
    content = json.dumps(unanswered.body(**sent)) if isinstance(sent, Mapping) else sent
    found, answer = unanswered.post(content, **{"Content-Type": kind})
    assert (found, bool(answer["error"]), unanswered.events()) == (status, True, 0)


NOWHERE = (
    "/api/records/4",
    "/api/records/999999999999999999999",
    f"/api/records/{'9' * 5000}",
    "/api/records/-1",
    "/api/records/r0",
    "/api/records/0/",
    "/api/records/0/../../../../etc/passwd",
    "/api/records/..%2f..%2fetc%2fpasswd",
    "/api/records/%2e%2e/%2e%2e",
    *("/..%2f..%2fetc/passwd", "/etc/passwd", "/review.js", "/static/review.js"),
    *("/labels.jsonl", "/labels.corrections.jsonl", "/docs", "/index.html"),
)


def test_nothing_else_is_served(unanswered: Harness) -> None:
    """No file, no folder, no place beyond the queue."""
    for path in NOWHERE:
        answer = unanswered.client.get(path, headers=OURS, follow_redirects=False)
        assert (answer.status_code, "root:" in answer.text) == (404, False), path


GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def test_every_answer_carries_its_guards(unanswered: Harness) -> None:
    """Refusals too; and none says what serves it. The page runs its own script alone."""
    get = unanswered.client.get
    page = get("/")
    refused = (get("/api/overview"), get("/", headers={"Host": "evil.example"}), get("/nothing"))
    for answer in (page, get("/api/overview", headers=OURS), *refused):
        assert {name: answer.headers[name] for name in GUARDS} == GUARDS
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert "server" not in answer.headers
    policy = page.headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in policy
    assert rules["connect-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"


def test_texts_of_strangers_stay_texts(tmp_path: Path) -> None:
    """A file's name in the title of the page; those of records leave as JSON."""
    told = [record(id="r0", documents=[[HOSTILE, "More.\u202e"]])]
    client = Harness(a_session(tmp_path, records=told, name=HOSTILE)).client
    page = client.get("/").text
    assert ("<img" in page, page.count("<script>")) == (False, 1)
    answer = client.get("/api/records/0", headers=OURS)
    assert answer.headers["Content-Type"] == "application/json"
    texts = [sentence["text"] for sentence in answer.json()["record"]["documents"][0]]
    assert texts == [HOSTILE, "More.<U+202E>"]


def test_blind_answers_hold_no_verdict(tmp_path: Path) -> None:
    """Searched as the bytes that leave the server; and afterwards it is all there."""
    told = [record(id="r0", documents=[["Fact.", "More."]], metadata={"secret": "gold"})]
    harness = Harness(a_session(tmp_path, records=told, blind=True))
    answer = harness.client.get("/api/records/0", headers=OURS)
    assert "Fact." in answer.text
    for secret in ("because", "gold", "adherence", 'doubt":0', str(told[0].signature)):
        assert secret not in answer.text
    agreed = json.dumps(harness.body(answer="agree", judgment=None))
    for content, status in ((agreed, 409), (None, 200)):
        found, shown = harness.post(content)
        assert (found, "because" in json.dumps(shown)) == (status, status == 200)


def test_a_correction_is_in_the_file_before_the_answer(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where it cannot be stored, the answer is no success and names no path."""
    assert (harness.post()[0], harness.events()) == (200, 1)

    full = StoreError(f"{harness.session.log.file.path}: no space is left")
    monkeypatch.setattr(harness.session.log.file, "append", Mock(side_effect=full))
    status, answer = harness.post()
    assert status == 500
    assert "try again" in answer["error"]
    assert str(harness.session.log.file.path.parent) not in json.dumps(answer)
    assert "no space is left" in harness.complaints[0]
    assert harness.events() == 1


def test_no_answer_tells_of_inner_faults(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal does, in one line."""
    broken = Mock(side_effect=RuntimeError("secret of /home"))
    monkeypatch.setattr(harness.session.log, "snapshot", broken)
    answer = harness.client.get("/api/overview", headers=OURS)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert harness.complaints == ["the review app failed to answer: RuntimeError: secret of /home"]


def test_what_was_saved_is_in_the_figures_and_can_be_taken_back(harness: Harness) -> None:
    """Once; the figures begin with the first judgment."""
    for judged in (0, 1):
        assert harness.client.get("/api/statistics", headers=OURS).json()["judged"] == judged
        harness.post()
    key = taken_back(harness.session, 0).model_dump()
    path = "/api/records/0"
    answer = harness.client.post(path, json=key, headers=OURS)
    assert (answer.status_code, answer.json()["mine"]) == (200, None)
    assert harness.client.post(path, json=key, headers=OURS).status_code == 409


def test_the_usual_port_may_be_left_out() -> None:
    """As browsers do, in Host and in Origin; any other may not."""
    reached: list[bool] = []

    async def behind(_scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(True)
        raise HTTPException(404, "nothing")

    gate = AccessControl(behind, port=80, token=TOKEN, on_error=print)
    client = TestClient(gate, base_url="http://127.0.0.1")
    assert client.get("/").status_code == 404
    written = client.post("/", headers={"Origin": "http://127.0.0.1"})
    assert (written.status_code, reached) == (404, [True, True])
