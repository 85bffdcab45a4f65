"""The guarded download against a TLS server of this machine that stands in for the internet."""

import gzip
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from catalog.importers.download import Downloaded, DownloadLimits, DownloadRefused, Network, download
from catalog.importers.public_hosts import is_public

HOST = "feeds.example.com"
PUBLIC = "93.184.216.34"
FILE = b"sku,price\nh100x8,23.92\n"
Reply = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_GET(self) -> None:
        self.server.heard.append({"Path": self.path, **self.headers})
        self.server.replies[self.path](self)

    def log_message(self, *_arguments: object) -> None:
        pass

    def raw(self, *lines: str, body: bytes = b"") -> None:
        self.wfile.write("\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: dict[str, Reply] = {}
        self.heard: list[dict[str, str]] = []
        self.stopped = Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, *_arguments: object) -> None:
        """A client that hangs up is what some tests are about."""


@dataclass
class Internet:
    """``addresses``: what a name leads to at each look-up, the last for ever; any other name is public."""

    server: Server
    certificate: Path
    folder: Path
    addresses: dict[str, list[list[str]]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)
    network: Network | None = None

    def get(self, path: str = "/feed.csv", reply: Reply | None = None, **options: object) -> Downloaded:
        if reply:
            self.server.replies[path] = reply
        return self.fetch(f"https://{HOST}{path}", **options)

    def fetch(self, url: str, *, etag: str = "", **limits: object) -> Downloaded:
        network = self.network or Network(look_up=self._look_up, connect=self._connect, tls=self._tls)
        return download(url, to=self.folder / "feed", etag=etag, limits=DownloadLimits(**limits), network=network)

    def _look_up(self, host: str, _port: int) -> list[str]:
        self.looked_up.append(host)
        answers = self.addresses.get(host, [[PUBLIC]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _connect(self, address: str, _port: int, seconds: float) -> socket.socket:
        self.connected.append(address)
        if ":" in address:
            raise ConnectionRefusedError
        return socket.create_connection(self.server.server_address, timeout=seconds)

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("openssl"):
        if os.environ.get("CI"):
            pytest.fail("openssl is missing; in CI these tests are never skipped")
        pytest.skip("openssl is missing (on Debian: apt-get install openssl)")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    names = f"subjectAltName=DNS:{HOST},DNS:xn--strae-oqa.example.com"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test"]
    usage = ("-addext", names, "-addext", "keyUsage=critical,digitalSignature,keyCertSign")
    command = ["openssl", "req", "-x509", *key, *usage, "-keyout", path, "-out", path.with_suffix(".crt")]
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[Server]:
    with Server(certificate) as running:
        Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.stopped.set()
        running.shutdown()


@pytest.fixture
def internet(server: Server, certificate: Path, tmp_path: Path) -> Internet:
    server.heard.clear()
    return Internet(server, certificate.with_suffix(".crt"), tmp_path)


def whole(handler: Handler) -> None:
    handler.raw(f"Content-Length: {len(FILE)}", 'ETag: "v1"', body=FILE)


def closed(*lines: str) -> Reply:
    """The file, then a proper end of the TLS connection."""

    def reply(handler: Handler) -> None:
        handler.raw(*lines, body=FILE)
        handler.connection.unwrap()

    return reply


def redirect(to: str, status: int = 302) -> Reply:
    def reply(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.end_headers()

    return reply


def refusal(action: Callable[[], object]) -> DownloadRefused:
    with pytest.raises(DownloadRefused) as caught:
        action()
    assert "%(" not in str(caught.value)
    return caught.value


def test_a_feed_arrives_whole_with_its_digest(internet: Internet) -> None:
    got = internet.get(reply=whole)
    assert got.path is not None
    assert got.path.read_bytes() == FILE
    assert (got.sha256, got.size, got.etag) == (sha256(FILE).hexdigest(), len(FILE), '"v1"')
    assert [file.name for file in internet.folder.iterdir()] == ["feed"]


def test_nothing_of_this_machine_is_sent(internet: Internet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    internet.get(reply=whole)
    assert set(internet.server.heard[0]) == {"Path", "Host", "Accept-Encoding", "User-Agent", "Connection"}


def test_an_unchanged_feed_is_not_fetched_again(internet: Internet) -> None:
    def unchanged(handler: Handler) -> None:
        handler.send_response(304)
        handler.end_headers()

    got = internet.get(reply=unchanged, etag='"v1"')
    assert (got.not_modified, got.path, got.etag) == (True, None, '"v1"')
    assert internet.server.heard[0]["If-None-Match"] == '"v1"'
    assert refusal(lambda: internet.get(reply=unchanged, etag='"v1"\r\nCookie: a')).code == "status"


def test_a_body_in_chunks_is_read(internet: Internet) -> None:
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    got = internet.get(reply=lambda handler: handler.raw("Transfer-Encoding: chunked", body=chunks))
    assert got.path is not None
    assert got.path.read_bytes() == b"hello world"


def test_a_body_without_a_length_ends_with_its_connection(internet: Internet) -> None:
    assert internet.get(reply=closed()).size == len(FILE)


def test_names_of_other_scripts_and_paths_are_encoded(internet: Internet) -> None:
    internet.server.replies["/a%20b/%C3%BC.csv?x=1%2B2"] = whole
    assert internet.fetch("https://straße.example.com/a%20b/ü.csv?x=1%2B2").size == len(FILE)
    assert internet.looked_up == ["xn--strae-oqa.example.com"]


HOSTILE = {
    "feeds.example.com/a.csv": "url_malformed",
    "//feeds.example.com/a.csv": "url_malformed",
    "https:///a.csv": "url_malformed",
    "https://feeds.example.com/a b": "url_malformed",
    "https://feeds.example.com/a\r\nHost: inner": "url_malformed",
    "https://feeds.example.com\\@10.0.0.1/": "url_malformed",
    "https://feeds.example.com:99999/": "url_malformed",
    "https://[::1/": "url_malformed",
    "https://feeds.example.com/" + "a" * 2000: "url_too_long",
    "http://feeds.example.com/a.csv": "not_https",
    "file:///etc/passwd": "not_https",
    "gopher://feeds.example.com/": "not_https",
    "https://user:secret@feeds.example.com/": "credentials",
    "https://feeds.example.com@10.0.0.1/": "credentials",
    "https://feeds.example.com/#@10.0.0.1": "fragment",
    "https://feeds.example.com:22/": "port",
    "https://feeds.example.com:0/": "port",
    "https://localhost/": "not_a_name",
    "https://localhost./": "not_a_name",
    "https://127.0.0.1/": "not_a_name",
    "https://2130706433/": "not_a_name",
    "https://0x7f000001/": "not_a_name",
    "https://0177.0.0.1/": "not_a_name",
    "https://127.1/": "not_a_name",
    "https://１２７.0.0.1/": "not_a_name",
    "https://169.254.169.254/latest/meta-data": "not_a_name",
    "https://[::ffff:10.0.0.1]/": "not_a_name",
    "https://[fe80::1%25eth0]/": "not_a_name",
    "https://%6c%6f%63alhost.example/": "not_a_name",
    "https://in_ner.example.com/": "not_a_name",
    "https://" + "a" * 64 + ".example/": "not_a_name",
    "https://\udc80.example/": "not_a_name",
}


def test_hostile_addresses_are_refused_before_any_look_up(internet: Internet) -> None:
    codes = {url: refusal(lambda url=url: internet.fetch(url)).code for url in HOSTILE}
    assert codes == HOSTILE
    assert internet.looked_up == []


INNER = """
0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 192.0.0.8 192.0.0.170 192.168.1.1
192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.2.3 240.0.0.1 255.255.255.255
:: ::1 ::a00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:db8::1
2002:a9fe:a9fe:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
2606:4700::1%eth0 2130706433 inner
"""
OUTER = f"{PUBLIC} 8.8.8.8 172.32.0.1 100.128.0.1 ::ffff:8.8.8.8 64:ff9b::808:808 2606:4700::1111"


def test_only_public_addresses_count_as_such() -> None:
    assert [address for address in INNER.split() if is_public(address)] == []
    assert [address for address in OUTER.split() if not is_public(address)] == []


@pytest.mark.parametrize("addresses", [["10.0.0.7"], [PUBLIC, "10.0.0.7"], []])
def test_a_name_with_any_inner_address_is_never_connected_to(internet: Internet, addresses: list[str]) -> None:
    internet.addresses[HOST] = [addresses]
    error = refusal(lambda: internet.get(reply=whole))
    assert error.code == "not_public"
    assert "10.0.0.7" not in str(error)
    assert internet.connected == []


def test_a_name_cannot_change_its_mind_after_the_check(internet: Internet) -> None:
    internet.addresses[HOST] = [[PUBLIC], ["127.0.0.1"]]
    internet.get(reply=whole)
    assert internet.looked_up == [HOST]
    assert internet.connected == [PUBLIC]
    assert refusal(lambda: internet.get(reply=whole)).code == "not_public"


def test_a_redirect_is_followed(internet: Internet) -> None:
    internet.get("/new.csv", whole)
    assert internet.get("/old.csv", redirect("new.csv", 308)).size == len(FILE)


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://169.254.169.254/latest/meta-data", "not_https"),
        ("https://169.254.169.254/latest/meta-data", "not_a_name"),
        ("https://metadata.example/", "not_public"),
        ("//user@feeds.example.com/", "credentials"),
        ("https://feeds.example.com:8443/", "port"),
        ("https://[::1", "url_malformed"),
        ("https://feeds.example.com\r\n .evil/", "url_malformed"),
        ("/again", "too_many_redirects"),
        ("", "redirect_without_target"),
    ],
)
def test_a_redirect_is_checked_as_the_address_was(internet: Internet, location: str, code: str) -> None:
    internet.addresses["metadata.example"] = [["169.254.169.254"]]
    assert refusal(lambda: internet.get("/again", redirect(location))).code == code
    assert set(internet.connected) == {PUBLIC}
    assert len(internet.connected) == (4 if code == "too_many_redirects" else 1)


def test_tls_verifies_the_name(internet: Internet) -> None:
    assert refusal(lambda: internet.fetch("https://other.example.com/feed.csv")).code == "certificate"


def drip(start: bytes) -> Reply:
    def reply(handler: Handler) -> None:
        handler.wfile.write(start)
        while not handler.server.stopped.wait(0.02):
            handler.wfile.write(b"x")

    return reply


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: ", b"H"])
def test_single_bytes_do_not_stretch_the_time(internet: Internet, start: bytes) -> None:
    assert refusal(lambda: internet.get(reply=drip(start), seconds=0.3)).code == "too_slow"
    assert list(internet.folder.iterdir()) == []


def test_a_resolver_that_hangs_is_left(internet: Internet) -> None:
    internet.network = Network(look_up=lambda *_arguments: internet.server.stopped.wait(9) and [])
    assert refusal(lambda: internet.get(seconds=0.1)).code == "too_slow"


def test_a_handshake_that_hangs_is_left(internet: Internet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        internet.network = Network(
            look_up=lambda *_arguments: [PUBLIC],
            connect=lambda _address, _port, seconds: socket.create_connection(silent.getsockname(), seconds),
        )
        assert refusal(lambda: internet.get(seconds=0.2)).code == "too_slow"


def test_the_next_address_is_tried_where_one_does_not_answer(internet: Internet) -> None:
    internet.addresses[HOST] = [["2606:4700::1111", PUBLIC]]
    assert internet.get(reply=whole).size == len(FILE)
    assert internet.connected == ["2606:4700::1111", PUBLIC]
    internet.addresses[HOST] = [["2606:4700::1111"]]
    assert refusal(lambda: internet.get(reply=whole)).code == "unreachable"


def endless(handler: Handler) -> None:
    handler.raw()
    while True:
        handler.wfile.write(bytes(1000))


BODIES: dict[str, tuple[Reply, str]] = {
    "announced too large": (lambda handler: handler.raw("Content-Length: 5001"), "too_large"),
    "endless": (endless, "too_large"),
    "length is no number": (lambda handler: handler.raw("Content-Length: -1", body=bytes(5001)), "too_large"),
    "chunk too large": (
        lambda handler: handler.raw("Transfer-Encoding: chunked", body=b"1389\r\n" + bytes(5001)),
        "too_large",
    ),
    "more promised": (lambda handler: handler.raw("Content-Length: 100", body=FILE), "cut_short"),
    "more promised, properly closed": (closed("Content-Length: 100"), "cut_short"),
    "chunk cut": (lambda handler: handler.raw("Transfer-Encoding: chunked", body=b"ff\r\nabc"), "cut_short"),
    "no length, line cut": (lambda handler: handler.raw(body=FILE), "cut_short"),
    "packed content": (
        lambda handler: handler.raw("Content-Encoding: gzip", body=gzip.compress(bytes(10**6))),
        "compressed",
    ),
    "packed transfer": (lambda handler: handler.raw("Transfer-Encoding: gzip, chunked"), "compressed"),
    "not found": (lambda handler: handler.send_error(404), "status"),
    "a part": (lambda handler: handler.send_error(206), "status"),
    "not http": (lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n"), "not_http"),
    "nothing": (lambda handler: None, "cut_short"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_too_large_cut_or_packed_leaves_nothing(internet: Internet, name: str) -> None:
    reply, code = BODIES[name]
    assert refusal(lambda: internet.get(reply=reply, bytes=5000)).code == code
    assert list(internet.folder.iterdir()) == []


def test_a_failed_download_keeps_the_file_that_was_there(internet: Internet) -> None:
    internet.get(reply=whole)
    refusal(lambda: internet.get(reply=BODIES["more promised"][0]))
    assert (internet.folder / "feed").read_bytes() == FILE


def test_a_full_disk_of_ours_is_not_blamed_on_the_source(internet: Internet) -> None:
    internet.folder = internet.folder / "missing"
    with pytest.raises(FileNotFoundError):
        internet.get(reply=whole)
