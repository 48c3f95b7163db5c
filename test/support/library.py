"""libquipu from Python, by its C functions: what an embedding program sees.

The library is built and installed by the tests that use it, so that they see what a user gets.
"""
import ctypes
import json
import os
import subprocess

from support.process import ROOT, clean_environment

FAILED, NONE, FOUND, ENDED = -1, 0, 1, 2
OLDEST, LATEST = 0, 1


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("region", ctypes.c_char_p), ("cache_bytes", ctypes.c_uint64),
                ("must_exist", ctypes.c_int), ("unsynced", ctypes.c_int), ("access_key", ctypes.c_char_p),
                ("secret_key", ctypes.c_char_p), ("session_token", ctypes.c_char_p), ("profile", ctypes.c_char_p),
                ("ca_file", ctypes.c_char_p), ("attempts", ctypes.c_uint32), ("in_flight", ctypes.c_uint32),
                ("connect_ms", ctypes.c_uint32), ("attempt_ms", ctypes.c_uint32)]


class Reply(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("error", ctypes.c_char_p), ("message", ctypes.c_char_p),
                ("json", ctypes.c_char_p), ("json_len", ctypes.c_size_t)]


class Record(ctypes.Structure):
    _fields_ = [("json", ctypes.c_char_p), ("json_len", ctypes.c_size_t), ("event", ctypes.c_char_p),
                ("sequence", ctypes.c_char_p), ("shard", ctypes.c_char_p)]


def install(folder):
    """`make install` into the folder."""
    done = subprocess.run(["make", "-s", "install", f"PREFIX={folder}"], cwd=ROOT, capture_output=True, text=True,
                          env=clean_environment())
    assert done.returncode == 0, done.stderr


class CallError(Exception):
    """A reply that names an exception."""

    def __init__(self, reply):
        super().__init__(f"{reply.error}: {reply.message}")
        self.status, self.error, self.message = reply.status, reply.error.decode(), reply.message.decode()


class Library:
    """The shared object, with the types of its functions."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self._declare("quipu_open", pointer, text, ctypes.POINTER(Options), text, ctypes.c_size_t)
        self._declare("quipu_close", None, pointer)
        self._declare("quipu_call", ctypes.POINTER(Reply), pointer, text, text)
        self._declare("quipu_reply_free", None, ctypes.POINTER(Reply))
        self._declare("quipu_pages_open", pointer, pointer, text, text)
        self._declare("quipu_pages_next", ctypes.c_int, pointer, ctypes.POINTER(text), ctypes.POINTER(ctypes.c_size_t))
        self._declare("quipu_pages_reply", ctypes.POINTER(Reply), pointer)
        self._declare("quipu_pages_close", None, pointer)
        self._declare("quipu_stream_open", pointer, pointer, text, ctypes.c_int, text, ctypes.c_size_t)
        self._declare("quipu_stream_next", ctypes.c_int, pointer, ctypes.c_int, ctypes.POINTER(Record))
        self._declare("quipu_stream_reply", ctypes.POINTER(Reply), pointer)
        self._declare("quipu_stream_close", None, pointer)

    def _declare(self, name, result, *arguments):
        function = getattr(self.c, name)
        function.restype, function.argtypes = result, arguments

    def open(self, where, **options):
        given = Options(size=ctypes.sizeof(Options),
                        **{k: v.encode() if isinstance(v, str) else v for k, v in options.items()})
        error = ctypes.create_string_buffer(700)
        handle = self.c.quipu_open(where.encode(), ctypes.byref(given), error, len(error))
        if not handle:
            raise OSError(error.value.decode())
        return Database(self, handle)


class Database:
    def __init__(self, library, handle):
        self.c, self.handle = library.c, handle

    def call(self, operation, request):
        reply = self.c.quipu_call(self.handle, operation.encode(), json.dumps(request).encode())
        try:
            if reply.contents.error:
                raise CallError(reply.contents)
            return json.loads(reply.contents.json)
        finally:
            self.c.quipu_reply_free(reply)

    def pages(self, operation, request):
        pages = self.c.quipu_pages_open(self.handle, operation.encode(), json.dumps(request).encode())
        text = ctypes.c_char_p()
        try:
            while (result := self.c.quipu_pages_next(pages, ctypes.byref(text), None)) == FOUND:
                yield json.loads(text.value)
            if result == FAILED:
                raise CallError(self.c.quipu_pages_reply(pages).contents)
        finally:
            self.c.quipu_pages_close(pages)

    def stream(self, what, start):
        return Stream(self, what, start)

    def close(self):
        self.c.quipu_close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Stream:
    def __init__(self, database, what, start):
        error = ctypes.create_string_buffer(700)
        self.c = database.c
        self.handle = self.c.quipu_stream_open(database.handle, what.encode(), start, error, len(error))
        if not self.handle:
            raise OSError(error.value.decode())

    def next(self, wait_ms):
        """The next record, or what the library answered instead."""
        record = Record()
        result = self.c.quipu_stream_next(self.handle, wait_ms, ctypes.byref(record))
        if result == FAILED:
            raise CallError(self.c.quipu_stream_reply(self.handle).contents)
        return json.loads(record.json) if result == FOUND else result

    def close(self):
        self.c.quipu_stream_close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
