# Sourced by each example's `run`: a server, a few words for requests and checks, and an end that leaves nothing.
#
# With QUIPU_URL the example works on that server and leaves there what it made, to look at; without, on one of its own,
# in memory, on a free port. $here is the example's folder, $scratch one that is removed at the end.
set -euo pipefail

example=$(basename "$here")
root=$(cd "$here/../.." && pwd)
PATH=${QUIPU_BIN:-$root/build}:$PATH # where quipu is
scratch=$(mktemp -d "${TMPDIR:-/tmp}/quipu-$example.XXXXXX")

# Ends what was started here, by its number, in the reverse order.
finish() {
    local status=$? pid
    trap - EXIT
    for pid in $(jobs -p | tac); do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "$example: WRONG: $*" >&2
    exit 1
}

# Each NAME must be a command of this machine.
need() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || fail "this example needs $name, which is not on the PATH"
    done
}

# server_start [FLAG...]: sets QUIPU_URL, and QUIPU_ON for the commands of quipu.
server_start() {
    command -v quipu >/dev/null || fail "there is no build/quipu yet: 'make' builds it, script/server what it needs, too"
    need curl
    if [ -z "${QUIPU_URL:-}" ]; then
        : >"$scratch/server.out"
        (
            unset "${!QUIPU_@}" # each would be a flag of the server
            exec quipu serve --memory --port 0 --functions "$scratch/functions" "$@"
        ) >"$scratch/server.out" 2>"$scratch/server.log" &
        local pid=$!
        until grep -q '^quipu: ready' "$scratch/server.out"; do
            kill -0 "$pid" 2>/dev/null || fail "the server did not start: $(cat "$scratch/server.log")"
            sleep 0.02
        done
        QUIPU_URL=$(sed -n 's/^quipu: ready on \([^ ]*\).*/\1/p' "$scratch/server.out")
        echo "A server of its own, in memory: $QUIPU_URL"
    else
        QUIPU_URL=${QUIPU_URL%/}
        curl -sf -o "$scratch/health" "$QUIPU_URL/healthz" || fail "nothing answers at QUIPU_URL=$QUIPU_URL"
        echo "On the server at $QUIPU_URL"
    fi
    export QUIPU_URL QUIPU_ON=$QUIPU_URL
    export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-local} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-local}
    export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1}
}

# call METHOD PATH [BODY [CURL'S OPTIONS...]]: prints the answer; fails, with the answer on stderr, when it is a refusal.
call() {
    local method=$1 path=$2 body=${3:-} answer
    shift $(($# < 3 ? $# : 3))
    answer=$(curl -sS --fail-with-body -X "$method" "$QUIPU_URL$path" ${body:+-d "$body"} "$@") ||
        fail "$method $path $body was answered with: $answer"
    printf '%s\n' "$answer"
}

# As call, but prints the status alone.
status_of() {
    local method=$1 path=$2 body=${3:-}
    shift $(($# < 3 ? $# : 3))
    curl -sS -o "$scratch/answer" -w '%{http_code}' -X "$method" "$QUIPU_URL$path" ${body:+-d "$body"} "$@"
}

# What an earlier run has left on a server that was given, if anything: by a request, or by kind and names.
forget() {
    case $1 in
        table) quipu table drop "$2" --yes >"$scratch/forget" 2>&1 || true ;;
        function) quipu function rm "$2" >"$scratch/forget" 2>&1 || true ;;
        queue) quipu queue rm "$2" --yes >"$scratch/forget" 2>&1 || true ;;
        trigger)
            quipu trigger rm "$2" "$3" >"$scratch/forget" 2>&1 || true
            while quipu trigger show "$2" "$3" >"$scratch/forget" 2>&1; do sleep 0.1; done
            ;;
        *) [ "$(status_of "$@")" != 500 ] || fail "$* was answered with: $(cat "$scratch/answer")" ;;
    esac
}

# What functions print from here on is what `logs NAME` shows; a log outlives its function.
logs_begin() {
    local name
    for name in "$@"; do
        curl -sSf -D - -o "$scratch/old-log" "$QUIPU_URL/v1/functions/$name/logs" |
            sed -n 's/^quipu-log-position: *\([0-9]*\).*/\1/Ip' >"$scratch/log-of-$name"
    done
}

logs() {
    curl -sSf "$QUIPU_URL/v1/functions/$1/logs?max=1000000&from=$(cat "$scratch/log-of-$1")"
}

# The first member NAME of the JSON on stdin: a text, a number or a word.
member() {
    grep -oE "\"$1\": ?(\"[^\"]*\"|[-0-9a-z.]+)" | sed -E '1!d; s/^"[^"]*": ?//; s/^"(.*)"$/\1/'
}

say() {
    printf '\n%s\n' "$*"
}

# check WHAT ACTUAL EXPECTED
check() {
    [ "$2" = "$3" ] || fail "$1: $2, not $3"
    echo "  right: $1: $2"
}

# eventually WHAT EXPECTED COMMAND...: until the command prints it, for a minute at most.
eventually() {
    local what=$1 expected=$2 actual end=$((SECONDS + 60))
    shift 2
    until actual=$("$@" || true) && [ "$actual" = "$expected" ]; do
        [ $SECONDS -lt $end ] || fail "$what: $actual, not $expected, after a minute"
        sleep 0.05
    done
    check "$what" "$actual" "$expected"
}

# A python3 that has boto3; nothing when there is none.
python_with_boto3() {
    local python
    for python in python3 /usr/bin/python3; do
        if command -v "$python" >/dev/null && "$python" -c 'import boto3' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}

done_right() {
    say "$example: everything was right"
}
