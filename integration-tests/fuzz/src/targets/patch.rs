//! Patches of a Lease, whose cost must be bounded by their size: a line with the kind, and the body.
//!
//! A body of the kind `steps` is a short form of a JSON patch, in which each byte is a step. Bytes that are changed at random are
//! hardly ever operations that fit each other, and such steps often are.

use allocation_counter::measure;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use leaderelection::MemoryStore;
use leaderelection_lease_api::LeaseApi;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::runtime::wait;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// The bytes of all allocations for one request together: in any case, and for each byte of its body. They are what is parsed,
/// copied and written.
const WORK: u64 = 4 << 20;
const WORK_PER_BYTE: u64 = 500;

/// The longest pointer in steps, and the largest body of them.
const LONGEST: usize = 16 * 1024;
const LARGEST: usize = 60 * 1024;

pub(super) fn patch(input: &[u8]) {
    let (kind, body) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let (content, body) = match kind {
        b"merge" => ("application/merge-patch+json", body.to_vec()),
        b"strategic" => ("application/strategic-merge-patch+json", body.to_vec()),
        b"apply" => ("application/apply-patch+yaml", body.to_vec()),
        b"steps" => ("application/json-patch+json", operations(body)),
        _ => ("application/json-patch+json", body.to_vec()),
    };
    let api = LeaseApi::new(MemoryStore::new(), "");
    let lease = json!({"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"holderIdentity": "pod-1"}});
    wait(ask(&api, "POST", LEASES, "application/json", lease.to_string().into_bytes()));
    let (target, size) = (format!("{LEASES}/web?fieldManager=fuzz"), body.len() as u64);
    let mut status = 0;
    let work = measure(|| status = wait(ask(&api, "PATCH", &target, content, body)).0).bytes_total;
    assert!(work <= WORK + WORK_PER_BYTE * size, "a patch of {size} bytes takes {work} bytes of work");
    assert!(status < 500, "{status}");
    // What was answered is there at the next read, also for a server that has not seen it.
    let (status, found) = wait(ask(&api, "GET", &target, "", Vec::new()));
    assert!(status == 200 && found["metadata"]["name"] == "web", "{found}");
}

async fn ask(api: &LeaseApi, method: &str, target: &str, content: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::builder().method(method).uri(target).header("content-type", content);
    let answer = api.routes().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

/// Reads steps: a pointer grows, doubles or ends, or an operation is at it.
fn operations(steps: &[u8]) -> Vec<u8> {
    let (mut from, mut place) = (String::new(), String::new());
    let mut operations = String::from("[");
    for step in steps {
        match step % 8 {
            0 => place.push_str("/metadata"),
            1 => place.push_str("/labels"),
            2 => place.push_str("/spec"),
            3 => place.push_str("/a"),
            4 => place.clear(),
            5 => place.push_str(&place.clone()),
            6 => from.clone_from(&place),
            _ => {
                let operation = match step / 8 % 5 {
                    0 => json!({"op": "copy", "from": from, "path": place}),
                    1 => json!({"op": "add", "path": place, "value": {"a": {}}}),
                    2 => json!({"op": "move", "from": from, "path": place}),
                    3 => json!({"op": "replace", "path": place, "value": "x"}),
                    _ => json!({"op": "remove", "path": place}),
                };
                let operation = operation.to_string();
                if operations.len() + operation.len() > LARGEST {
                    break;
                }
                operations.push_str(if operations.len() > 1 { "," } else { "" });
                operations.push_str(&operation);
            }
        }
        place.truncate(LONGEST);
    }
    operations.push(']');
    operations.into_bytes()
}
