"""Where the server drives things by itself: one server, or on other engines two that share the work."""
import contextlib

from lambdas import lambda_client, send
from support.engines import database
from support.process import Quipu

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


class Place:
    def __init__(self, url):
        self.url, self.functions = url, lambda_client(url)

    def ask(self, method, path, body=None):
        return send(self.url, method, path, body)

    def ok(self, method, path, body=None):
        status, reply = self.ask(method, path, body)
        assert status in (200, 201), (method, path, status, reply)
        return reply


@contextlib.contextmanager
def served(engine, folders):
    """The URL of a server; `folders` is pytest's tmp_path_factory."""
    if engine == "embedded":
        with Quipu("--memory") as server:
            yield server.url
        return
    with database(engine) as data:
        first, second = (["--on", data.url, "--functions", str(folders.mktemp("functions"))] for _ in "ab")
        with Quipu(*first, env=KEYS) as server, Quipu(*second, env=KEYS):
            yield server.url
