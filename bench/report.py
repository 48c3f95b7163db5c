"""Turns what the runner measured into tables: one Markdown text, readable as it stands on a terminal.

The targets live here, each with the measurement it looks at. A target that was missed is reported, never an
error: machines are noisy and the reader decides."""
import backups
import logs

OPERATIONS = {
    "get-item": "GetItem",
    "query": "Query of 10",
    "put-item": "PutItem",
    "update-item": "UpdateItem",
    "counter": "hot counter",
    "put-new": "conditional PutItem",
    "transact": "transaction of two puts",
    "put-indexed": "PutItem, two indexes",
}
TARGET_CONNECTIONS = 64
LOCAL_RATIOS = {"get-item": 6, "query": 6, "put-item": 10, "put-new": 10, "update-item": 10, "counter": 10,
                "transact": 40, "put-indexed": 10}
REDIS_COUNTER_RATIO = 0.9
REDIS_SET_RATIO = 0.9
NGINX_GET_RATIO = 0.6
START_MS = 50
IDLE_MB = 30
POLLS_MB = 200
POLLS_PERCENT = 2
SCALE_RATIO = 0.7
RESTART_MS = 1500


def table(heads, rows):
    """A Markdown table with aligned columns; numbers to the right."""
    rows = [[str(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    right = [all(row[i][:1].isdigit() or row[i] in ("", "-") for row in rows) for i in range(len(heads))]

    def line(row):
        cells = [value.rjust(width) if to_right else value.ljust(width)
                 for value, width, to_right in zip(row, widths, right)]
        return "| " + " | ".join(cells) + " |"

    dashes = ["-" * (width + 1) + (":" if to_right else "-") for width, to_right in zip(widths, right)]
    return "\n".join([line(heads), "|" + "|".join(dashes) + "|"] + [line(row) for row in rows])


def cell_find(results, server, operation, connections=TARGET_CONNECTIONS):
    for cell in results["cells"]:
        if (cell["server"], cell["operation"], cell["connections"]) == (server, operation, connections):
            return cell
    return None


def rate_ratio(results, operation, server):
    ours, theirs = cell_find(results, "Quipu", operation), cell_find(results, server, operation)
    return ours["rate"] / theirs["rate"] if ours and theirs else None


def cpu_ratio(results, operation, server):
    """How many times more CPU per operation the other needs: steadier than rates where cores are shared."""
    ours, theirs = cell_find(results, "Quipu", operation), cell_find(results, server, operation)
    return f"{theirs['cpu_us'] / ours['cpu_us']:.2f} x" if ours and theirs and ours["cpu_us"] else ""


def target_row(name, value, bound, unit, at_least, cpu=""):
    if value is None:
        verdict, text = "not measured", "-"
    else:
        verdict = "met" if (value >= bound if at_least else value < bound) else "MISSED"
        text = f"{value:.2f}{unit}" if value < 10 else f"{value:.1f}{unit}"
    return [name, text, f"{'>=' if at_least else '<'} {bound}{unit}", verdict, cpu]


def target_rows(results):
    rows = []
    for operation, ratio in LOCAL_RATIOS.items():
        value = rate_ratio(results, operation, "DynamoDB Local")
        rows.append(target_row(f"{OPERATIONS[operation]} / DynamoDB Local", value, ratio, " x", True,
                               cpu_ratio(results, operation, "DynamoDB Local")))
    for name, operation, server, ratio in (("hot counter / Redis INCR, both syncing", "counter", "Redis",
                                            REDIS_COUNTER_RATIO),
                                           ("PutItem / Redis SET, both syncing", "put-item", "Redis",
                                            REDIS_SET_RATIO),
                                           ("GetItem / nginx, constant reply", "get-item", "nginx",
                                            NGINX_GET_RATIO)):
        rows.append(target_row(name, rate_ratio(results, operation, server), ratio, " x", True,
                               cpu_ratio(results, operation, server)))
    rows += logs.target_rows(results) + backups.target_rows(results) + pattern_targets(results["patterns"])
    rows += poll_rows(results["polls"])
    return rows + start_rows(results) + scale_rows(results["scale"])


def pattern_targets(rows):
    targets = []
    for row in rows:
        for other in row["others"]:
            if other["target"]:
                ours, theirs = row["rate"] * row["events"], other["rate"]
                cpu = other["cpu_us"] * row["events"] / other["events"] / row["cpu_us"]
                targets.append(target_row(f"{row['name']} / {other['name']}", ours / theirs, other["target"], " x",
                                          True, f"{cpu:.2f} x"))
    return targets


def poll_rows(polls):
    megabytes = poll_bytes(polls) / 1e6 if polls else None
    percent = polls["cpu_share"] * 100 if polls else None
    return [target_row("memory with 10 thousand long-polls", megabytes, POLLS_MB, " MB", False),
            target_row("their share of a core", percent, POLLS_PERCENT, " %", False)]


def poll_bytes(polls):
    """Of the whole process, had there been just ten thousand."""
    return polls["idle_bytes"] + (polls["resident_bytes"] - polls["idle_bytes"]) / polls["count"] * 10000


def start_rows(results):
    start, idle = results["start_ms"], results["idle_bytes"].get("Quipu")
    rows = [target_row(f"start-up, {folder}", start.get(f"Quipu, {folder}"), START_MS, " ms", False)
            for folder in ("new folder", "existing folder")]
    return rows + [target_row("idle resident memory", idle and idle / 1e6, IDLE_MB, " MB", False)]


def scale_rows(scale):
    rows = []
    for operation in ("get-item", "put-item", "update-item"):
        rates = scale.get("loaded", {}).get(operation)
        rows.append(target_row(f"{OPERATIONS[operation]}, {items_text(scale)} / 10 thousand items",
                               rates and rates["large"] / rates["small"], SCALE_RATIO, " x", True))
    restart = scale.get("restart_ms")
    return rows + [target_row(f"restart with {items_text(scale)} items", restart, RESTART_MS, " ms", False)]


def items_text(scale):
    items = scale.get("items", 5000000)
    return f"{items // 1000000} million" if items >= 1000000 else f"{items // 1000} thousand"


def cell_rows(results):
    rows = []
    for cell in results["cells"]:
        rows.append([OPERATIONS[cell["operation"]], cell["server"], cell["connections"],
                     f"{cell['rate']:.0f}", f"{cell['p50_us']:.0f}", f"{cell['p99_us']:.0f}",
                     f"{cell['cpu_us']:.1f}"])
    return rows


def pattern_rows(patterns):
    """Each pattern, and below it whatever it is compared with; the ratio counts events, where there are many."""
    rows = []
    for row in patterns:
        rate = row["rate"] * row["events"]
        for name, one, ratio in ([(row["name"], dict(row, rate=rate), "")] +
                                 [(f"- {other['name']}", other, f"{rate / other['rate']:.2f}")
                                  for other in row["others"]]):
            rows.append([name, f"{one['rate']:.0f}", f"{one['p50_us']:.0f}", f"{one['p99_us']:.0f}",
                         f"{one['cpu_us']:.1f}", ratio])
    return rows


def scale_lines(scale):
    lines = [f"Loaded {scale['items']} items in {scale['load_seconds']:.1f} s "
             f"({scale['items'] / scale['load_seconds']:.0f} items/s, BatchWriteItem of 25, "
             f"{scale['data_bytes'] / 1e6:.0f} MB on disk, {scale['resident_bytes'] / 1e6:.0f} MB resident; "
             f"quiet {scale['settle_seconds']:.1f} s later)."]
    if "restart_killed_ms" in scale:
        lines.append(f"Restart: {scale['restart_ms']:.0f} ms after a clean stop, "
                     f"{scale['restart_killed_ms']:.0f} ms after SIGKILL behind writes; "
                     "every item asked for afterwards was there.")
    lines.append("")
    rows = [[OPERATIONS[operation], when, f"{rates['small']:.0f}", f"{rates['large']:.0f}",
             f"{rates['large'] / rates['small']:.2f}"]
            for when in ("loaded", "restarted") for operation, rates in scale[when].items()]
    heads = ["operation", "many items", "ops/s, 10 thousand", f"ops/s, {items_text(scale)}", "ratio"]
    return lines + [table(heads, rows)]


def render(results):
    """The whole report as Markdown."""
    lines = ["# Benchmark", ""] + [f"- {name}: {value}" for name, value in results["environment"].items()]
    for problem in results["skipped"]:
        lines.append(f"- SKIPPED: {problem}")
    for problem in results["errors"]:
        lines.append(f"- ERROR: {problem}")
    lines += ["", f"## Targets (at {TARGET_CONNECTIONS} connections)", "",
              table(["what", "measured", "target", "verdict", "CPU, other / Quipu"], target_rows(results))]
    if results["cells"]:
        heads = ["operation", "server", "connections", "ops/s", "p50 us", "p99 us", "CPU us/op"]
        lines += ["", "## Operations", "", table(heads, cell_rows(results))]
    lines += logs.lines(results)
    lines += backups.lines(results)
    if results["patterns"]:
        heads = ["pattern, and what it is compared with", "per second", "p50 us", "p99 us", "CPU us/request",
                 "pattern / this"]
        lines += ["", f"## Patterns (at {TARGET_CONNECTIONS} connections)", "",
                  table(heads, pattern_rows(results["patterns"]))]
    if results["polls"]:
        polls = results["polls"]
        lines += ["", "## Long-polls that wait", "",
                  f"{polls['count']} of them: {polls['resident_bytes'] / 1e6:.0f} MB resident "
                  f"({polls['idle_bytes'] / 1e6:.0f} MB without), {polls['cpu_share']:.2%} of a core."]
    if results["start_ms"]:
        rows = [[name, f"{value:.1f}"] for name, value in results["start_ms"].items()]
        lines += ["", "## Start-up", "", table(["server", "ms until ready"], rows)]
    if results["idle_bytes"]:
        rows = [[name, f"{value / 1e6:.1f}"] for name, value in results["idle_bytes"].items()]
        lines += ["", "## Idle memory", "", table(["server", "MB resident after start"], rows)]
    if results["scale"]:
        lines += ["", "## Many items", ""] + scale_lines(results["scale"])
    return "\n".join(lines) + "\n"
