"""The C library as it is installed: what programs see of it, and the worked example."""
import glob
import json
import os
import re
import shlex
import subprocess
import urllib.request

import pytest
from support.library import install
from support.process import ROOT, DynamoLocal, Quipu, clean_environment, run_quipu

EXAMPLE = os.path.join(ROOT, "examples", "embed.c")
PATTERNS = os.path.join(ROOT, "examples", "patterns.c")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("prefix"))
    install(folder)
    return folder


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, **options)


def pkg_config(prefix, *flags):
    env = clean_environment({"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")})
    return shlex.split(subprocess.run(["pkg-config", *flags, "quipu"], env=env, capture_output=True, text=True,
                                      check=True).stdout)


def compile_program(source, target, *flags, compiler="cc"):
    done = run(compiler, "-Wall", "-Wextra", "-Werror", "-o", target, source, *flags)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def shared(prefix, tmp_path_factory):
    program = tmp_path_factory.mktemp("shared") / "embed"
    compile_program(EXAMPLE, program, "-std=c99", "-pedantic", *pkg_config(prefix, "--cflags", "--libs"))
    return program


def compile_statically(prefix, source, target):
    libraries = [flag.replace("-lquipu", "-l:libquipu.a") for flag in pkg_config(prefix, "--static", "--libs")]
    compile_program(source, target, *pkg_config(prefix, "--cflags"), *libraries)
    return target


@pytest.fixture(scope="module")
def static(prefix, tmp_path_factory):
    return compile_statically(prefix, EXAMPLE, tmp_path_factory.mktemp("static") / "embed")


@pytest.fixture(scope="module")
def patterns(prefix, tmp_path_factory):
    program = tmp_path_factory.mktemp("patterns") / "patterns"
    compile_program(PATTERNS, program, "-std=c99", "-pedantic", "-pthread", *pkg_config(prefix, "--cflags", "--libs"))
    return program


