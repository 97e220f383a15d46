"""The requests that both servers answer, in scenarios. Each scenario uses a Lease of its own.

A step is (method, path, body, headers). In paths and bodies, `{lease}` is the scenario's Lease, `{lease2}` and so on are other names,
`{leases}` is the collection of the namespace, `{version}` and `{uid}` are those of the last object that this server has returned, and
`{list}` is the version of its last list.
"""

import json

GROUP = "coordination.k8s.io/v1"
API = f"/apis/{GROUP}"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
NAMED = "{leases}/{lease}"
SPEC = {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "2026-01-02T03:04:05.678901Z",
        "renewTime": "2026-01-02T03:04:05.678901Z", "leaseTransitions": 3}
LATER = "2026-01-02T03:04:09.000000Z"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}


def lease(spec=SPEC, name="{lease}", **metadata):
    body = {"apiVersion": GROUP, "kind": "Lease", "metadata": {"name": name, **metadata}}
    return body if spec is None else body | {"spec": spec}


def get(path=NAMED, **headers):
    return ("GET", path, None, {name.replace("_", "-"): value for name, value in headers.items()})


def post(body=None, path="{leases}", headers=JSON):
    return ("POST", path, lease() if body is None else body, headers)


def put(body=None, path=NAMED, headers=JSON):
    return ("PUT", path, lease(resourceVersion="{version}") if body is None else body, headers)


def patch(body, headers=MERGE, path=NAMED):
    return ("PATCH", path, body, headers)


def delete(path=NAMED, body=None, headers=None):
    return ("DELETE", path, body, headers or ({} if body is None else JSON))


def spec(**fields):
    return {**SPEC, **fields}


def discovery():
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    yield "discovery of the API", [get(path) for path in ("/api", "/apis", f"/apis/coordination.k8s.io", API, "/version")]
    yield "aggregated discovery", [get(path, Accept=aggregated) for path in ("/api", "/apis")]
    yield "paths that are not there", [
        get(path) for path in ("/apis/none", "/apis/coordination.k8s.io/v2", f"{API}/none", "/none", f"{API}/namespaces/default/none/a")]
    yield "health", [get(path) for path in ("/healthz", "/livez", "/readyz")]
    yield "methods that are not allowed", [
        (method, path, None, {}) for method, path in
        (("PUT", "{leases}"), ("PATCH", "{leases}"), ("POST", NAMED), ("OPTIONS", NAMED), ("TRACE", NAMED), ("PUT", f"{API}/leases"))]
    yield "subresources", [post()] + [get(f"{NAMED}/{name}") for name in ("status", "scale", "none")] + [
        patch({"spec": {}}, path=f"{NAMED}/status")]


