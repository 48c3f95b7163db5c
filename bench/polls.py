"""Long-polls that wait: what ten thousand of them take of memory and, while nothing happens, of a core."""
import resource
import socket
import time
import urllib.request

import peers

POLLS = 9900  # a server has 10,000 connections, and some are needed to look at it
WAIT_SECONDS_MAX = 120


def measure(bench):
    print("bench: long-polls", flush=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(POLLS, hard - 200)
    quipu = bench.server_new(peers.Quipu, "polls")
    quipu.start()
    url = f"http://127.0.0.1:{quipu.port}"
    urllib.request.urlopen(urllib.request.Request(url + "/v1/documents/c/x", b"1", method="PUT"), timeout=60).read()
    before, connections = quipu.resident_bytes(), []
    try:
        for i in range(count):
            connections.append(socket.create_connection(("127.0.0.1", quipu.port), timeout=60))
            connections[-1].sendall(f"GET /v1/documents/c/d{i}?wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        until = time.monotonic() + WAIT_SECONDS_MAX
        while waiting(url) < count:
            if time.monotonic() > until:
                raise RuntimeError(f"{waiting(url)} of {count} long-polls wait")
            time.sleep(0.1)
        busy, seconds = quipu.cpu_seconds(), 10 * bench.pace.slice_seconds
        time.sleep(seconds)
        bench.results["polls"] = {"count": count, "idle_bytes": before, "resident_bytes": quipu.resident_bytes(),
                                  "cpu_share": (quipu.cpu_seconds() - busy) / seconds}
    finally:
        for connection in connections:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def waiting(url):
    text = urllib.request.urlopen(url + "/metrics", timeout=60).read().decode()
    return int(text.split("\nquipu_flows_waiting ")[1].split("\n")[0])
