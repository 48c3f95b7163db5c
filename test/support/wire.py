"""HTTP/1.1 on a plain socket: sends exactly the given bytes and reads replies strictly, so that a test sees what is on
the wire instead of what a library makes of it."""
import gzip
import json
import socket
import ssl
import urllib.parse
import zlib

# Any signature is accepted by a server without --credentials; without one it would answer that the token is missing.
ANY_SIGNATURE = ("AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                 "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64)


class Closed(Exception):
    """The server closed the connection where a reply was expected."""


class Reply:
    def __init__(self, version, status, reason, headers, raw):
        self.version, self.status, self.reason, self.headers, self.raw = version, status, reason, headers, raw

    def header(self, name):
        values = [v for k, v in self.headers if k.lower() == name.lower()]
        assert len(values) <= 1, f"{name} stands there {len(values)} times"
        return values[0] if values else None

    @property
    def body(self):
        return gzip.decompress(self.raw) if self.header("content-encoding") == "gzip" else self.raw

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def type(self):
        return self.json["__type"].split("#")[-1]

    @property
    def message(self):
        body = self.json
        return body.get("message", body.get("Message"))


class Connection:
    def __init__(self, url, tls=None, timeout=120):
        parts = urllib.parse.urlsplit(url)
        self.host = parts.netloc
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            context = tls or ssl._create_unverified_context()
            self.socket = context.wrap_socket(self.socket, server_hostname=parts.hostname)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise Closed(f"after {self.buffer!r}" if self.buffer else "")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line.decode("latin-1")

    def _bytes(self, count):
        while len(self.buffer) < count:
            self._fill()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read(self, head_only=False):
        """One reply; interim ones (100 Continue) are replies too."""
        version, status, reason = (self._line() + "  ").split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0"), version
        headers = []
        while line := self._line():
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        reply = Reply(version, int(status), reason.strip(), headers, b"")
        if head_only or reply.status < 200 or reply.status in (204, 304):
            return reply
        if (reply.header("transfer-encoding") or "").lower() == "chunked":
            reply.raw = self._chunks()
        else:
            assert reply.header("content-length") is not None, "a reply without a length"
            reply.raw = self._bytes(int(reply.header("content-length")))
        return reply

    def _chunks(self):
        data = b""
        while size := int(self._line().split(";")[0], 16):
            data += self._bytes(size)
            assert self._line() == ""
        while self._line():
            pass
        return data

    def closed_by_server(self):
        """True when the server ends the connection without another byte."""
        try:
            return not self.buffer and self.socket.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            return True

    def request(self, method, path="/", headers=None, body=b""):
        self.send(request_bytes(method, path, {"Host": self.host, **(headers or {})}, body))
        return self.read(head_only=method == "HEAD")

    def call(self, operation, payload, headers=None):
        """A DynamoDB call; payload is JSON, or bytes as they are."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return self.request("POST", "/", {**call_headers(operation), **(headers or {})}, body)


def call_headers(operation):
    return {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "X-Amz-Date": "20260101T000000Z", "Authorization": ANY_SIGNATURE}


def request_bytes(method, path="/", headers=None, body=b""):
    """Headers whose value is None are left out; Content-Length is added unless a length is given otherwise."""
    headers = dict(headers or {})
    names = {name.lower() for name in headers}
    if "content-length" not in names and "transfer-encoding" not in names and (body or method == "POST"):
        headers["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in headers.items() if v is not None]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def chunked(*pieces, trailers=(), extension=""):
    """The pieces as a chunked body."""
    data = b"".join(f"{len(p):x}{extension}\r\n".encode() + p + b"\r\n" for p in pieces)
    return data + b"0\r\n" + b"".join(t.encode() + b"\r\n" for t in trailers) + b"\r\n"


def crc32(data):
    return str(zlib.crc32(data))
