"""Answers of functions that are made to cost the server more than they hold."""
import socket

from lambdas import ROLE, archive, lambda_client
from support.process import Quipu

LINES = 20_000
BOUND_MB = 500  # twenty thousand lines are 300 KB; all beginnings of their list together are 3 GB

SOURCE = """
def handler(event, context):
    return {"statusCode": 200, "headers": {f"x-{n}": "a" * 8 for n in range(%d)}, "body": "done"}
""" % LINES


def most_resident_mb(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return max(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


def whole_reply(server, path):
    """Python's own client takes a hundred lines at most."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=180) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def test_many_lines_of_a_reply_take_no_more_memory_than_they_are_long(tmp_path):
    with Quipu("--memory", "--functions", str(tmp_path)) as server:
        client = lambda_client(server.url)
        code = {"ZipFile": archive({"main.py": SOURCE})}
        client.create_function(FunctionName="lines", Runtime="python3.11", Handler="main.handler", Role=ROLE, Code=code,
                               Timeout=60)
        client.create_function_url_config(FunctionName="lines", AuthType="NONE")
        reply = whole_reply(server, "/_url/lines/")
        head, _, body = reply.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and body == b"done"
        assert head.count(b"\r\nx-") >= LINES
        assert most_resident_mb(server) < BOUND_MB
