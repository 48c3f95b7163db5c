"""Turns what the runner measured into tables: one Markdown text, readable as it stands on a terminal.

The targets live here, each with the measurement it looks at. A target that was missed is reported, never an error:
machines are noisy and the reader decides."""

OPERATIONS = {
    "get-item": "GetItem",
    "query": "Query of 10",
    "put-item": "PutItem",
    "update-item": "UpdateItem",
    "counter": "hot counter",
    "put-new": "conditional PutItem",
}
TARGET_CONNECTIONS = 64
LOCAL_RATIOS = {"get-item": 6, "query": 6, "put-item": 10, "put-new": 10, "update-item": 10, "counter": 10}
REDIS_COUNTER_RATIO = 0.6
NGINX_GET_RATIO = 0.6
START_MS = 50
IDLE_MB = 30
SCALE_RATIO = 0.7
RESTART_MS = 2000


def table(heads, rows):
    """A Markdown table with aligned columns; numbers to the right."""
    rows = [[str(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    right = [i > 0 and all(row[i][:1].isdigit() or row[i] in ("", "-") for row in rows) for i in range(len(heads))]

    def line(row):
        cells = [value.rjust(width) if to_right else value.ljust(width)
                 for value, width, to_right in zip(row, widths, right)]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if to_right else "-") for width, to_right in zip(widths, right)) + "|"
    return "\n".join([line(heads), rule] + [line(row) for row in rows])


def cell_find(results, server, operation, connections=TARGET_CONNECTIONS):
    for cell in results["cells"]:
        if (cell["server"], cell["operation"], cell["connections"]) == (server, operation, connections):
            return cell
    return None


def rate_ratio(results, operation, server, server_operation=None):
    ours, theirs = cell_find(results, "Quipu", operation), cell_find(results, server, server_operation or operation)
    return ours["rate"] / theirs["rate"] if ours and theirs else None


def target_row(name, value, bound, unit, at_least):
    if value is None:
        verdict, text = "not measured", "-"
    else:
        verdict = "met" if (value >= bound if at_least else value < bound) else "MISSED"
        text = f"{value:.2f}{unit}" if value < 10 else f"{value:.1f}{unit}"
    return [name, text, f"{'>=' if at_least else '<'} {bound}{unit}", verdict]


def target_rows(results):
    rows = []
    for operation, ratio in LOCAL_RATIOS.items():
        value = rate_ratio(results, operation, "DynamoDB Local")
        rows.append(target_row(f"{OPERATIONS[operation]} / DynamoDB Local", value, ratio, " x", True))
    rows.append(target_row("hot counter / Redis INCR, both syncing", rate_ratio(results, "counter", "Redis"),
                           REDIS_COUNTER_RATIO, " x", True))
    rows.append(target_row("GetItem / nginx, constant reply", rate_ratio(results, "get-item", "nginx"),
                           NGINX_GET_RATIO, " x", True))
    start = results["start_ms"]
    rows.append(target_row("start-up, new folder", start.get("Quipu, new folder"), START_MS, " ms", False))
    rows.append(target_row("start-up, existing folder", start.get("Quipu, existing folder"), START_MS, " ms", False))
    idle = results["idle_bytes"].get("Quipu")
    rows.append(target_row("idle resident memory", idle and idle / 1e6, IDLE_MB, " MB", False))
    scale = results["scale"]
    for operation in ("get-item", "put-item", "update-item"):
        rates = scale.get("rates", {}).get(operation)
        value = rates["large"] / rates["small"] if rates else None
        rows.append(target_row(f"{OPERATIONS[operation]}, {items_text(scale)} / 10 thousand items", value, SCALE_RATIO,
                               " x", True))
    rows.append(target_row(f"restart with {items_text(scale)} items", scale.get("restart_ms"), RESTART_MS, " ms", False))
    return rows


def items_text(scale):
    items = scale.get("items", 5000000)
    return f"{items // 1000000} million" if items >= 1000000 else f"{items // 1000} thousand"


def cell_rows(results):
    rows = []
    for cell in results["cells"]:
        rows.append([OPERATIONS[cell["operation"]], cell["server"], cell["connections"], f"{cell['rate']:.0f}",
                     f"{cell['p50_us']:.0f}", f"{cell['p99_us']:.0f}", f"{cell['cpu_us']:.1f}"])
    return rows


def scale_lines(scale):
    lines = [f"Loaded {scale['items']} items in {scale['load_seconds']:.1f} s "
             f"({scale['items'] / scale['load_seconds']:.0f} items/s, BatchWriteItem of 25, "
             f"{scale['data_bytes'] / 1e6:.0f} MB on disk, {scale['resident_bytes'] / 1e6:.0f} MB resident; "
             f"quiet {scale['settle_seconds']:.1f} s later).",
             f"Restart: {scale['restart_ms']:.0f} ms after a clean stop, {scale['restart_killed_ms']:.0f} ms after "
             "SIGKILL under writes; every item asked for afterwards was there.", ""]
    rows = [[OPERATIONS[operation], f"{rates['small']:.0f}", f"{rates['large']:.0f}",
             f"{rates['large'] / rates['small']:.2f}"] for operation, rates in scale["rates"].items()]
    return lines + [table(["operation", "ops/s, 10 thousand", f"ops/s, {items_text(scale)}", "ratio"], rows)]


def render(results):
    """The whole report as Markdown."""
    lines = ["# Benchmark", ""] + [f"- {name}: {value}" for name, value in results["environment"].items()]
    for problem in results["skipped"]:
        lines.append(f"- SKIPPED: {problem}")
    for problem in results["errors"]:
        lines.append(f"- ERROR: {problem}")
    lines += ["", f"## Targets (at {TARGET_CONNECTIONS} connections)", "",
              table(["what", "measured", "target", "verdict"], target_rows(results))]
    if results["cells"]:
        lines += ["", "## Operations", "",
                  table(["operation", "server", "connections", "ops/s", "p50 us", "p99 us", "CPU us/op"],
                        cell_rows(results))]
    if results["start_ms"]:
        rows = [[name, f"{value:.1f}"] for name, value in results["start_ms"].items()]
        lines += ["", "## Start-up", "", table(["server", "ms until ready"], rows)]
    if results["idle_bytes"]:
        rows = [[name, f"{value / 1e6:.1f}"] for name, value in results["idle_bytes"].items()]
        lines += ["", "## Idle memory", "", table(["server", "MB resident after start"], rows)]
    if results["scale"]:
        lines += ["", f"## {items_text(results['scale'])} items".capitalize(), ""] + scale_lines(results["scale"])
    return "\n".join(lines) + "\n"
