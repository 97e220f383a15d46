//! Who asks: what it may do, what its namespace may take, and what the audit tells of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use futures_util::FutureExt as _;
use leaderelection::StoreErrorKind::{Ambiguous, Rejected};
use leaderelection_lease_api::{AuditEvent, Caller, LeaseApi, Role};
use leaderelection_test_support::faulty::{Call, Fault, Faulty};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::api::{Api, LEASES, WEB, lease, with};
use crate::people::ALL;

pub(crate) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

fn caller(everywhere: Option<Role>, namespaces: &[(&str, Role)]) -> Caller {
    let namespaces: BTreeMap<_, _> = namespaces.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect();
    let mut caller = Caller::default();
    (caller.name, caller.everywhere, caller.namespaces) = ("1a2b3c4d".to_owned(), everywhere, namespaces);
    caller
}

async fn ask(routes: &Router, caller: &Caller, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(target).header("user-agent", "kubectl/v1.37");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let response = routes.clone().oneshot(request.extension(caller.clone()).body(body).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn a_caller_does_what_its_role_in_a_namespace_allows_and_is_told_so_beforehand() {
    let store = Faulty::default();
    let api = LeaseApi::new(store.clone(), "leases/").routes();
    let all = caller(Some(Role::Write), &[]);
    let readers = [caller(Some(Role::Read), &[]), caller(None, &[("default", Role::Read), ("other", Role::Write)])];
    let nobody = caller(None, &[("other", Role::Write)]);
    let writer = caller(Some(Role::Read), &[("default", Role::Write)]);
    let elsewhere = LEASES.replace("default", "elsewhere");
    for (caller, target, method, verb, namespace, status) in [
        (&all, LEASES, "POST", "create", "default", 201),
        (&all, ALL, "GET", "list", "", 200),
        (&readers[0], ALL, "GET", "watch", "", 200),
        (&readers[0], WEB, "GET", "get", "default", 200),
        (&readers[1], WEB, "GET", "get", "default", 200),
        (&readers[1], ALL, "GET", "list", "", 403),
        (&readers[1], &elsewhere, "GET", "list", "elsewhere", 403),
        (&readers[0], LEASES, "POST", "create", "default", 403),
        (&readers[1], WEB, "PUT", "update", "default", 403),
        (&readers[1], WEB, "PATCH", "patch", "default", 403),
        (&readers[1], LEASES, "DELETE", "deletecollection", "default", 403),
        (&nobody, WEB, "GET", "get", "default", 403),
        (&nobody, WEB, "DELETE", "*", "default", 403),
        (&writer, &elsewhere, "POST", "create", "elsewhere", 403),
        (&writer, WEB, "DELETE", "delete", "default", 200),
    ] {
        let attributes =
            json!({"group": "coordination.k8s.io", "resource": "leases", "verb": verb, "namespace": namespace});
        let review = json!({"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
        let (code, review) = ask(&api, caller, "POST", REVIEWS, &review).await;
        assert_eq!(
            (code, review["status"]["allowed"].as_bool()),
            (201, Some(status < 300)),
            "{verb} {namespace} {review}"
        );
        let before = store.requests();
        let body = if ["GET", "DELETE"].contains(&method) { Value::Null } else { lease("a") };
        let (code, said) = ask(&api, caller, method, target, &body).await;
        assert_eq!(code, status, "{method} {target} {caller:?}: {said}");
        if status == 403 {
            assert_eq!((said["reason"].as_str(), store.requests()), (Some("Forbidden"), before), "nothing was asked");
            assert_eq!(review["status"]["reason"], said["message"], "{verb}");
        }
    }
    for other in
        [json!({"verb": "get", "resource": "pods"}), json!({"verb": "sing", "resource": "leases"}), Value::Null]
    {
        let review = json!({"spec": {"resourceAttributes": other}});
        assert_eq!(ask(&api, &all, "POST", REVIEWS, &review).await.1["status"]["allowed"], false);
    }
    assert_eq!(ask(&api, &all, "POST", REVIEWS, &json!([])).await.0, 400);
}

#[tokio::test]
async fn each_write_that_was_or_may_be_committed_is_audited_once() {
    let (store, told) = (Faulty::default(), Arc::<Mutex<Vec<AuditEvent>>>::default());
    let tell = Arc::clone(&told);
    let api = LeaseApi::new(store.clone(), "leases/").with_audit(move |event| tell.lock().unwrap().push(event.clone()));
    let api = api.routes();
    let me = caller(Some(Role::Write), &[]);
    let last = || {
        let mut told = told.lock().unwrap();
        assert!(told.len() <= 1, "{told:?}");
        let event = told.pop()?;
        assert_eq!((&*event.caller, &*event.user_agent), ("1a2b3c4d", "kubectl/v1.37"));
        assert_eq!((&*event.namespace, &*event.name), ("default", "web"));
        Some((event.verb, event.from_holder, event.to_holder, event.token, event.is_known))
    };
    let event =
        |verb, from: &str, to: &str, token, is_known| Some((verb, from.to_owned(), to.to_owned(), token, is_known));
    let (_, held) = ask(&api, &me, "POST", LEASES, &lease("a")).await;
    assert_eq!(last(), event("create", "", "a", 0, true));
    let (_, taken) = ask(&api, &me, "PUT", WEB, &with(&held, &json!({"holderIdentity": "b"}))).await;
    assert_eq!(last(), event("update", "a", "b", 1, true));
    for (method, target, body) in [
        ("PUT", WEB.to_owned(), &held),
        ("PUT", WEB.to_owned(), &taken),
        ("GET", WEB.to_owned(), &Value::Null),
        ("DELETE", format!("{WEB}?dryRun=All"), &Value::Null),
        ("POST", LEASES.to_owned(), &lease("c")),
    ] {
        ask(&api, &me, method, &target, body).await;
        assert_eq!(last(), None, "{method} {target} changes nothing");
    }
    for (kind, expected) in [(Rejected, None), (Ambiguous, event("update", "b", "c", 2, false))] {
        store.fail(move |call, _, _| (call == Call::Put).then_some(Fault::Refuse(kind)));
        ask(&api, &me, "PUT", WEB, &with(&taken, &json!({"holderIdentity": "c"}))).await;
        assert_eq!(last(), expected, "{kind:?}");
    }
    store.fail(|call, _, _| (call == Call::Put).then_some(Fault::Hang));
    let body = with(&taken, &json!({"holderIdentity": "c"}));
    assert!(ask(&api, &me, "PUT", WEB, &body).now_or_never().is_none(), "the client goes away");
    assert_eq!(last(), event("update", "b", "c", 2, false));
    store.recover();
    ask(&api, &me, "DELETE", LEASES, &Value::Null).await;
    assert_eq!(last(), event("delete", "b", "", 1, true));
}

#[tokio::test]
async fn a_namespace_has_room_for_so_many_leases_and_bytes_and_another_has_its_own() {
    let api = Api::new();
    let server = LeaseApi::new(api.store.clone(), "leases/").with_max_leases(100).routes();
    let me = caller(Some(Role::Write), &[]);
    let create = async |namespace: &str, number: usize, note: usize| {
        let mut lease = lease("a");
        lease["metadata"] = json!({"name": format!("web-{number}"), "annotations": {"note": "x".repeat(note)}});
        ask(&server, &me, "POST", &LEASES.replace("default", namespace), &lease).await
    };
    let refused = |(status, said): (u16, Value), what: &str| {
        assert_eq!((status, said["reason"].as_str()), (403, Some("Forbidden")), "{said}");
        assert!(said["message"].as_str().unwrap().contains(what), "{said}");
    };
    for number in 0..100 {
        assert_eq!(create("default", number, 0).await.0, 201, "{number}");
    }
    refused(create("default", 100, 0).await, "100 Leases");
    let mut renewed = api.another().send("GET", &format!("{LEASES}/web-1"), "", "").await.is(200);
    renewed["spec"]["renewTime"] = "2026-02-02T10:16:00.000000Z".into();
    let target = format!("{LEASES}/web-1");
    assert_eq!(ask(&server, &me, "PUT", &target, &renewed).await.0, 200, "who has a Lease renews it");
    assert_eq!(create("default", 1, 0).await.0, 409, "it is there, whether there is room or not");
    assert_eq!(ask(&server, &me, "DELETE", &format!("{LEASES}/web-2"), &Value::Null).await.0, 200);
    assert_eq!(create("default", 2, 0).await.0, 201, "a deleted Lease has kept its room");
    assert_eq!(create("elsewhere", 1, 0).await.0, 201);
    let full = async || {
        for number in 0..100 {
            let (status, said) = create("full", number, 30_000).await;
            if status != 201 {
                return (number, (status, said));
            }
        }
        panic!("there is room for all");
    };
    let (number, answer) = full().await;
    assert!((13..=64).contains(&number), "{number}");
    refused(answer, "409600 bytes");
    let target = format!("{}/web-1", LEASES.replace("default", "full"));
    let mut large = ask(&server, &me, "GET", &target, &Value::Null).await.1;
    large["spec"]["renewTime"] = "2026-02-02T10:16:00.000000Z".into();
    assert_eq!(ask(&server, &me, "PUT", &target, &large).await.0, 200, "a renewal of the same size needs no room");
    let copies = json!([{"op": "add", "path": "/metadata/annotations/more", "value": "x".repeat(1000)}]);
    let patch = Request::builder().method("PATCH").uri(&target).header("content-type", "application/json-patch+json");
    let patch = patch.extension(me.clone()).body(Body::from(copies.to_string())).unwrap();
    assert_eq!(
        server.clone().oneshot(patch).await.unwrap().status(),
        403,
        "a small patch that makes a Lease larger does"
    );
}
