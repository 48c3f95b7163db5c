"""AWS Signature Version 4 from its public description, independent of any SDK, so that each part can be made wrong."""
import datetime
import hashlib
import hmac


def now(offset_seconds=0):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def signing_key(secret, day, region, service):
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def sign(headers, body, access_key, secret, token=None, date=None, region="us-east-1", service="dynamodb",
         method="POST", path="/", query=""):
    """The headers of the request with those of its signature added. All given headers are signed."""
    date = date or now()
    signed = {name.lower(): value for name, value in headers.items()}
    signed["x-amz-date"] = date
    if token is not None:
        signed["x-amz-security-token"] = token
    names = sorted(signed)
    canonical = "\n".join([method, path, query, "".join(f"{n}:{' '.join(signed[n].split())}\n" for n in names),
                           ";".join(names), hashlib.sha256(body).hexdigest()])
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(signing_key(secret, date[:8], region, service), to_sign.encode(), hashlib.sha256).hexdigest()
    result = dict(headers)
    result["X-Amz-Date"] = date
    if token is not None:
        result["X-Amz-Security-Token"] = token
    result["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
                               f"SignedHeaders={';'.join(names)}, Signature={signature}")
    return result
