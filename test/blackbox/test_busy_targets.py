"""Asynchronous calls of a target that does not answer hold up no calls of others, and all of them are run in the
end."""
import contextlib
import http.server
import threading

from conftest import boto_client
from lambdas import eventually, lambda_client, queue_documents, send
from support.process import Quipu

CALLS = 600  # more than run at the same time


class Slow(http.server.BaseHTTPRequestHandler):
    """Answers when it is let."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.asked.append(self.headers["X-Quipu-Request-Id"])
        self.server.may_answer.wait()
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"null")

    def log_message(self, *_):
        pass


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


@contextlib.contextmanager
def slow_target():
    listener = Listener(("127.0.0.1", 0), Slow)
    listener.asked, listener.lock, listener.may_answer = [], threading.Lock(), threading.Event()
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    try:
        yield listener
    finally:
        listener.may_answer.set()
        listener.shutdown()
        listener.server_close()


def test_a_target_that_does_not_answer_holds_up_nobody_else():
    with slow_target() as slow, Quipu("--memory") as server:
        functions, data = lambda_client(server.url), boto_client(server.url)
        for name, code in (("slow", {"Url": f"http://127.0.0.1:{slow.server_port}/"}), ("other", {"Queue": "other"})):
            assert send(server.url, "POST", "/2015-03-31/functions",
                        {"FunctionName": name, "Timeout": 900, "Code": code})[0] == 201
        for _ in range(CALLS):
            functions.invoke(FunctionName="slow", InvocationType="Event", Payload=b"{}")
        eventually(lambda: slow.asked, "some of the calls are under way")
        for number in range(20):
            functions.invoke(FunctionName="other", InvocationType="Event", Payload=str(number).encode())
        eventually(lambda: len(queue_documents(data, "other")) == 20, "the other's calls are run")
        kept = set(slow.asked)
        assert len(kept) < CALLS
        pages = data.get_paginator("scan").paginate(TableName="quipu-invocations")
        waiting = {item["id"]["S"] for page in pages for item in page["Items"]} - kept
        for call in list(waiting)[::3]:  # somebody wants them no more
            data.delete_item(TableName="quipu-invocations", Key={"id": {"S": call}, "part": {"N": "0"}})
            waiting.remove(call)
        slow.may_answer.set()
        eventually(lambda: kept | waiting <= set(slow.asked), "all calls that are left are run")
        eventually(lambda: not data.scan(TableName="quipu-invocations", Select="COUNT")["Count"], "none is left")
