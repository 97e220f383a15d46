//! client-go's protobuf, in the bytes that it sends.

use serde_json::json;

use crate::api::{Api, LEASES, WEB, lease};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A Lease as the serializer of k8s.io/apimachinery 0.37.2 writes it.
const OF_CLIENT_GO: &str = include_str!("client-go-lease.hex");

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(char::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

#[tokio::test]
async fn a_lease_in_protobuf_is_answered_in_json() {
    let api = Api::new();
    let sent: String = OF_CLIENT_GO.split_whitespace().collect();
    api.send("POST", LEASES, PROTOBUF, bytes(&sent)).await.is(422);
    // Without its finalizer, a field of 18 bytes.
    let sent = sent.replace("72106578616d706c652e636f6d2f646f6e65", "").replace("129301", "128101");
    let sent = sent.replace("0a6d0a09", "0a5b0a09");
    let created = api.send("POST", LEASES, PROTOBUF, bytes(&sent)).await.is(201);
    assert_eq!(created["metadata"]["name"], "scheduler");
    assert_eq!(created["metadata"]["annotations"], json!({"note": "keep", "leaderelection/token": "3"}));
    assert_eq!(created["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(
        created["metadata"]["ownerReferences"][0],
        json!({"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "u-2", "controller": true})
    );
    assert_eq!(
        created["spec"],
        json!({
            "holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-02-02T10:15:30.123456Z", "renewTime": "2026-02-02T10:15:32.000000Z",
        })
    );
    for body in [&b""[..], b"{}", b"k8s\0\xff", b"k8s\0\x12\x05ab"] {
        assert_eq!(api.send("POST", LEASES, PROTOBUF, body).await.is(400)["reason"], "BadRequest");
    }
    api.send("POST", LEASES, "application/cbor", "{}").await.is(415);
}

#[tokio::test]
async fn a_deletion_in_protobuf_has_its_conditions() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let field =
        |number: u8, content: &[u8]| [&[(number << 3) | 2, u8::try_from(content.len()).unwrap()][..], content].concat();
    let options = |options: Vec<u8>| {
        let kind = field(1, &[field(1, b"v1"), field(2, b"DeleteOptions")].concat());
        [b"k8s\0".to_vec(), kind, field(2, &options)].concat()
    };
    let uid = held["metadata"]["uid"].as_str().unwrap().as_bytes();
    let version = held["metadata"]["resourceVersion"].as_str().unwrap().as_bytes();
    for (wanted, status) in [
        (field(2, &field(1, b"another")), 409),
        (field(2, &field(2, b"another")), 409),
        (field(5, b"All"), 200),
        (field(2, &[field(1, uid), field(2, version)].concat()), 200),
        (Vec::new(), 404),
    ] {
        api.send("DELETE", WEB, PROTOBUF, options(wanted)).await.is(status);
    }
}
