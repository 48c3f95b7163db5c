"""AWS's own model of the service, as boto3 brings it along: does a request fit its shapes, does it keep its limits?

With it a difference can be explained by a fact instead of a guess: the service refuses a request that does not fit
before it looks at anything else, and DynamoDB Local often does not."""
import functools
import re

import botocore.loaders

NUMERIC = ("integer", "long", "double", "float")
# Newer models allow ARNs as names and longer key schemas of indexes; for tables the limits are the old ones.
NAME = {"min": 3, "max": 255, "pattern": "[a-zA-Z0-9_.-]+"}
LIMITS = {"TableName": NAME, "TableArn": NAME, "KeySchema": {"min": 1, "max": 2}}


@functools.lru_cache(maxsize=None)
def service():
    return botocore.loaders.create_loader().load_service_model("dynamodb", "service-2")


def shape_of(name):
    return {**service()["shapes"][name], **LIMITS.get(name, {})}


def input_shape(operation):
    return shape_of(service()["operations"][operation]["input"]["shape"])


def parts(shape, value):
    """(name, shape, value) of everything inside a value that fits its shape; absent and null members are None."""
    kind = shape["type"]
    if kind == "structure":
        for name, member in shape["members"].items():
            yield name, shape_of(member["shape"]), value.get(name)
    elif kind == "list":
        for element in value:
            yield "member", shape_of(shape["member"]["shape"]), element
    elif kind == "map":
        for key, element in value.items():
            yield "key", shape_of(shape["key"]["shape"]), key
            yield "member", shape_of(shape["value"]["shape"]), element


def type_fits(shape, value):
    kind = shape["type"]
    if kind in ("structure", "map"):
        return isinstance(value, dict)
    if kind == "list":
        return isinstance(value, list)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in NUMERIC:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2 ** 31
    if kind == "blob":
        return isinstance(value, str) and re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
                                                       value) is not None
    return isinstance(value, str)


def fits(shape, value):
    """Every JSON type is the one that the model wants. Null means absent."""
    if value is None:
        return True
    return type_fits(shape, value) and all(fits(inner, part) for _, inner, part in parts(shape, value))


def keeps_limits(shape, value):
    """For a value that fits: required members are there; lengths, numbers, patterns and choices are as modelled."""
    if value is None:
        return True
    measure = value if shape["type"] in NUMERIC else len(value) if hasattr(value, "__len__") else None
    if measure is not None and not shape.get("min", measure) <= measure <= shape.get("max", measure):
        return False
    if isinstance(value, str):
        if "enum" in shape and value not in shape["enum"]:
            return False
        if "pattern" in shape and not re.fullmatch(shape["pattern"], value):
            return False
    required = shape.get("required", [])
    return (all(value.get(name) is not None for name in required)
            and all(keeps_limits(inner, part) for _, inner, part in parts(shape, value)))


def request_fits(operation, request):
    return isinstance(request, dict) and fits(input_shape(operation), request)


def request_keeps_limits(operation, request):
    return not request_fits(operation, request) or keeps_limits(input_shape(operation), request)
