"""Runs a function's handler in Python: asks Lambda's Runtime API for events, calls the handler, answers.

It behaves as Lambda's own runtime does towards handlers: the module and function named by _HANDLER, the context object,
logging, JSON, errors and their names. It speaks HTTP/1.1 itself over one connection that stays open, because an event
should cost microseconds. With AWS_LAMBDA_MAX_CONCURRENCY there are as many threads, each with its own connection and
at most one event at a time.
"""
import decimal
import importlib
import importlib.machinery
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback

PYTHON_MIN = (3, 7)
API = "/2018-06-01/runtime"
HERE = os.path.abspath(__file__)
TASK_ROOT = os.environ.get("LAMBDA_TASK_ROOT") or os.getcwd()

LOGS_JSON = os.environ.get("AWS_LAMBDA_LOG_FORMAT", "").upper() == "JSON"
LEVELS = {"TRACE": logging.DEBUG, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
          "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}

concurrency = int(os.environ.get("AWS_LAMBDA_MAX_CONCURRENCY") or 1)


class OnlyOne:
    """Where there is one event at a time, all threads belong to it."""


current = threading.local() if concurrency > 1 else OnlyOne()  # .id: of the event that is handled


class Fault(Exception):
    """An error that is the runtime's own, with Lambda's name for it."""

    def __init__(self, kind, message, trace=None):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.trace = trace or []


# ---- HTTP ----

class Connection:
    """One connection to the Runtime API, opened when it is needed."""

    def __init__(self, address):
        self.address = address
        host, _, port = address.rpartition(":")
        self.place = (host, int(port))
        self.socket = None
        self.host_line = "Host: %s\r\n" % address

    def ask(self, method, target, headers="", body=b""):
        """The status, headers by lower-case name, and body of the reply."""
        if not self.socket:
            self.socket = socket.create_connection(self.place)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.buffered = b""
        head = "%s %s%s HTTP/1.1\r\n%s%s" % (method, API, target, self.host_line, headers)
        if method == "POST":
            head += "Content-Length: %d\r\n" % len(body)
        try:
            self.socket.sendall(head.encode("latin-1") + b"\r\n" + body)
            return self.read_reply()
        except BaseException:
            self.close()
            raise

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def read_more(self):
        more = self.socket.recv(262144)
        if not more:
            raise ConnectionError("the Runtime API closed the connection")
        return more

    def read_until(self, end):
        while True:
            at = self.buffered.find(end)
            if at >= 0:
                taken, self.buffered = self.buffered[:at], self.buffered[at + len(end):]
                return taken
            self.buffered += self.read_more()

    def read_bytes(self, count):
        if len(self.buffered) < count:
            parts, missing = [self.buffered], count - len(self.buffered)
            while missing > 0:
                parts.append(self.read_more())
                missing -= len(parts[-1])
            self.buffered = b"".join(parts)
        taken, self.buffered = self.buffered[:count], self.buffered[count:]
        return taken

    def read_chunks(self):
        parts = []
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self.read_until(b"\r\n"):
                    pass
                return b"".join(parts)
            parts.append(self.read_bytes(size))
            self.read_until(b"\r\n")

    def read_reply(self):
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            body = self.read_chunks()
        else:
            body = self.read_bytes(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split(" ")[1]), headers, body


# ---- the context object ----

class CognitoIdentity:
    def __init__(self, given):
        self.cognito_identity_id = given.get("cognitoIdentityId")
        self.cognito_identity_pool_id = given.get("cognitoIdentityPoolId")

    def __repr__(self):
        return "CognitoIdentity([cognito_identity_id=%s,cognito_identity_pool_id=%s])" % (
            self.cognito_identity_id, self.cognito_identity_pool_id)


class Client:
    def __init__(self, given):
        for name in ("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"):
            setattr(self, name, given.get(name))


class ClientContext:
    def __init__(self, given):
        self.custom = given.get("custom")
        self.env = given.get("env")
        self.client = Client(given["client"]) if given.get("client") else None


class LambdaContext:
    def __init__(self, headers):
        environ = os.environ
        self.aws_request_id = headers.get("lambda-runtime-aws-request-id")
        self.invoked_function_arn = headers.get("lambda-runtime-invoked-function-arn")
        self.log_group_name = environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.function_name = environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.memory_limit_in_mb = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.function_version = environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.tenant_id = headers.get("lambda-runtime-aws-tenant-id")
        client = headers.get("lambda-runtime-client-context")
        self.client_context = ClientContext(json.loads(client)) if client else None
        self.identity = CognitoIdentity(json.loads(headers.get("lambda-runtime-cognito-identity") or "{}"))
        self._deadline_ms = int(headers.get("lambda-runtime-deadline-ms") or 0)

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline_ms - int(time.time() * 1000))

    def log(self, message):
        sys.stdout.write(str(message))
        sys.stdout.flush()

    def __repr__(self):
        return "LambdaContext(%s)" % ",".join("%s=%s" % pair for pair in vars(self).items() if pair[0][0] != "_")


# ---- logging ----

class RequestIdFilter(logging.Filter):
    def filter(self, record):
        record.aws_request_id = getattr(current, "id", "")
        return True


