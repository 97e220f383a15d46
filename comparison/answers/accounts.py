"""Tokens that kube-apiserver makes for service accounts, shown to `lease-api --token-review`."""

import json

API = "/apis/coordination.k8s.io/v1/namespaces"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
JSON = {"Content-Type": "application/json"}

# What they may do, in the file of tokens.
ROLES = "system:serviceaccount:default:elector default,web:read\nsystem:serviceaccount:default:idle default:read\n"


def mistakes(kube, ours):
    """The answers of `ours` that are wrong, in words."""
    def make(path, body):
        status, _, answer = kube.send("POST", path, json.dumps(body), JSON)
        assert status == 201, (path, status, answer)
        return json.loads(answer).get("status", {}).get("token")

    def token(name, **spec):
        return make(f"{ACCOUNTS}/{name}/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})

    for name in ("elector", "idle", "unknown"):
        make(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    elector = token("elector")
    lease = json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "of-an-account"}})
    for why, shown, namespace, body, expected in (
        ("it may write", elector, "default", lease, 201),
        ("it may read", elector, "web", None, 200),
        ("it may only read", elector, "web", lease, 403),
        ("it may only read", token("idle"), "default", lease, 403),
        ("it has no role", token("unknown"), "default", None, 403),
        ("the token is for others", token("elector", audiences=["others"]), "default", None, 401),
        ("the signature is wrong", elector[:-9] + elector[-1:] * 9, "default", None, 401),
    ):
        method, path = "POST" if body else "GET", f"{API}/{namespace}/leases"
        found = ours.send(method, path, body, JSON | {"Authorization": f"Bearer {shown}"})[0]
        if found != expected:
            yield f"{why}: {method} {path} is {found}, expected {expected}"
