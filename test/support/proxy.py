"""A door before a DynamoDB that writes down every call: what was asked, what came back, what it consumed."""
import http.client
import json
import threading
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

    def __init__(self, upstream):
        self.calls = []
        address, calls = urlsplit(upstream), self.calls

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one piece

            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"]))
                text = text.replace(b'"ReturnConsumedCapacity":"TOTAL"', b'"ReturnConsumedCapacity":"INDEXES"')
                headers = {name: value for name, value in self.headers.items()
                           if name.lower() not in ("content-length", "connection", "accept-encoding", "host")}
                connection = http.client.HTTPConnection(address.hostname, address.port, timeout=180)
                connection.request("POST", "/", text, headers)
                reply = connection.getresponse()
                body = reply.read()
                connection.close()
                operation = self.headers["X-Amz-Target"].split(".")[-1]
                calls.append(Call(operation, json.loads(text), reply.status, json.loads(body)))
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.headers["Content-Type"])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
