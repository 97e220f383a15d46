"""An API server of Kubernetes with its etcd, as the only two processes of a cluster."""

import json
import secrets
import shutil
import ssl
import subprocess
import urllib.request
from pathlib import Path

from .process import Server, free_ports

NAMESPACE = "default"


class Kube:
    """A running API server. Everybody who has the token may do everything, in the name of others too."""

    def __init__(self, binaries, directory):
        binaries, self.directory = Path(binaries), Path(directory).resolve()
        if not shutil.which("openssl"):
            raise RuntimeError("openssl is missing; it makes the certificates of kube-apiserver: apt-get install openssl")
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        client, peer = free_ports(2)
        (self.port,) = free_ports(1)
        self.servers = [self.start_etcd(binaries / "etcd", client, peer)]
        self.token = secrets.token_hex(16)
        self.make_certificates()
        self.servers.append(self.start_api(binaries / "kube-apiserver", client))
        self.kubeconfig = self.directory / "kubeconfig"
        self.kubeconfig.write_text(kubeconfig(self.url, self.token, self.directory / "ca.crt"))

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    @property
    def context(self):
        """The trust in this server's certificate."""
        return ssl.create_default_context(cafile=self.directory / "ca.crt")

    def start_etcd(self, program, client, peer):
        url, peer_url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        etcd = Server("etcd", [
            program, "--data-dir=data", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}", "--log-level=warn",
        ], self.directory / "etcd")
        etcd.wait_until(lambda: b'"true"' in urllib.request.urlopen(f"{url}/health", timeout=5).read())
        return etcd

    def make_certificates(self):
        (self.directory / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for command in (
            ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=comparison", "-days", "30"],
            ["req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=kube-apiserver"],
            ["x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
             "-extfile", "san", "-out", "server.crt", "-days", "30"],
            ["genrsa", "-out", "service-accounts.key", "2048"],
        ):
            subprocess.run(["openssl", *command], cwd=self.directory, check=True, capture_output=True)
        (self.directory / "tokens.csv").write_text(f"{self.token},comparison,comparison,system:masters\n")

    def start_api(self, program, etcd_port):
        server = Server("kube-apiserver", [
            program, f"--etcd-servers=http://127.0.0.1:{etcd_port}", "--bind-address=127.0.0.1",
            f"--secure-port={self.port}", "--tls-cert-file=server.crt", "--tls-private-key-file=server.key",
            "--token-auth-file=tokens.csv", "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=service-accounts.key",
            "--service-account-signing-key-file=service-accounts.key", "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--cert-dir=.", "--v=0",
        ], self.directory)
        server.wait_until(self.is_ready)
        return server

    def is_ready(self):
        """Leases can be written once their namespace exists."""
        return self.request("GET", "/readyz") == 200 and self.request("GET", f"/api/v1/namespaces/{NAMESPACE}") == 200

    def request(self, method, path, body=None):
        """The status of an answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=10, context=self.context).status
        except urllib.error.HTTPError as error:
            return error.code

    def create_lease(self, name):
        """Creates a Lease without a holder, for electors that need one."""
        create_lease(self.request, name)

    def stop(self):
        for server in reversed(self.servers):
            server.stop()


def create_lease(request, name):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}
    status = request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", lease)
    if status != 201:
        raise RuntimeError(f"the Lease {name} was not created: status {status}")


def kubeconfig(url, token=None, ca=None):
    """A kubeconfig, as JSON, which is YAML too. A proxy needs neither a token nor a CA."""
    cluster = {"server": url} | ({"certificate-authority": str(ca)} if ca else {})
    context = {"cluster": "comparison", "user": "comparison", "namespace": NAMESPACE}
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "comparison",
        "clusters": [{"name": "comparison", "cluster": cluster}],
        "users": [{"name": "comparison", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "comparison", "context": context}],
    })