def reads():
    yield "reads of a Lease that is not there", [get(), get(**{"Accept": "application/yaml"}), ("HEAD", NAMED, None, {})]
    yield "reads of a Lease", [post(), get(), ("HEAD", NAMED, None, {})] + [
        get(f"{NAMED}?{query}") for query in ("pretty=true", "resourceVersion=0", "resourceVersion={version}", "none=1")]
    yield "reads of versions", [post()] + [
        get(f"{NAMED}?resourceVersion={version}") for version in ("abc", "-1")]
    yield "media types of a read", [post()] + [
        get(Accept=accept) for accept in (
            "application/json", "*/*", "application/*", "application/json, */*", "text/html, application/json;q=0.9", "text/html",
            "application/none", "application/json;as=None;v=v1;g=meta.k8s.io", TABLE["Accept"], PARTIAL["Accept"],
            TABLE["Accept"] + ",application/json", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/yaml")]
    yield "columns of a table", [post()] + [
        get(f"{NAMED}?includeObject={which}", **TABLE) for which in ("None", "Metadata", "Object", "Wrong")]


def creations():
    yield "creation", [post(), post(), get()]
    yield "creation of parts", [post(lease(s, name)) for name, s in (("{lease}", None), ("{lease2}", {}), ("{lease3}", {"holderIdentity": "b"}))]
    for field, values in {
        "holderIdentity": ["", 5, None, ["a"], "x" * 300, "a\nb"],
        "leaseDurationSeconds": [0, -1, "15", 1.5, 2**31 - 1, 2**31, None],
        "leaseTransitions": [-1, 0, 2**31 - 1, 2**31, "3", None],
        "acquireTime": ["", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05+02:00", "yesterday", 5, None,
                        "2026-01-02T03:04:05.1234567Z"],
        "renewTime": ["2026-01-02T03:04:05.999999999Z", "2026-01-02", None],
        "strategy": ["", "OldestEmulationVersion", 5],
        "preferredHolder": ["", "b", 5],
    }.items():
        yield f"creation with {field}", [post(lease(spec(**{field: value}), f"{{lease{i or ''}}}")) for i, value in enumerate(values)]
    yield "creation with preferredHolder and strategy", [
        post(lease(spec(strategy="OldestEmulationVersion", preferredHolder="b"))), post(lease({"preferredHolder": "b"}, "{lease2}"))]
    yield "names", [post(lease(name=name)) for name in ("", "A", "a_b", "-a", "a-", "a" * 254, "a/b", "a.b", "..", "a%b", 5)]
    yield "generated names", [post(lease(None) | {"metadata": {"generateName": "{lease}-"}}), post(lease(None) | {"metadata": {}}),
                              post(lease(None) | {"metadata": {"generateName": "A_"}})]
    yield "namespaces of an object", [post(lease(namespace=each)) for each in ("default", "other", "", 5)]
    yield "kinds and versions", [post(lease() | change) for change in (
        {"kind": "Pod"}, {"kind": ""}, {"apiVersion": "v1"}, {"apiVersion": ""}, {"apiVersion": "coordination.k8s.io/v1beta1"},
        {"kind": 5}, {"kind": "LeaseList"})]
    yield "bodies", [("POST", "{leases}", body, JSON) for body in ("", "{", "[]", "null", "5", '"a"', "{}", "{} {}", "\u0000")]
    yield "media types of a creation", [post(headers={"Content-Type": kind}) for kind in (
        "text/plain", "application/none", "", "application/json; charset=utf-8", "application/vnd.kubernetes.protobuf")]
    yield "YAML", [("POST", "{leases}", f"apiVersion: {GROUP}\nkind: Lease\nmetadata:\n  name: {{lease}}\nspec:\n  holderIdentity: a\n",
                    {"Content-Type": "application/yaml"}), get()]
    yield "dry runs", [post(path="{leases}?dryRun=All"), get(), post(path="{leases}?dryRun=Some"), post(path="{leases}?dryRun="),
                       post(), post(path="{leases}?dryRun=All")]
    unknown = lease(spec(none=1)) | {"more": True}
    yield "unknown fields", [post(unknown, f"{{leases}}?dryRun=All&fieldValidation={how}") for how in
                             ("Strict", "Warn", "Ignore", "Wrong", "")]
    twice = '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{lease}"},"spec":{"holderIdentity":"a","holderIdentity":"b"}}'
    yield "fields that stand twice", [post(twice, f"{{leases}}?dryRun=All&fieldValidation={how}") for how in ("Strict", "Warn", "Ignore")]
    yield "field managers", [post(path=f"{{leases}}?dryRun=All&fieldManager={name}") for name in ("a", "a" * 129, "%01")]
    yield "versions and UIDs of a creation", [post(lease(resourceVersion="5")), post(lease(resourceVersion="")), post(lease(name="{lease2}", uid="abc")),
                                              post(lease(name="{lease3}", creationTimestamp="2020-01-01T00:00:00Z", generation=7))]
    yield "managed fields of a creation", [post(lease(managedFields=[{"manager": "a"}])), post(lease(name="{lease2}", managedFields=[]))]


def metadata():
    labels = [{"a": "b"}, {"a": ""}, {"A/b": "c"}, {"": "a"}, {"a": "b c"}, {"a": 5}, {"a": None}, {"a b": "c"}, {"x" * 64: "a"},
              {"a": "x" * 64}, {"example.com/a": "b"}, {"example.com/": "b"}, [], "a", None]
    yield "labels", [post(lease(None, f"{{lease{i or ''}}}", labels=each)) for i, each in enumerate(labels)]
    notes = [{"a": "b c\n"}, {"": "a"}, {"a b": "c"}, {"a": 5}, {"a": "x" * 300000}, {"example.com/a": ""}, {"EXAMPLE.com/a": "b"}]
    yield "annotations", [post(lease(None, f"{{lease{i or ''}}}", annotations=each)) for i, each in enumerate(notes)]
    finalizers = [[], ["a"], ["example.com/a"], ["a b"], ["orphan"], "a", [5], [""]]
    yield "finalizers", [post(lease(None, f"{{lease{i or ''}}}", finalizers=each), "{leases}?dryRun=All") for i, each in enumerate(finalizers)]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}
    owners = [[], [owner], [owner, owner], [owner | {"uid": ""}], [owner | {"kind": ""}], [owner | {"apiVersion": "a/b/c"}],
              [owner | {"controller": True}, owner | {"uid": "c", "controller": True}], [owner | {"name": ""}], ["a"], "a",
              [owner | {"blockOwnerDeletion": True}]]
    yield "owners", [post(lease(None, f"{{lease{i or ''}}}", ownerReferences=each), "{leases}?dryRun=All") for i, each in enumerate(owners)]
    yield "metadata of an update", [post(), put(lease(resourceVersion="{version}", labels={"a": "b"})), get(),
                                    put(lease(resourceVersion="{version}", annotations={"c": "d"})), put(lease(resourceVersion="{version}"))]


def updates():
    yield "updates", [post(), put(lease(spec(holderIdentity="b"), resourceVersion="{version}")), get(),
                      put(lease(spec(holderIdentity="b"), resourceVersion="{version}"))]
    yield "updates without a version", [post(), put(lease(spec(holderIdentity="b"))), put(lease(spec(holderIdentity="b"), resourceVersion=""))]
    yield "updates of an old version", [post(), put(lease(spec(holderIdentity="b"), resourceVersion="1")), put(lease(resourceVersion="abc")), put(lease(resourceVersion=5))]
    yield "updates of a Lease that is not there", [put(lease()), get(), put(lease(name="{lease2}", resourceVersion="5"), "{leases}/{lease2}"),
                                                   put(lease(name="{lease3}", uid="abc"), "{leases}/{lease3}")]
    yield "updates of another name", [post(), put(lease(name="{lease2}")), put(lease(name=""))]
    yield "updates of another UID", [post(), put(lease(uid="abc", resourceVersion="{version}")), put(lease(uid="{uid}", resourceVersion="{version}"))]
    yield "updates of another namespace", [post(), put(lease(namespace="other", resourceVersion="{version}"))]
    yield "updates that cannot be right", [post()] + [put(lease(spec(**fields), resourceVersion="{version}")) for fields in (
        {"leaseDurationSeconds": 0}, {"leaseDurationSeconds": -5}, {"leaseTransitions": -1}, {"holderIdentity": 5}, {"renewTime": "x"},
        {"holderIdentity": ""})]
    yield "updates of what is read only", [post(), put(lease(resourceVersion="{version}", creationTimestamp="2020-01-01T00:00:00Z")),
                                           put(lease(resourceVersion="{version}", generation=7)),
                                           put(lease(resourceVersion="{version}", deletionTimestamp="2020-01-01T00:00:00Z"))]
    yield "dry runs of updates", [post(), put(lease(spec(holderIdentity="b"), resourceVersion="{version}"), NAMED + "?dryRun=All"), get()]
    yield "a release and a takeover", [post(), put(lease(spec(holderIdentity="", leaseDurationSeconds=1), resourceVersion="{version}")),
                                       put(lease(spec(holderIdentity="c", leaseTransitions=4), resourceVersion="{version}")), get()]


def patches():
    yield "patches of a Lease that is not there", [patch({"spec": {"renewTime": LATER}}), patch([], PATCH), patch({"spec": {}}, STRATEGIC)]
    yield "merge patches", [post()] + [patch(body) for body in (
        {"spec": {"renewTime": LATER}}, {"spec": {"renewTime": None}}, {}, {"spec": None}, {"spec": {"none": 1}},
        {"metadata": {"name": "other"}}, {"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "{version}"}, "spec": {"renewTime": LATER}},
        {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"a": None}}}, {"kind": "Pod"}, {"spec": {"leaseDurationSeconds": 0}},
        {"spec": {"leaseDurationSeconds": "1"}}, {"metadata": {"uid": "abc"}}, {"metadata": {"namespace": "other"}})]
    yield "merge patches that are none", [post()] + [("PATCH", NAMED, body, MERGE) for body in ("", "{", "[]", "null", "5", '"a"')]
    yield "JSON patches", [post()] + [patch(body, PATCH) for body in (
        [], [{"op": "replace", "path": "/spec/renewTime", "value": LATER}], [{"op": "test", "path": "/spec/holderIdentity", "value": "z"}],
        [{"op": "test", "path": "/spec/renewTime", "value": LATER}], [{"op": "remove", "path": "/spec/none"}],
        [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], [{"op": "add", "path": "/metadata/labels/c~1d", "value": "e"}],
        [{"op": "copy", "from": "/spec/holderIdentity", "path": "/metadata/labels/x"}], [{"op": "move", "from": "/metadata/labels/x", "path": "/metadata/labels/y"}],
        [{"op": "replace", "path": "/metadata/name", "value": "z"}], [{"op": "wrong", "path": "/spec"}], [{"op": "replace"}], {}, [5],
        [{"op": "add", "path": "spec", "value": 1}], [{"op": "remove", "path": "/spec/renewTime"}], [{"op": "remove", "path": ""}],
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}])]
    yield "too many operations", [post(), patch([{"op": "add", "path": "/metadata/labels", "value": {}}] * 10001, PATCH)]
    yield "strategic patches", [post()] + [patch(body, STRATEGIC) for body in (
        {"spec": {"renewTime": LATER}}, {"spec": {"renewTime": None}}, {"spec": {"$patch": "replace", "holderIdentity": "a", "leaseDurationSeconds": 9}},
        {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/a"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
        {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "b"}]}}, {"$patch": "delete"}, {"$patch": "wrong"},
        {"$retainKeys": ["spec"]}, {"spec": {"none": 1}}, [], 5)]
    yield "a live holder", [post(), patch({"spec": {"holderIdentity": "b"}}), patch({"spec": {"holderIdentity": "b"}, "metadata": {"resourceVersion": "{version}"}}), get()]
    apply = lease(spec(renewTime=LATER))
    yield "server-side apply", [
        patch(apply, APPLY), patch(apply, APPLY, NAMED + "?fieldManager=one"), get(), patch(apply, APPLY, NAMED + "?fieldManager=one"),
        patch(lease(spec(leaseDurationSeconds=9)), APPLY, NAMED + "?fieldManager=two"),
        patch(lease(spec(leaseDurationSeconds=9)), APPLY, NAMED + "?fieldManager=two&force=true"), get(),
        patch(lease(None), APPLY, NAMED + "?fieldManager=two&force=true"), patch(apply, APPLY, NAMED + "?fieldManager=one&force=wrong"),
        patch(lease(resourceVersion="1"), APPLY, NAMED + "?fieldManager=one"), patch(lease(managedFields=[{}]), APPLY, NAMED + "?fieldManager=one"),
        patch({"kind": "Lease"}, APPLY, NAMED + "?fieldManager=one"), ("PATCH", NAMED, "a: [", APPLY)]
    yield "media types of a patch", [post()] + [patch({}, {"Content-Type": kind}) for kind in
                                                ("application/json", "text/plain", "", "application/merge-patch+json; charset=utf-8")]
    yield "options of a patch", [post()] + [patch({"spec": {"renewTime": LATER}}, MERGE, NAMED + "?" + query) for query in
                                            ("force=true", "dryRun=All", "fieldManager=a", "fieldValidation=Strict", "dryRun=x")]