def visit(program, prefix, where):
    done = run(program, where, env=clean_environment({"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_first_visit(lines):
    assert lines[:3] == ['/: {"Attributes":{"visits":{"N":"1"}}}', '/about: {"Attributes":{"visits":{"N":"1"}}}',
                         '/: {"Attributes":{"visits":{"N":"2"}}}']
    assert len([line for line in lines if line.startswith("item: ")]) == 2
    changes = [line for line in lines if line.startswith("change: ")]
    assert [change.split()[1] for change in changes] == ["INSERT", "INSERT", "MODIFY"] and len(changes) == 3


def test_example_in_memory(shared, prefix):
    check_first_visit(visit(shared, prefix, ":memory:"))


def test_example_linked_statically(static, prefix):
    assert "libquipu" not in run("ldd", static).stdout
    check_first_visit(visit(static, prefix, ":memory:"))


def test_example_in_a_folder_twice(shared, prefix, tmp_path):
    check_first_visit(visit(shared, prefix, tmp_path / "data"))
    assert visit(shared, prefix, tmp_path / "data")[2] == '/: {"Attributes":{"visits":{"N":"4"}}}'
    assert run_quipu("check", "--data", str(tmp_path / "data")).returncode == 0


def test_a_folder_that_a_server_has(shared, prefix, tmp_path):
    with Quipu("--data", str(tmp_path / "data")):
        done = run(shared, tmp_path / "data", env={"LD_LIBRARY_PATH": os.path.join(prefix, "lib")})
    assert done.returncode == 1
    assert str(tmp_path / "data") in done.stderr


def test_example_against_a_server(shared, prefix):
    with Quipu("--memory") as server:
        check_first_visit(visit(shared, prefix, server.url))


def test_example_against_dynamodb_local(shared, prefix):
    with DynamoLocal() as server:
        check_first_visit(visit(shared, prefix, server.url))


def check_patterns(lines):
    assert lines == ["last: one thread, with fence 1", "20 events in order", "20 of 20 pages by 40 attempts",
                     'report: {"pages":20}']


def test_patterns_in_memory(patterns, prefix):
    check_patterns(visit(patterns, prefix, ":memory:"))


def test_patterns_linked_statically(prefix, tmp_path):
    check_patterns(visit(compile_statically(prefix, PATTERNS, tmp_path / "patterns"), prefix, ":memory:"))


def test_patterns_in_a_folder(patterns, prefix, tmp_path):
    check_patterns(visit(patterns, prefix, tmp_path / "data"))
    assert run_quipu("check", "--data", str(tmp_path / "data")).returncode == 0


def test_patterns_on_a_server_and_there(patterns, prefix):
    with Quipu("--memory") as server:
        check_patterns(visit(patterns, prefix, server.url))
        with urllib.request.urlopen(f"{server.url}/v1/jobs/pages") as reply:
            assert json.load(reply)["state"] == "COMPLETE"


def test_patterns_on_dynamodb_local(patterns, prefix):
    with DynamoLocal() as server:
        check_patterns(visit(patterns, prefix, server.url))


def test_only_its_own_names_are_seen(prefix):
    for command in (["nm", "-D", "--defined-only", f"{prefix}/lib/libquipu.so"],
                    ["nm", "-g", "--defined-only", f"{prefix}/lib/libquipu.a"]):
        names = [line.split()[-1] for line in run(*command).stdout.splitlines() if len(line.split()) == 3]
        assert names and all(name.startswith("quipu_") for name in names)


def test_every_function_of_the_header_is_there_and_in_the_manual(prefix):
    header = open(f"{prefix}/include/quipu.h", encoding="utf-8").read()
    page = open(f"{prefix}/share/man/man3/quipu.3", encoding="utf-8").read()
    code = header[header.index("#ifndef"):]
    symbols = run("nm", "-D", "--defined-only", f"{prefix}/lib/libquipu.so").stdout
    for name in (line.split()[-1] for line in symbols.splitlines()):
        assert f"{name}(" in code
        assert f"{name}(" in page
    declared = set(re.findall(r"\b(quipu_\w+)\(", re.sub(r"/\*.*?\*/", "", code, flags=re.S)))
    assert declared == {line.split()[-1] for line in symbols.splitlines()}


def test_every_route_has_a_function():
    """Those of the originals and the description need none; progress as a stream of events is quipu_job_wait. What the
    server drives is set by whoever runs it: quipu_pattern will do."""
    source = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(ROOT, "src/library/*.c")))
    with Quipu("--memory") as server, urllib.request.urlopen(f"{server.url}/v1/openapi.json") as reply:
        routes = {(method.upper(), re.sub(r"{.*?}", "*", path)) for path, methods in json.load(reply)["paths"].items()
                  for method in methods}
    asked = set(re.findall(r'(?:ask_begin|ask_plain)\([^"]*"(\w+)",\s*"([^"]+)"', source))
    asked |= {("GET", path) for path in re.findall(r'ask_list\(db,\s*"([^"]+)"', source)}
    asked |= {("POST", path) for path in re.findall(r'#define REPLAY "([^"]+)"', source)}
    asked |= {("GET", path) for path in re.findall(r'"(/v1/\w+)",', source)}  # of quipu_list
    driven = {(method, path) for method, path in routes
              if path.startswith("/v1/drives") or path == "/v1/logs/*/consumers/*"
              or path in ("/v1/jobs/*/items", "/v1/jobs/*/tasks", "/v1/jobs/*/read")}
    assert {route for route in routes if route[1].startswith("/v1/")} - asked - driven == {
        ("GET", "/v1/jobs/*/events"), ("GET", "/v1/openapi.json")}
    assert asked <= routes


def test_a_program_may_have_names_of_our_own(prefix, tmp_path):
    source = tmp_path / "names.c"
    source.write_text('''
        #include <quipu.h>
        #include <stdio.h>
        #include <stdlib.h>
        void log_line(const char *s, ...); void log_line(const char *s, ...) { (void)s; abort(); }
        void buf_grow(void); void buf_grow(void) { abort(); }
        void *arena_alloc_slow(void); void *arena_alloc_slow(void) { abort(); }
        void dynamo_open(void); void dynamo_open(void) { abort(); }
        int main(void)
        {
            char error[QUIPU_ERROR_BYTES];
            struct quipu_options options = QUIPU_OPTIONS;
            struct quipu *db = quipu_open(":memory:", &options, error, sizeof error);
            struct quipu_reply *reply = quipu_call(db, "ListTables", "{}");
            puts(reply->json);
            quipu_reply_free(reply);
            quipu_close(db);
            return 0;
        }''')
    static = [flag.replace("-lquipu", "-l:libquipu.a") for flag in pkg_config(prefix, "--static", "--libs")]
    for libraries in (pkg_config(prefix, "--libs"), static):
        compile_program(source, tmp_path / "names", *pkg_config(prefix, "--cflags"), *libraries)
        done = run(tmp_path / "names", env={"LD_LIBRARY_PATH": os.path.join(prefix, "lib")})
        assert done.stdout == '{"TableNames":[]}\n'


def test_the_header_in_cplusplus(prefix, tmp_path):
    source = tmp_path / "plus.cc"
    source.write_text('''
        #include <quipu.h>
        int main()
        {
            quipu_options options = QUIPU_OPTIONS;
            options.region = "eu-west-1";
            char error[QUIPU_ERROR_BYTES];
            quipu *db = quipu_open(":memory:", &options, error, sizeof error);
            if (!db) return 1;
            quipu_reply *reply = nullptr;
            quipu_lease_take(db, "l", "me", 0, 0, nullptr, &reply);
            int64_t value = 0;
            quipu_result result = quipu_counter_add(db, "c", 7, &value, &reply);
            quipu_reply_free(reply);
            quipu_close(db);
            return result == QUIPU_DONE && value == 7 ? 0 : 1;
        }''')
    compile_program(source, tmp_path / "plus", "-std=c++20", "-Wno-missing-field-initializers",
                    *pkg_config(prefix, "--cflags", "--libs"), compiler="g++")
    assert run(tmp_path / "plus", env={"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}).returncode == 0


def test_the_version_is_the_same_everywhere(prefix):
    version = run_quipu("version").stdout.split()[1]
    assert pkg_config(prefix, "--modversion") == [version]
    assert f'"{version}"' in open(f"{prefix}/include/quipu.h", encoding="utf-8").read()
    assert os.path.realpath(f"{prefix}/lib/libquipu.so").endswith(f"libquipu.so.{version}")
