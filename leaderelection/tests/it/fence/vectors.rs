//! The vectors for fences in all languages, on every fence of the library.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use leaderelection::MemoryStore;
use leaderelection::fence::{FENCING_TOKEN, Fence, FenceLayer, FencedObject};
use serde::Deserialize;
use tower::{Layer as _, ServiceExt as _, service_fn};

const VECTORS: &str = include_str!("../../../../docs/fencing/vectors.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    sequences: Vec<Sequence>,
    headers: Vec<Header>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    token: u64,
    passes: bool,
    highest: u64,
}

/// One request to a service that has seen the token `before`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    before: u64,
    method: String,
    values: Vec<String>,
    status: u16,
    highest: u64,
}

fn vectors() -> Vectors {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(!vectors.sequences.is_empty() && !vectors.headers.is_empty());
    vectors
}

fn request(method: &str, values: &[String]) -> Request<()> {
    let request = Request::builder().method(method);
    values.iter().fold(request, |request, value| request.header(FENCING_TOKEN, value)).body(()).unwrap()
}

/// The status of the answer, and the token in it.
async fn answer(fence: &FenceLayer, request: Request<()>) -> (StatusCode, Option<u64>) {
    let service = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let answer = fence.layer(service).oneshot(request).await.unwrap();
    let token = answer.headers().get(FENCING_TOKEN).map(|token| token.to_str().unwrap().parse().unwrap());
    (answer.status(), token)
}

#[test]
fn in_memory() {
    for Sequence { name, steps } in vectors().sequences {
        let fence = Fence::new();
        for Step { token, passes, highest } in steps {
            assert_eq!((fence.check(token).is_ok(), fence.highest()), (passes, highest.into()), "{name}: {token}");
        }
    }
}

#[tokio::test]
async fn in_an_object() {
    for Sequence { name, steps } in vectors().sequences {
        let object = FencedObject::<_, u64>::new(MemoryStore::new(), "object");
        let mut last = None;
        for Step { token, passes, highest } in steps {
            let written = object.write(token, &token).await;
            assert_eq!(written.is_ok(), passes, "{name}: {token}");
            let refused = written.err().map(|error| error.stale().unwrap().highest);
            last = if passes { Some(token) } else { last };
            assert_eq!(refused, (!passes).then_some(highest.into()), "{name}: {token}");
            let read = object.read().await.unwrap();
            assert_eq!((read.token, read.value), (Some(highest.into()), last), "{name}: {token}");
        }
    }
}

#[tokio::test]
async fn before_a_service() {
    let Vectors { sequences, headers } = vectors();
    for Sequence { name, steps } in sequences {
        let fence = FenceLayer::new();
        for Step { token, passes, highest } in steps {
            let (status, shown) = answer(&fence, request("PUT", &[token.to_string()])).await;
            let expected = if passes { StatusCode::OK } else { StatusCode::PRECONDITION_FAILED };
            assert_eq!((status, shown), (expected, (!passes).then_some(highest)), "{name}: {token}");
        }
    }
    for Header { name, before, method, values, status, highest } in headers {
        let fence = FenceLayer::starting_at(before);
        let (given, shown) = answer(&fence, request(&method, &values)).await;
        assert_eq!(given.as_u16(), status, "{name}");
        assert_eq!(shown, (status == 412).then_some(before), "{name}");
        // Only a refusal shows what the fence has seen.
        let smaller = request("PUT", &[(highest - 1).to_string()]);
        assert_eq!(answer(&fence, smaller).await, (StatusCode::PRECONDITION_FAILED, Some(highest)), "{name}");
    }
}
