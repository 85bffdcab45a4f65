"""Fetches a feed from a URL that an editor gave, without letting the URL reach into our own network.

What is guarded: only https; every address of a name must be public (``public_hosts``); the connection goes to the
very address that was checked, so a name cannot change its mind (DNS rebinding), while TLS still verifies the name;
each redirect is checked again; one clock runs over look-ups, handshakes, headers and body; bytes are counted as they
come; nothing is unpacked; no proxy or credential of this machine is used.
"""

import os
import re
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import IO
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.importers.public_hosts import host_name, is_public

CONNECT_SECONDS = 10.0
CHUNK_BYTES = 1 << 16
URL_CHARACTERS = 2000
SHOWN_CHARACTERS = 80
USER_AGENT = "server-catalog-import"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK, _NOT_MODIFIED = 200, 304
_ETAG = re.compile(r'(W/)?"[\x21\x23-\x7e]{0,200}"')
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_KEPT_IN_TARGET = "%/:=&?~+!$,;'@()*[]"

_SENTENCES: dict[str, str | Promise] = {
    "url_malformed": _("This is not a web address: give it as https://host.name/path, without spaces."),
    "url_too_long": _("The address is longer than %(limit)s characters: give a shorter one."),
    "not_https": _("Only addresses that begin with https:// are fetched: ask the source for one."),
    "credentials": _("The address has a user name or password in it: give a link that needs none."),
    "fragment": _("The address has a part after #, which is never sent: leave it out."),
    "port": _("Port %(port)s is not fetched from: give a link without a port."),
    "not_a_name": _("“%(host)s” is not a full host name: give a name such as www.example.com, not a number."),
    "not_public": _(
        "“%(host)s” does not lead to the public internet: check the spelling. Hosts inside a network are never fetched."
    ),
    "unreachable": _("“%(host)s” did not answer: try again later."),
    "certificate": _("“%(host)s” did not prove its name with a valid certificate: tell the source."),
    "not_http": _("“%(host)s” did not answer as a web server does: check the address."),
    "status": _("“%(host)s” answered with status %(status)s instead of the file: open the link in a browser."),
    "too_many_redirects": _("The address was forwarded more than %(limit)s times: give the final one."),
    "redirect_without_target": _("“%(host)s” forwards without saying where to: give the final address."),
    "compressed": _("“%(host)s” sends the file packed although it was asked not to: upload the file instead."),
    "too_large": _("The file is larger than %(limit)s bytes: split it."),
    "cut_short": _("“%(host)s” ended the transfer before the whole file had come: try again later."),
    "too_slow": _("The file had not come after %(limit)s seconds: try again later."),
}


class DownloadRefused(Exception):
    """What may not or could not be fetched; ``str()`` is one sentence that tells nothing of inner addresses."""

    def __init__(self, code: str, **params: str | int | float) -> None:
        super().__init__(code)
        self.code = code
        self.params: Mapping[str, str | int | float] = params

    def __str__(self) -> str:
        return str(_SENTENCES[self.code]) % self.params


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadLimits:
    """``seconds`` is wall time over everything; ``bytes`` counts the body of one answer."""

    bytes: int = 50_000_000
    seconds: float = 60.0
    redirects: int = 3
    ports: frozenset[int] = frozenset({443})


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """What came. Where it is ``not_modified`` nothing was written: ``path`` is None, ``sha256`` empty, ``size`` 0."""

    path: Path | None
    sha256: str
    size: int
    etag: str
    not_modified: bool = False


def look_up(host: str, port: int) -> list[str]:
    """All numeric addresses of a name. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_rest, address in found))


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """A connection to a numeric address: no name is looked up again. Raises OSError."""
    return socket.create_connection((address, port), timeout=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How names and addresses are reached; tests put a server of their own in the place of the internet."""

    look_up: Callable[[str, int], list[str]] = look_up
    connect: Callable[[str, int, float], socket.socket] = connect
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context


@dataclass(frozen=True, slots=True)
class _Clock:
    limit: float
    start: float = field(default_factory=monotonic)

    def left(self) -> float:
        """Seconds left, above 0. Raises TimeoutError."""
        left = self.start + self.limit - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(frozen=True, slots=True)
class _Target:
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        return _shown(self.host)