def deletions():
    yield "deletions", [delete(), post(), delete(), get(), delete()]
    yield "deletions with preconditions", [post()] + [delete(body={"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": each}) for each in (
        {"uid": "abc"}, {"resourceVersion": "1"}, {"uid": "{uid}", "resourceVersion": "{version}"})]
    yield "options of a deletion", [post(), delete(NAMED + "?dryRun=All"), get(), delete(NAMED + "?gracePeriodSeconds=-1"), delete(NAMED + "?propagationPolicy=Wrong"),
                                    delete(NAMED + "?propagationPolicy=Foreground"), post(), delete(NAMED + "?gracePeriodSeconds=5"), post(),
                                    delete(NAMED + "?propagationPolicy=Orphan"), post(), delete(NAMED + "?orphanDependents=true&propagationPolicy=Background"), delete()]
    yield "bodies of a deletion", [post()] + [("DELETE", NAMED, body, JSON) for body in ("{", "[]", '{"kind":"Pod","apiVersion":"v1"}', "5", "{}")]
    yield "a Lease that was created again", [post(), delete(), post(), get(), put(lease(resourceVersion="{version}"))]
    yield "deletions of a collection", [post(lease(labels={"set": "{lease}"})), post(lease(name="{lease2}", labels={"set": "{lease}"})),
                                        delete("{leases}?labelSelector=set={lease}&dryRun=All"), get("{leases}?labelSelector=set={lease}"),
                                        delete("{leases}?labelSelector=set={lease}"), get("{leases}?labelSelector=set={lease}"),
                                        delete("{leases}?labelSelector=("), delete(f"{API}/leases?labelSelector=set={{lease}}")]


