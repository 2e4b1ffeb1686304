"""Watches for code that is run while the package reads data, and for what it says to sockets.

The interpreter raises audit events for its own good reasons all the time: an import unmarshals and
executes a module, a dataclass compiles its methods, an annotation in quotes is evaluated. So an
event is judged by the frames below it, from the innermost outwards:

* ``compile``, ``exec``, ``marshal.loads`` and the start of a program: the first frame that is
  telling decides. The import system means that a module is loaded: right. A place that reads
  nothing but source, such as a definer of classes in the standard library, is right too (see
  FROM_SOURCE). A frame of ours means that something reached from our code runs or reads code as
  data: wrong, however many frames of libraries lie between. With no telling frame the event is not
  of our making, such as pytest rewriting assertions; but in a thread that no test started it is
  wrong all the same, for a library may hand our work to a thread of its own.
* ``pickle.find_class``: wrong wherever it comes from. Everything that a pickle can run comes
  through it; a pickle of numbers and texts alone does not.

What this cannot see: programs that a test starts, an import whose name comes from data, and code
inside C extensions that is neither compiled nor unpickled. A hook cannot be taken out again, so
there is one for a process.
"""

from __future__ import annotations

import _socket
import contextlib
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import NamedTuple

CODE = frozenset({"compile", "exec", "marshal.load", "marshal.loads"})
PROCESSES = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"})
UNPICKLING = "pickle.find_class"
WATCHED = CODE | PROCESSES | {UNPICKLING}

IMPORTING = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
FROM_SOURCE = frozenset(
    {
        ("annotationlib", "__forward_code__"),  # of Python 3.14 and later, as in typing before
        ("annotationlib", "evaluate"),
        ("annotationlib", "get_annotations"),
        ("collections", "namedtuple"),
        ("dataclasses", "_create_fn"),
        ("dataclasses", "add_fns_to_class"),  # the same, from Python 3.13 on
        ("inspect", "get_annotations"),
        ("platform", "from_subprocess"),
        ("typing", "__init__"),
        ("typing", "_evaluate"),
        ("traceback", "_extract_caret_anchors_from_line_segment"),
    }
)
"""Module and function of what reads nothing but source and this machine: makers of classes and
annotations, a traceback's pointer into a source line, and the call of ``uname`` for the processor,
which openai names in a header."""
OF_TEMPLATES = frozenset({("jinja2.environment", "_compile"), ("jinja2.environment", "from_code")})
"""Module and function of what compiles and runs templates: right for the files of our pages, which
are source too, and wrong for any other text, such as a message that a library takes for one."""
OF_USERS = frozenset({("labeler.judges.openai.server", "__call__")})
"""Module and function of what starts a program that the user named, to print an API key."""


class Contact(NamedTuple):
    """One thing that was asked of the socket module."""

    event: str
    """Such as ``socket.connect``."""
    what: object
    """The address, the name that was looked up, or the family of a new socket."""


class Audit:
    """One hook for a process, and what it found.

    Args:
        root: folder of the code that is ours.
        tests: folder of the tests: what their threads do is no concern.
    """

    def __init__(self, root: Path, tests: Path) -> None:
        self.found: list[str] = []
        """What was wrong: the event, and where it came from."""
        self.seen: Counter[str] = Counter()
        """Watched events of any kind: a hook that sees none is not installed."""
        self._root, self._tests = str(root), str(tests)
        self._assets = (
            f"{root}/report/assets/",
            f"{root}/review/assets/",
        )
        self._contacts: list[Contact] | None = None

    def install(self) -> None:
        """Watch from now on, for as long as the process lives."""
        sys.addaudithook(self._notice)

    def take(self) -> list[str]:
        """What was found since the last time."""
        found, self.found = self.found, []
        return found

    @contextlib.contextmanager
    def contacts(self) -> Iterator[list[Contact]]:
        """Write down what is asked of the socket module, by any thread."""
        contacts: list[Contact] = []
        self._contacts = contacts
        try:
            yield contacts
        finally:
            self._contacts = None

    def _notice(self, event: str, arguments: tuple[object, ...]) -> None:
        # Called for every file that is opened and every frame that is looked at: names first.
        if event in WATCHED:
            self.seen[event] += 1
            frame = sys._getframe(1)
            if self._is_wrong(event, frame):
                self.found.append(f"{event} {arguments!r:.100} at {_place(frame)}")
        elif self._contacts is not None and event.startswith("socket."):
            contact = _contact(event, arguments)
            if contact != ("socket.sendmsg", None):  # on a connection, from 3.12 on
                self._contacts.append(contact)

    def _is_wrong(self, event: str, innermost: FrameType) -> bool:
        if event == UNPICKLING:
            return True
        frame: FrameType | None = innermost
        ends_in_thread, of_tests = False, False
        while frame is not None:
            code = frame.f_code
            name = (frame.f_globals.get("__name__"), code.co_name)
            if (
                code.co_filename in IMPORTING
                or name in FROM_SOURCE
                or (name in OF_USERS and event in PROCESSES)
            ):
                return False
            if name in OF_TEMPLATES:
                return not _template(frame).startswith(self._assets)
            if code.co_filename.startswith(self._root):
                return True
            of_tests = of_tests or code.co_filename.startswith(self._tests)
            ends_in_thread = name == ("threading", "_bootstrap")
            frame = frame.f_back
        return ends_in_thread and not of_tests


def package_folder() -> Path:
    """The folder of the package as it is installed here; nothing is imported."""
    spec = find_spec("labeler")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _template(frame: FrameType) -> str:
    """The file of the template that a frame compiles or runs; Jinja's own word for a text."""
    given = frame.f_locals.get("code")
    return str(given.co_filename if given is not None else frame.f_locals.get("filename"))


def _place(frame: FrameType) -> str:
    """The innermost frames, without their source lines: reading those is an event too."""
    walked = traceback.walk_stack(frame)
    names = [f"{Path(f.f_code.co_filename).name}:{line}" for f, line in walked]
    return " < ".join(names[:8])


def _contact(event: str, arguments: tuple[object, ...]) -> Contact:
    of_a_socket = bool(arguments) and isinstance(arguments[0], _socket.socket)
    return Contact(event, arguments[1] if of_a_socket and len(arguments) > 1 else arguments)


AUDIT = Audit(package_folder(), Path(__file__).parents[1])
"""Of this process; it is installed once, at the start."""