def download(
    url: str, *, to: Path, etag: str = "", limits: DownloadLimits | None = None, network: Network | None = None
) -> Downloaded:
    """Fetches ``url`` into the file ``to``, which appears only when whole. Raises DownloadRefused.

    ``etag``: of the copy that is already here; the source may answer that it has nothing newer.
    """
    limits, network = limits or DownloadLimits(), network or Network()
    clock = _Clock(limits.seconds)
    try:
        for _hop in range(limits.redirects + 1):
            target = _target(url, limits)
            with _answer(target, etag, clock, network) as response:
                if response.status not in _REDIRECTS:
                    return _received(response, target, to, etag, limits)
                url = _next(response, target)
    except TimeoutError as error:
        raise DownloadRefused("too_slow", limit=limits.seconds) from error
    raise DownloadRefused("too_many_redirects", limit=limits.redirects)


def check_address(url: str, *, limits: DownloadLimits | None = None, network: Network | None = None) -> None:
    """Looks the host up and fetches nothing. Raises DownloadRefused where ``download`` would refuse the address."""
    limits = limits or DownloadLimits(seconds=CONNECT_SECONDS)
    try:
        _public_addresses(_target(url, limits), _Clock(limits.seconds), network or Network())
    except TimeoutError as error:
        raise DownloadRefused("too_slow", limit=limits.seconds) from error


def _target(url: str, limits: DownloadLimits) -> _Target:
    if len(url) > URL_CHARACTERS:
        raise DownloadRefused("url_too_long", limit=URL_CHARACTERS)
    parts, port = _split(url)
    if "@" in parts.netloc:
        raise DownloadRefused("credentials")
    if "#" in url:
        raise DownloadRefused("fragment")
    if port not in limits.ports:
        raise DownloadRefused("port", port=port)
    name = host_name(parts.hostname or "")
    if name is None:
        raise DownloadRefused("not_a_name", host=_shown(parts.hostname or ""))
    path = parts.path or "/"
    return _Target(
        name, port, quote(f"{path}?{parts.query}" if parts.query else path, safe=_KEPT_IN_TARGET, errors="replace")
    )


def _split(url: str) -> tuple[SplitResult, int]:
    """The parts and the port. ``urlsplit`` drops some control characters, so they are refused before."""
    if _UNSAFE.search(url):
        raise DownloadRefused("url_malformed")
    try:
        parts = urlsplit(url)
        port = 443 if parts.port is None else parts.port
    except ValueError as error:
        raise DownloadRefused("url_malformed") from error
    if parts.scheme not in ("", "https"):
        raise DownloadRefused("not_https")
    if not parts.scheme or not parts.netloc:
        raise DownloadRefused("url_malformed")
    return parts, port


@contextmanager
def _answer(target: _Target, etag: str, clock: _Clock, network: Network) -> Iterator[HTTPResponse]:
    """The answer to one GET, its body unread."""
    addresses = _public_addresses(target, clock, network)
    with closing(_Connection(target, addresses, clock, network)) as connection:
        with _talking_to(target):
            connection.request("GET", target.path, headers=_headers(etag))
            response = connection.getresponse()
        with response:
            yield response


@contextmanager
def _talking_to(target: _Target) -> Iterator[None]:
    """What goes wrong on the line becomes a refusal; a full disk of ours does not."""
    try:
        yield
    except TimeoutError:
        raise
    except (ssl.SSLEOFError, IncompleteRead) as error:
        raise DownloadRefused("cut_short", host=target.shown) from error
    except ssl.SSLCertVerificationError as error:
        raise DownloadRefused("certificate", host=target.shown) from error
    except OSError as error:
        raise DownloadRefused("unreachable", host=target.shown) from error
    except (HTTPException, ValueError) as error:
        raise DownloadRefused("not_http", host=target.shown) from error


def _headers(etag: str) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": USER_AGENT, "Connection": "close"}
    return headers | ({"If-None-Match": etag} if _ETAG.fullmatch(etag) else {})


def _public_addresses(target: _Target, clock: _Clock, network: Network) -> list[str]:
    """All addresses of the name, each of them public. One refusal for all else: else inner names could be told."""
    try:
        addresses = _in_time(lambda: network.look_up(target.host, target.port), clock)
    except TimeoutError:
        raise
    except (OSError, UnicodeError):
        addresses = []
    if not addresses or not all(is_public(address) for address in addresses):
        raise DownloadRefused("not_public", host=target.shown)
    return addresses