def lists():
    three = [post(lease(None, f"{{lease{i or ''}}}", labels={"set": "{lease}", "n": str(i)})) for i in range(3)]
    of = "{leases}?labelSelector=set%3D{lease}"
    yield "lists", three + [get(f"{of}&{query}") for query in (
        "", "limit=2", "limit=100", "limit=-1", "limit=abc", "limit=2&continue=abc", "resourceVersion=0", "resourceVersion=abc",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=5&resourceVersionMatch=Wrong", "timeoutSeconds=5", "pretty=true", "sendInitialEvents=true")]
    exact = get(f"{of}&resourceVersionMatch=Exact&resourceVersion={{list}}")
    yield "exact versions", three + [get(of), exact, post(lease(None, "{lease3}", labels={"set": "{lease}"})), exact,
                                     get(f"{of}&resourceVersionMatch=Exact&resourceVersion={{version}}")]
    yield "pages", three + [get(f"{of}&limit=1"), get(f"{of}&limit=1&continue={{continue}}"), get(f"{of}&limit=1&continue={{continue}}"),
                            get(f"{of}&limit=2"), get(f"{of}&continue={{continue}}")]
    yield "label selectors", three + [get(f"{{leases}}?labelSelector={selector}") for selector in (
        "set={lease},n=1", "set=={lease},n!=1", "set={lease},n+in+(0,2)", "set={lease},n+notin+(0,2)", "set={lease},n", "set={lease},!n",
        "set={lease},none", "set={lease},n>0", "set={lease},n<1", "set={lease},n>x", "(", "a=b=c", "a+in", "a+in+()", "=", "a/b/c=d", "set={lease},n=")]
    yield "field selectors", three + [get(f"{of}&fieldSelector={selector}") for selector in (
        "metadata.name={lease}", "metadata.name!={lease}", "metadata.namespace=default", "metadata.namespace=other", "spec.holderIdentity=a", "metadata.none=a",
        "metadata.name", "metadata.name={lease},metadata.namespace=default", "")]
    yield "all namespaces", three + [get(f"{API}/leases?labelSelector=set%3D{{lease}}{query}") for query in ("", "&limit=1", "&fieldSelector=metadata.namespace%3Ddefault")]
    yield "forms of a list", three + [get(of, **headers) for headers in (TABLE, PARTIAL, {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
                                                                          {"Accept": "application/yaml"}, {"Accept": "text/html"})]
    yield "a namespace without Leases", [get(f"{API}/namespaces/kube-system/leases?labelSelector=set%3D{{lease}}"), get(f"{API}/namespaces/none/leases?labelSelector=set%3D{{lease}}")]


def watches():
    of = "{leases}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3D{lease}"
    yield "watches from now", [post(), get(of), get(of + "&resourceVersion=0")]
    yield "watches from a version", [post(), get(f"{of}&resourceVersion={{version}}"),
                                     put(lease(spec(holderIdentity="b"), resourceVersion="{version}")), get(f"{of}&resourceVersion={{version}}")]
    yield "watches that cannot be right", [post()] + [get(f"{of}&{query}") for query in (
        "resourceVersion=abc", "resourceVersion=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan",
        "labelSelector=(", "resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")]
    yield "no initial events", [post()] + [get(f"{of}&sendInitialEvents=false{query}") for query in (
        "", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact&resourceVersion=5",
        "&resourceVersionMatch=NotOlderThan&resourceVersion=0", "&resourceVersionMatch=NotOlderThan&resourceVersion={version}")]
    yield "the end of initial events", [post(), get(of + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")]
    yield "forms of a watch", [post()] + [get(of, **headers) for headers in (TABLE, PARTIAL, {"Accept": "application/json;stream=watch"})]
    yield "a watch of one Lease", [post(), get("{leases}/{lease}?watch=1&timeoutSeconds=1"), get(f"{API}/watch/namespaces/default/leases/{{lease}}?timeoutSeconds=1")]


def people():
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
              "spec": {"resourceAttributes": {"group": "coordination.k8s.io", "resource": "leases", "verb": "update", "namespace": "default"}}}
    yield "who may", [post(review, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
                      post({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, "/apis/authentication.k8s.io/v1/selfsubjectreviews")]
    yield "wrong tokens", [("GET", "{leases}", None, {"Authorization": header}) for header in ("Bearer wrong", "Basic YTpi", "Bearer", "")]
    yield "other people", [("GET", "{leases}?limit=1", None, {f"Impersonate-{name}": value}) for name, value in (("User", "a"), ("Group", "a"), ("Uid", "a"))]


def scenarios():
    """All scenarios, by name."""
    found = {}
    for part in (discovery, reads, creations, metadata, updates, patches, deletions, lists, watches, people):
        for name, steps in part():
            assert name not in found, name
            found[name] = steps
    return found


def text(body):
    return body if isinstance(body, (str, type(None))) else json.dumps(body)