class StdoutHandler(logging.Handler):
    """Writes to what sys.stdout is at that moment, so that a handler may replace it."""

    def emit(self, record):
        try:
            sys.stdout.write(self.format(record))
            sys.stdout.flush()
        except Exception:
            self.handleError(record)


PLAIN_MEMBERS = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "aws_request_id", "taskName"}


def time_text(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


class JsonFormatter(logging.Formatter):
    """One object a line; what a call of the logger gave as `extra` is among its members."""

    def format(self, record):
        level = min(50, max(0, record.levelno)) // 10 * 10
        line = {"timestamp": time_text(record.created), "level": logging.getLevelName(level),
                "message": record.getMessage(), "logger": record.name}
        if record.exc_info and record.exc_info[0]:
            kind, error, trace = record.exc_info
            line.update(stackTrace=traceback.format_tb(trace), errorType=kind.__name__, errorMessage=str(error),
                        location="%s:%s:%s" % (record.pathname, record.funcName, record.lineno))
        line["requestId"] = record.aws_request_id or None
        for name, value in vars(record).items():
            if name not in PLAIN_MEMBERS:
                line.setdefault(name, value)
        return json.dumps({name: value for name, value in line.items() if value is not None}, ensure_ascii=False,
                          default=str) + "\n"


def set_up_logging():
    if LOGS_JSON:
        form = JsonFormatter()
    else:
        form = logging.Formatter("[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s\n",
                                 "%Y-%m-%dT%H:%M:%S")
        form.converter = time.gmtime
    handler = StdoutHandler()
    handler.setFormatter(form)
    handler.addFilter(RequestIdFilter())
    logging.getLogger().addHandler(handler)
    level = os.environ.get("AWS_LAMBDA_LOG_LEVEL", "").upper()
    if level in LEVELS:
        logging.getLogger().setLevel(LEVELS[level])


# ---- errors ----

def own_trace(trace):
    """The lines of a traceback without those of this file and of the import machinery."""
    frames = traceback.extract_tb(trace)
    kept = [f for f in frames if f.filename != HERE and not f.filename.startswith("<frozen importlib")
            and os.path.basename(os.path.dirname(f.filename)) != "importlib"]
    return traceback.format_list(kept)


def describe(error, request_id=""):
    if isinstance(error, Fault):
        kind, message, trace = error.kind, error.message, error.trace
    else:
        kind, message, trace = type(error).__name__, str(error), own_trace(error.__traceback__)
    return {"errorMessage": message, "errorType": kind, "requestId": request_id, "stackTrace": trace}


def print_error(described):
    if LOGS_JSON:
        line = dict({"timestamp": time_text(time.time()), "level": "ERROR"}, **described)
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    lines = ["[ERROR] %s: %s\n" % (described["errorType"], described["errorMessage"])]
    if described["stackTrace"]:
        lines += ["Traceback (most recent call last):\n"] + described["stackTrace"]
    sys.stdout.write("".join(lines))
    sys.stdout.flush()


def post_error(connection, target, error, request_id=""):
    described = describe(error, request_id)
    print_error(described)
    kind = "".join(c if " " <= c <= "~" else "?" for c in described["errorType"])[:256]
    headers = "Content-Type: application/json\r\nLambda-Runtime-Function-Error-Type: %s\r\n" % kind
    connection.ask("POST", target, headers, json.dumps(described).encode())


# ---- JSON ----

def encode_other(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


def make_encoder():
    """Since 3.12 Lambda leaves characters as they are."""
    version = os.environ.get("AWS_EXECUTION_ENV", "").rpartition("python3.")[2]
    is_plain = version.isdigit() and int(version) >= 12
    return json.JSONEncoder(default=encode_other, ensure_ascii=not is_plain).encode


def decode_event(body):
    try:
        return json.loads(body)
    except ValueError as error:
        raise Fault("Runtime.UnmarshalError", "Unable to unmarshal input: %s" % error)


def encode_result(encode, result):
    try:
        return encode(result).encode()
    except Exception as error:
        raise Fault("Runtime.MarshalError", "Unable to marshal response: %s" % error)


# ---- finding the handler ----

def find_handler(name):
    """"pkg/mod.fn" or "pkg.mod.fn" -> the function."""
    module_name, dot, function_name = name.rpartition(".")
    if not dot or not module_name:
        raise Fault("Runtime.MalformedHandlerName",
                    "Bad handler '%s': not enough values to unpack (expected 2, got 1)" % name)
    module_name = module_name.replace("/", ".")
    try:
        if module_name.split(".")[0] in sys.builtin_module_names:
            raise Fault("Runtime.BuiltInModuleConflict",
                        "Cannot use built-in module %s as a handler module" % module_name)
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise Fault("Runtime.ImportModuleError", "Unable to import module '%s': %s" % (module_name, error))
    except SyntaxError as error:
        trace = ['  File "%s" Line %s\n    %s' % (error.filename, error.lineno, error.text)]
        raise Fault("Runtime.UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module_name, error), trace)
    try:
        return getattr(module, function_name)
    except AttributeError:
        raise Fault("Runtime.HandlerNotFound", "Handler '%s' missing on module '%s'" % (function_name, module_name))


# ---- SDKs that are older than AWS_ENDPOINT_URL ----

ENDPOINTS = {"dynamodb": "DYNAMODB", "dynamodbstreams": "DYNAMODB_STREAMS", "lambda": "LAMBDA",
             "scheduler": "SCHEDULER"}
BOTOCORE_THAT_KNOWS = (1, 31)


class OldSdkFinder:
    """Makes a botocore before 1.31 (boto3 before 1.28) respect AWS_ENDPOINT_URL for the services that Quipu has, when
    it is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "botocore.session":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), point_clients(module))
        return spec


def point_clients(module):
    version = tuple(int(part) for part in sys.modules["botocore"].__version__.split(".")[:2] if part.isdigit())
    if version >= BOTOCORE_THAT_KNOWS:
        return
    create = module.Session.create_client

    def create_client(self, service_name, region_name=None, api_version=None, use_ssl=True, verify=None,
                      endpoint_url=None, *more, **named):
        environ = os.environ
        if not endpoint_url and service_name in ENDPOINTS and \
                environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
            endpoint_url = environ.get("AWS_ENDPOINT_URL_" + ENDPOINTS[service_name]) or environ.get("AWS_ENDPOINT_URL")
        return create(self, service_name, region_name, api_version, use_ssl, verify, endpoint_url, *more, **named)

    module.Session.create_client = create_client


# ---- the life of the process ----

def set_trace(trace):
    """For the SDK's requests. Where there are several events at a time, it would be another's."""
    if concurrency > 1:
        return
    if trace:
        os.environ["_X_AMZN_TRACE_ID"] = trace
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


def handle(connection, handler, encode, headers, body):
    request_id = current.id = headers["lambda-runtime-aws-request-id"]
    set_trace(headers.get("lambda-runtime-trace-id"))
    target = "/invocation/%s/" % request_id
    try:
        answer = encode_result(encode, handler(decode_event(body), LambdaContext(headers)))
        sys.stdout.flush()
    except Exception as error:
        post_error(connection, target + "error", error, request_id)
    else:
        connection.ask("POST", target + "response", "Content-Type: application/json\r\n", answer)
    current.id = ""


def serve(address, handler, encode):
    connection = Connection(address)
    while True:
        status, headers, body = connection.ask("GET", "/invocation/next")
        if status != 200:  # we are not wanted any more
            leave(0 if status == 410 else 1)
        handle(connection, handler, encode, headers, body)


def leave(status):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve_or_leave(*arguments):
    """In a thread: whatever ends it ends the process."""
    try:
        serve(*arguments)
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 1 if end.code else 0)
    except ConnectionError as error:
        print("The Runtime API cannot be reached: %s" % error)
        leave(1)
    except BaseException:
        traceback.print_exc()
        leave(1)


def debug_by_lines(port):
    """breakpoint() waits for a connection and speaks pdb over it."""
    import pdb
    listener = socket.create_server(("127.0.0.1", port))

    def stop(*_, **__):
        print("breakpoint: attach with 'nc 127.0.0.1 %d'" % port)
        connection, _ = listener.accept()
        debugger = pdb.Pdb(stdin=connection.makefile("r"), stdout=connection.makefile("w"), nosigint=True)
        debugger.set_trace(sys._getframe(1))

    sys.breakpointhook = stop
    print("debugpy is not installed for %s: breakpoint() in the code waits for 'nc 127.0.0.1 %d'"
          % (sys.executable, port))


def wait_for_debugger(port):
    """Under `quipu function debug`: before anything of the function is loaded."""
    try:
        import debugpy
    except ImportError:
        debug_by_lines(port)
        return
    debugpy.listen(("127.0.0.1", port))
    print("Debugger listening on 127.0.0.1:%d" % port)
    debugpy.wait_for_client()


def load(address):
    try:
        if os.environ.get("QUIPU_DEBUG_PORT"):
            wait_for_debugger(int(os.environ["QUIPU_DEBUG_PORT"]))
        if sys.version_info < PYTHON_MIN:
            raise Fault("Runtime.InvalidRuntime", "This Python is %d.%d; functions need version %d.%d or later"
                        % (sys.version_info[:2] + PYTHON_MIN))
        return find_handler(os.environ.get("_HANDLER", ""))
    except Exception as error:
        post_error(Connection(address), "/init/error", error)
        leave(1)


def main():
    address = os.environ["AWS_LAMBDA_RUNTIME_API"]
    sys.dont_write_bytecode = True  # the function's folder is not ours, and may be watched for changes
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(HERE):
        del sys.path[0]
    sys.path.insert(0, TASK_ROOT)
    sys.stdout.reconfigure(line_buffering=True)
    set_up_logging()
    sys.meta_path.insert(0, OldSdkFinder)
    handler = load(address)
    encode = make_encoder()
    for _ in range(concurrency - 1):
        threading.Thread(target=serve_or_leave, args=(address, handler, encode), daemon=True).start()
    serve_or_leave(address, handler, encode)


if __name__ == "__main__":
    main()
