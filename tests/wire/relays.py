"""What may stand before a server in a real network: a proxy that asks for credentials, and TLS."""

from __future__ import annotations

import base64
import select
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import pytest


class Relay:
    """A listener on loopback that connects each peer to another place.

    Use as a context manager.

    Args:
        target: port on loopback that every connection is passed to.
        tls: context of the server's side; by default plain text.
    """

    def __init__(self, target: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._tls = target, tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listening.accept()
                self._open.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with suppress(OSError):
            if self._tls is not None:
                peer = self._tls.wrap_socket(peer, server_side=True)
                self._open.append(peer)
            self.meet(peer)

    def meet(self, peer: socket.socket) -> None:
        """Serve one connection."""
        self.join(peer, self._target)

    def join(self, peer: socket.socket, port: int, first: bytes = b"", drop: bytes = b"") -> None:
        """Pass bytes between a peer and a port on loopback, without some that a peer sends."""
        with socket.create_connection(("127.0.0.1", port)) as other:
            other.sendall(first.replace(drop, b"") if drop else first)
            while True:
                waits = isinstance(peer, ssl.SSLSocket) and peer.pending()
                for one in [peer] if waits else select.select([peer, other], [], [])[0]:
                    piece = one.recv(65536)
                    if not piece:
                        return
                    if one is peer:
                        other.sendall(piece.replace(drop, b"") if drop else piece)
                    else:
                        peer.sendall(piece)


class Proxy(Relay):
    """A forward proxy, also for ``CONNECT``, that may ask for a user and a password.

    Every host is looked for on loopback, whatever its name.

    Attributes:
        asked: hosts that it was to connect to, in order, with port.
    """

    def __init__(self, user: str = "", password: str = "") -> None:
        super().__init__()
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._expected = f"proxy-authorization: basic {credentials}".lower() if user else ""
        self.asked: list[str] = []

    def meet(self, peer: socket.socket) -> None:
        """Read the head of a request, and pass it on if the credentials are right."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = peer.recv(65536)
            if not piece:
                return
            head += piece
        method, target, *_ = head.decode("latin-1").split(" ", 2)
        if self._expected not in head.decode("latin-1").lower():
            peer.sendall(
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n"
                b'proxy-authenticate: Basic realm="x"\r\nconnection: close\r\n\r\n'
            )
            return
        host = target if method == "CONNECT" else urlsplit(target).netloc
        self.asked.append(host)
        port = int(host.rpartition(":")[2])
        if method == "CONNECT":
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self.join(peer, port)
        else:
            self.join(peer, port, head, f"http://{host}".encode())


class Authority(NamedTuple):
    """A certificate authority of a test."""

    ca_file: Path
    context: ssl.SSLContext
    """Of a server with a certificate for the host."""


def authority(folder: Path, host: str) -> Authority:
    """Make an authority, and a certificate for a host; both last as long as the folder."""
    ca, key, server, request = (folder / f"{n}.pem" for n in ("ca", "key", "server", "request"))
    extensions = folder / "extensions"
    extensions.write_text(f"subjectAltName=DNS:{host}\nauthorityKeyIdentifier=keyid\n")
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    signed = ["-CA", ca, "-CAkey", folder / "ca-key.pem", "-CAcreateserial", "-days", "2"]
    made = ["-x509", "-days", "2", "-addext", "keyUsage=critical,keyCertSign"]
    for command in (
        [*new, *made, "-subj", "/CN=Test", "-out", ca, "-keyout", folder / "ca-key.pem"],
        [*new, "-subj", f"/CN={host}", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, *signed, "-extfile", extensions, "-out", server],
    ):
        openssl = shutil.which("openssl") or pytest.skip("needs the program openssl")
        subprocess.run([openssl, *map(str, command)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server, key)
    return Authority(ca, context)
