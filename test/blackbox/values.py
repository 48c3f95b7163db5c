"""Short names for attribute values and for what goes wrong."""
import contextlib

import botocore.exceptions
import pytest


def S(text):
    return {"S": text}


def N(number):
    return {"N": str(number)}


def B(data):
    return {"B": data}


def L(*elements):
    return {"L": list(elements)}


def M(**members):
    return {"M": members}


def SS(*members):
    return {"SS": list(members)}


def NS(*members):
    return {"NS": [str(m) for m in members]}


def BS(*members):
    return {"BS": list(members)}


TRUE, FALSE, NULL = {"BOOL": True}, {"BOOL": False}, {"NULL": True}


def same(left, right):
    """Equal attribute values, where sets have no order."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return all(sorted(left[k]) == sorted(right[k]) if k in ("SS", "NS", "BS") and isinstance(left[k], list)
                   else same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@contextlib.contextmanager
def refused(code, *words):
    """The call inside must fail with this exception, and its message must contain the words."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        yield caught
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    for word in words:
        assert word in error["Message"], error["Message"]
    caught.response = caught.value.response


def invalid(*words):
    return refused("ValidationException", *words)