def _in_time(work: Callable[[], list[str]], clock: _Clock) -> list[str]:
    """The system's resolver has no time limit of its own, so it works in a thread that may be left behind."""
    done: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def run() -> None:
        try:
            done.put(work())
        except Exception as error:
            done.put(error)

    Thread(target=run, daemon=True).start()
    try:
        result = done.get(timeout=clock.left())
    except Empty as error:
        raise TimeoutError from error
    if isinstance(result, Exception):
        raise result
    return result


class _TimedSocket(ssl.SSLSocket):
    """Each read gets only what is left of the whole time, so that single bytes cannot stretch it."""

    clock: _Clock

    def recv_into(self, *arguments: object, **options: object) -> int:
        self.settimeout(self.clock.left())
        return super().recv_into(*arguments, **options)


class _Connection(HTTPSConnection):
    """Goes to addresses that were checked; the name is used for TLS and the Host header alone."""

    def __init__(self, target: _Target, addresses: list[str], clock: _Clock, network: Network) -> None:
        super().__init__(target.host, target.port)
        self._addresses, self._clock, self._network = addresses, clock, network

    def connect(self) -> None:
        context = self._network.tls()
        context.sslsocket_class = _TimedSocket
        plain = self._first_that_answers()
        try:
            plain.settimeout(self._clock.left())
            self.sock = context.wrap_socket(plain, server_hostname=self.host, suppress_ragged_eofs=False)
        except BaseException:
            plain.close()
            raise
        self.sock.clock = self._clock

    def _first_that_answers(self) -> socket.socket:
        for address in self._addresses:
            try:
                return self._network.connect(address, self.port, min(CONNECT_SECONDS, self._clock.left()))
            except OSError as error:
                last = error
        self._clock.left()
        raise ConnectionError from last


def _next(response: HTTPResponse, target: _Target) -> str:
    location = response.getheader("Location", "")
    if not location:
        raise DownloadRefused("redirect_without_target", host=target.shown)
    if _UNSAFE.search(location):
        raise DownloadRefused("url_malformed")  # urljoin would drop a line break and make another name of it
    try:
        return urljoin(f"https://{target.host}:{target.port}{target.path}", location)
    except ValueError as error:
        raise DownloadRefused("url_malformed") from error


def _received(response: HTTPResponse, target: _Target, to: Path, etag: str, limits: DownloadLimits) -> Downloaded:
    new_etag = response.getheader("ETag", "")
    if response.status == _NOT_MODIFIED and _ETAG.fullmatch(etag):
        return Downloaded(path=None, sha256="", size=0, etag=etag, not_modified=True)
    if response.status != _OK:
        raise DownloadRefused("status", host=target.shown, status=response.status)
    if _is_packed(response):
        raise DownloadRefused("compressed", host=target.shown)
    with _whole_file(to) as file:
        digest, size = _copy(response, target, file, limits.bytes)
    return Downloaded(path=to, sha256=digest, size=size, etag=new_etag if _ETAG.fullmatch(new_etag) else "")


def _is_packed(response: HTTPResponse) -> bool:
    content = response.getheader("Content-Encoding", "").strip().lower()
    transfer = response.getheader("Transfer-Encoding", "").strip().lower()
    return content not in ("", "identity") or transfer not in ("", "chunked")


def _copy(response: HTTPResponse, target: _Target, file: IO[bytes], limit: int) -> tuple[str, int]:
    promised = response.length
    if promised is not None and promised > limit:
        raise DownloadRefused("too_large", limit=limit)
    digest, size = sha256(), 0
    for chunk in _chunks(response, target):
        size += len(chunk)
        if size > limit:
            raise DownloadRefused("too_large", limit=limit)
        digest.update(chunk)
        file.write(chunk)
    if promised is not None and size < promised:
        raise DownloadRefused("cut_short", host=target.shown)
    return digest.hexdigest(), size


def _chunks(response: HTTPResponse, target: _Target) -> Iterator[bytes]:
    """What each read brings: waiting for a full chunk would wait on single bytes."""
    while True:
        with _talking_to(target):
            chunk = response.read1(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


@contextmanager
def _whole_file(to: Path) -> Iterator[IO[bytes]]:
    """A file beside ``to`` that takes its place on success and is gone on failure."""
    handle, name = tempfile.mkstemp(prefix=".download-", dir=to.parent)
    try:
        with open(handle, "wb") as file:
            yield file
        os.replace(name, to)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _shown(text: str) -> str:
    """A short name without control or bidirectional characters, for a sentence."""
    return "".join(character if character.isprintable() else "?" for character in text[:SHOWN_CHARACTERS])
