"""Where a probed server keeps its objects: the URL and the environment of a probe, and the bucket or the container."""

import base64
import datetime
import hashlib
import hmac
import time
import urllib.request
from urllib.parse import urlsplit

KEYS = ("stores-access-key", "stores-secret-key")
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def s3(port, keys):
    environment = {"AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1], "AWS_REGION": "us-east-1"}
    return f"s3://bucket/lock?endpoint=http://127.0.0.1:{port}", environment


def gcs(port, _):
    return "gs://bucket/lock", {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}


def azure(port, _):
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
    )
    return "az://devstoreaccount1/container/lock", {"AZURE_STORAGE_CONNECTION_STRING": connection}


def make_bucket(port, keys):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
    sign_with_s3(request, keys)
    make(request)


def make_container(port, _):
    url = f"http://127.0.0.1:{port}/devstoreaccount1/container?restype=container"
    request = urllib.request.Request(url, method="PUT")
    sign_with_shared_key(request)
    make(request)


def make(request):
    # A server may take a moment until its parts know each other.
    for attempt in range(20):
        try:
            urllib.request.urlopen(request, timeout=30)
            return
        except OSError:
            if attempt == 19:
                raise
            time.sleep(0.5)


def sign_with_s3(request, keys):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    day, empty, url = now[:8], hashlib.sha256(b"").hexdigest(), urlsplit(request.full_url)
    signed = "host;x-amz-content-sha256;x-amz-date"
    headers = f"host:{url.netloc}\nx-amz-content-sha256:{empty}\nx-amz-date:{now}\n"
    canonical = "\n".join([request.method, url.path, url.query, headers, signed, empty])
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{keys[1]}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    request.add_header("x-amz-date", now)
    request.add_header("x-amz-content-sha256", empty)
    credential = f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={signed}, Signature={key.hex()}"
    request.add_header("authorization", credential)


def sign_with_shared_key(request):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = f"x-ms-date:{now}\nx-ms-version:2021-08-06\n"
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{headers}/devstoreaccount1/devstoreaccount1/container\nrestype:container"
    signature = hmac.new(base64.b64decode(AZURITE_KEY), text.encode(), hashlib.sha256).digest()
    request.add_header("x-ms-date", now)
    request.add_header("x-ms-version", "2021-08-06")
    request.add_header("authorization", f"SharedKey devstoreaccount1:{base64.b64encode(signature).decode()}")
