"""A small Lambda Runtime API for one process, to test bootstraps against: hands out events, keeps what is answered.

It speaks HTTP by hand, because it must tell what a client really sent: on how many connections, in which chunks, with
which trailers.
"""
import itertools
import json
import queue
import socket
import threading

SECONDS = 120  # what takes longer has failed
PREFIX = "/2018-06-01/runtime/"


class Answer:
    """What the process posted."""

    def __init__(self, target, headers, body, trailers):
        self.target, self.headers, self.body, self.trailers = target, headers, body, trailers

    @property
    def kind(self):
        return self.target.rsplit("/", 1)[1]

    @property
    def request_id(self):
        return self.target.rsplit("/", 2)[1]

    def json(self):
        return json.loads(self.body)


class Reader:
    def __init__(self, connection):
        self.file = connection.makefile("rb")

    def head(self):
        lines = []
        while True:
            line = self.file.readline()
            if not line:
                return None
            if line == b"\r\n":
                return lines
            lines.append(line.decode("latin-1").rstrip("\r\n"))

    def request(self):
        """Method, target, headers, body, trailers; None at the end."""
        lines = self.head()
        if not lines:
            return None
        method, target, _ = lines[0].split(" ")
        headers = fields(lines[1:])
        if headers.get("transfer-encoding") != "chunked":
            return method, target, headers, self.file.read(int(headers.get("content-length", 0))), {}
        parts = []
        while True:
            size = int(self.file.readline(), 16)
            if size == 0:
                return method, target, headers, b"".join(parts), fields(self.head())
            parts.append(self.file.read(size))
            self.file.readline()


def fields(lines):
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


class RuntimeApi:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.events = queue.Queue()
        self.init_errors = queue.Queue()
        self.answers = {}
        self.lock = threading.Lock()
        self.connection_count = 0
        self.waiting = threading.Semaphore(0)  # raised by each request for an event
        self.numbers = itertools.count(1)
        self.is_chunked = False  # how replies are sent
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connection_count += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        reader = Reader(connection)
        try:
            while True:
                request = reader.request()
                if not request:
                    return
                connection.sendall(self.reply(*request))
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def reply(self, method, target, headers, body, trailers):
        assert target.startswith(PREFIX), target
        what = target[len(PREFIX):]
        if (method, what) == ("GET", "invocation/next"):
            self.waiting.release()
            event = self.events.get()
            if not event:
                raise OSError("hung up")
            return self.http(*event)
        answer = Answer(what, headers, body, trailers)
        if what == "init/error":
            self.init_errors.put(answer)
        else:
            self.box(what.split("/")[1]).put(answer)
        return self.http(202, {}, b'{"status":"OK"}')

    def http(self, status, headers, body):
        lines = ["HTTP/1.1 %d Some Words" % status] + ["%s: %s" % pair for pair in headers.items()]
        if self.is_chunked:
            half = len(body) // 2
            parts = [part for part in (body[:half], body[half:]) if part] + [b""]
            lines.append("Transfer-Encoding: chunked")
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
        else:
            lines.append("Content-Length: %d" % len(body))
        return "\r\n".join(lines + ["", ""]).encode("latin-1") + body

    def box(self, request_id):
        with self.lock:
            return self.answers.setdefault(request_id, queue.Queue())

    # ---- for tests ----

    def send(self, event, **headers):
        """Hands an event to the process and answers its id. Headers without their common beginning."""
        request_id = "id-%d" % next(self.numbers)
        given = {"Aws-Request-Id": request_id, "Deadline-Ms": "4102444800000",
                 "Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:tested", **headers}
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        headers = {"Lambda-Runtime-" + name.replace("_", "-"): value for name, value in given.items()}
        self.events.put((200, headers, body))
        return request_id

    def answer(self, request_id):
        return self.box(request_id).get(timeout=SECONDS)

    def invoke(self, event=None, **headers):
        return self.answer(self.send(event, **headers))

    def init_error(self):
        return self.init_errors.get(timeout=SECONDS)

    def turn_away(self, status):
        self.events.put((status, {}, b"{}"))

    def hang_up(self):
        """Closes the connection of a process that waits."""
        self.events.put(None)

    def close(self):
        self.listener.close()
