"""Another user of the machine: what files, the environment and the list of processes give away."""
import os
import pty
import stat
import subprocess

from lambdas import archive, lambda_client
from support.fixtures import boto_client, create_table
from support.process import BINARY, Quipu, clean_environment

SECRET = "SECRET-that-nobody-may-see"


def open_to_others(folder):
    """What others could open or enter, relative to the folder; the code of functions is behind folders of their own."""
    found = []
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            is_code = name in files and os.path.relpath(whole, folder).startswith("functions/")
            if os.lstat(whole).st_mode & 0o077 and not is_code and not os.path.islink(whole):
                found.append((os.path.relpath(whole, folder), oct(stat.S_IMODE(os.lstat(whole).st_mode))))
    return found


def fill(url):
    client = boto_client(url)
    create_table(client, "things")
    client.put_item(TableName="things", Item={"pk": {"S": "a"}})
    code = archive({"bootstrap": "#!/bin/sh\nexit 1\n"})
    lambda_client(url).create_function(FunctionName="f", Role="arn:aws:iam::000000000000:role/any", Handler="x",
                                       Runtime="provided.al2023", Code={"ZipFile": code})
    lambda_client(url).invoke(FunctionName="f")


def test_files_of_a_wide_data_folder_are_private(tmp_path):
    """Whatever the folder's mode and the umask that the server was started with."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    with Quipu("--data", str(data), wrapper=("sh", "-c", 'umask 0; exec "$@"', "sh")) as server:
        fill(server.url)
        assert open_to_others(data) == []
        assert any(data.iterdir())


def test_a_data_folder_is_made_private(tmp_path):
    data = tmp_path / "new"
    with Quipu("--data", str(data), wrapper=("sh", "-c", 'umask 0; exec "$@"', "sh")):
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_commands_on_a_folder_leave_private_files(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    command = 'umask 0; exec "$@"'
    for words in (["table", "create", "things", "pk:S"], ["put", "things", "pk=a"]):
        subprocess.run(["sh", "-c", command, "sh", BINARY, *words, "--on", str(data)], check=True,
                       env=clean_environment(), capture_output=True)
    assert open_to_others(data) == []


def family_of(pid):
    """The process and all that come from it."""
    pids = [pid]
    for one in pids:
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children") as children:
                pids += [int(word) for word in children.read().split()]
    return pids


def test_keys_are_not_in_the_environment_of_the_processes():
    keys = {"AWS_ACCESS_KEY_ID": SECRET + "1", "AWS_SECRET_ACCESS_KEY": SECRET + "2", "AWS_SESSION_TOKEN": SECRET + "3"}
    with Quipu("--memory", env=keys) as server:
        assert boto_client(server.url).list_tables()["TableNames"] == []
        for pid in family_of(server.process.pid):
            with open(f"/proc/{pid}/environ", "rb") as environment:
                assert SECRET.encode() not in environment.read()


def test_the_server_still_signs_with_its_keys(tmp_path):
    path = tmp_path / "keys.ini"
    path.write_text(f"[a]\naws_access_key_id = AKID\naws_secret_access_key = {SECRET}\n")
    keys = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    with Quipu("--memory", "--credentials", str(path)) as there, Quipu("--on", there.url, env=keys) as here:
        assert boto_client(here.url).list_tables()["TableNames"] == []


def test_a_secret_is_read_from_a_file_and_hidden_in_the_arguments(tmp_path, endpoint):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    add = [BINARY, "function", "add", "hook", "--url", "http://127.0.0.1:9/", "--on", endpoint]
    ways = ((["--secret", f"@{secret}"], None), (["--secret", "-"], SECRET), (["--secret=" + SECRET], None))
    for words, given in ways:
        done = subprocess.run(add + words, env=clean_environment(), capture_output=True, text=True, input=given)
        assert done.returncode == 0, done.stderr
    reader, writer = os.pipe()
    child = subprocess.Popen(add + ["--env", "A=" + SECRET, "--secret", "-"], env=clean_environment(), stdin=reader)
    os.close(reader)
    try:
        while True:  # until it has read its arguments; then it waits for us
            with open(f"/proc/{child.pid}/cmdline", "rb") as arguments:
                text = arguments.read()
            if b"****" in text:
                break
            assert child.poll() is None
        assert SECRET.encode() not in text
    finally:
        os.close(writer)
        child.wait(60)


def test_controls_in_a_functions_log_do_not_reach_a_terminal(endpoint):
    client = lambda_client(endpoint)
    source = "def lambda_handler(event, context):\n    print('evil \\x1b[2J\\x9b1m line\\tend')\n"
    client.create_function(FunctionName="controls", Role="arn:aws:iam::000000000000:role/any", Runtime="python3.11",
                           Handler="lambda_function.lambda_handler",
                           Code={"ZipFile": archive({"lambda_function.py": source})})
    client.invoke(FunctionName="controls")
    command = [BINARY, "function", "logs", "controls", "--on", endpoint]
    piped = subprocess.run(command, env=clean_environment(), capture_output=True).stdout
    assert b"evil \x1b[2J\xc2\x9b1m line\tend" in piped
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, env=clean_environment(), stdout=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    child.wait(60)
    os.close(ours)
    assert b"evil \\x1b[2J\\x9b1m line" in shown
    assert b"\x1b" not in shown and b"\xc2\x9b" not in shown
