"""Doors before a DynamoDB: one that writes down every call (what was asked, what came back, what it consumed), one
behind which new tables take their time, as they do on Amazon's, and a node of a cluster of ScyllaDB Alternator."""
import http.client
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Call:
    def __init__(self, operation, request, status, reply):
        self.operation, self.request, self.status, self.reply = operation, request, status, reply

    def consumed(self):
        """Of each table, its units: {"table": {"": 2.0, "index": 1.0}}."""
        told = self.reply.get("ConsumedCapacity") or []
        tables = {}
        for one in told if isinstance(told, list) else [told]:
            arms = {"": one.get("Table", one)["CapacityUnits"]}
            for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
                for index, units in one.get(kind, {}).items():
                    arms[index] = units["CapacityUnits"]
            tables[one["TableName"]] = arms
        return tables


class Proxy:
    """Asks for the consumed capacity of indexes, too, where capacity is asked for at all."""

    def __init__(self, upstream, port=0, host="127.0.0.1"):
        self.calls, self.gets, self.connections, self.is_closed = [], [], set(), False
        self.address = urlsplit(upstream)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one piece

            def setup(self):
                super().setup()
                proxy.connections.add(self.connection)

            def finish(self):
                proxy.connections.discard(self.connection)
                super().finish()

            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"]))
                operation = self.headers["X-Amz-Target"].split(".")[-1]
                self.send(*proxy.answer(operation, text, self.headers))

            def do_GET(self):
                proxy.gets.append(self.path)
                self.send(*proxy.answer_get(self.path))

            def send(self, status, content_type, body):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer((host, port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://{host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, operation, text, headers):
        text = self.prepare(text)
        headers = {name: value for name, value in headers.items()
                   if name.lower() not in ("content-length", "connection", "accept-encoding", "host")}
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=180)
        connection.request("POST", "/", text, headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        self.calls.append(Call(operation, json.loads(text), reply.status, json.loads(body or b"{}")))
        return reply.status, reply.headers["Content-Type"], body

    def prepare(self, text):
        return text.replace(b'"ReturnConsumedCapacity":"TOTAL"', b'"ReturnConsumedCapacity":"INDEXES"')

    def answer_get(self, path):
        return 404, "text/xml", b"<UnknownOperationException/>"

    @staticmethod
    def fault(name, message):
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{name}", "message": message}
        return 400, "application/x-amz-json-1.0", json.dumps(body).encode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Also in the middle of conversations."""
        if self.is_closed:
            return
        self.is_closed = True
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class SlowTables(Proxy):
    """Nobody but who describes it finds a table that is being made, not even they at first; nobody can change it."""

    def __init__(self, upstream, seconds):
        self.seconds, self.made = seconds, {}
        super().__init__(upstream)

    def is_young(self, table, seconds=None):
        return time.monotonic() < self.made.get(table, 0) + (seconds or self.seconds)

    @staticmethod
    def tables_of(request):
        yield request.get("TableName")
        yield from request.get("RequestItems", ())
        for action in request.get("TransactItems", ()):
            yield from (one["TableName"] for one in action.values())

    def answer(self, operation, text, headers):
        request = json.loads(text)
        young = [table for table in self.tables_of(request) if self.is_young(table)]
        if operation == "CreateTable":
            status, content_type, body = super().answer(operation, text, headers)
            if status == 200:
                self.made[request["TableName"]] = time.monotonic()
            return status, content_type, body
        if not young:
            return super().answer(operation, text, headers)
        if operation == "DescribeTable" and not self.is_young(young[0], self.seconds / 3):
            status, content_type, body = super().answer(operation, text, headers)
            reply = json.loads(body)
            reply["Table"]["TableStatus"] = "CREATING"
            return status, content_type, json.dumps(reply).encode()
        if operation in ("UpdateTable", "UpdateTimeToLive", "DeleteTable"):
            return self.fault("ResourceInUseException", f"Attempt to change a resource which is in use: {young[0]}")
        return self.fault("ResourceNotFoundException", "Requested resource not found")


class Node(Proxy):
    """A node of a cluster of ScyllaDB Alternator, before a server that imitates it (`quipu serve --imitate`). All its
    nodes have the same data; each lists them all."""

    def __init__(self, upstream, port=0, host="127.0.0.1", nodes=("127.0.0.1",)):
        self.nodes = list(nodes)
        super().__init__(upstream, port, host)

    def prepare(self, text):
        return text

    def answer_get(self, path):
        if path != "/localnodes":
            return super().answer_get(path)
        return 200, "application/json", json.dumps(self.nodes).encode()
