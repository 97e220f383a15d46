//! The answers of a leader to its followers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream::unfold;
use leaderelection::peers::LeaderTerm;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch::Receiver;

use crate::served::Served;
use crate::wire::{CHALLENGE, CODE, EVENT_STREAM, Message, Place, question};

/// The longest number that an asker may draw.
const LONGEST_NONCE: usize = 64;

/// The query of a request.
#[derive(Debug, Deserialize)]
struct Question {
    lock: Option<String>,
    #[serde(default)]
    nonce: String,
}

/// The routes of a server at `path`.
pub(crate) fn routes(path: &str, served: Arc<Served>) -> Router {
    Router::new().route(path, get(answer)).with_state(served)
}

async fn answer(State(served): State<Arc<Served>>, Query(asked): Query<Question>, headers: HeaderMap) -> Response {
    if !knows_key(&served, &asked, &headers) {
        let advice = "only candidates who know the key are answered; give this one the key of the others\n";
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, CHALLENGE), (CONNECTION, "close")], advice)
            .into_response();
    }
    if asked.nonce.len() > LONGEST_NONCE || !asked.nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return (StatusCode::BAD_REQUEST, "nonce must be up to 64 letters and digits\n").into_response();
    }
    let Some((lock, led)) = served.find(asked.lock.as_deref()) else {
        let advice = "no lock of this name is served here; name one with ?lock=KEY\n";
        return (StatusCode::NOT_FOUND, advice).into_response();
    };
    let nonce = asked.nonce;
    let mut tale = Tale { served, lock, led, nonce, counter: 0, term: None, is_over: false, place: None };
    let wants_stream = headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.split([',', ';']).any(|part| part.trim() == EVENT_STREAM)));
    let Some(first) = tale.begin() else { return not_leading() };
    if !wants_stream {
        let Ok(mut body) = serde_json::to_vec(&first) else { return not_leading() };
        body.push(b'\n');
        return ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response();
    }
    let Some(place) = tale.served.stream() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "as many streams are open as this server takes\n").into_response();
    };
    tale.place = Some(place);
    let events = unfold((Some(first), tale), |(first, mut tale)| async move {
        let message = match first {
            Some(first) => first,
            None => tale.next().await?,
        };
        Some((Ok::<_, Infallible>(event(&message)?), (None, tale)))
    });
    ([(CONTENT_TYPE, EVENT_STREAM), (CACHE_CONTROL, "no-store")], Body::from_stream(events)).into_response()
}

/// Returns `true` if the asker shows the code of the shared key, or if there is no such key. The asker has then shown a
/// certificate.
fn knows_key(served: &Served, asked: &Question, headers: &HeaderMap) -> bool {
    let Some(key) = &served.key else { return true };
    let shown = headers.get(CODE).and_then(|code| code.to_str().ok());
    shown.is_some_and(|code| key.accepts(code, question(asked.lock.as_deref().unwrap_or_default(), &asked.nonce)))
}

fn not_leading() -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (StatusCode::CONFLICT, headers, "{\"leading\": false}\n").into_response()
}

fn event(message: &Message) -> Option<Bytes> {
    let name = if message.leading { "renewal" } else { "end" };
    let json = serde_json::to_string(message).ok()?;
    Some(format!("event: {name}\ndata: {json}\n\n").into())
}

/// The answer to one asker about one term. It is given only when the connection takes it, so a slow reader misses renewals, and
/// delays nothing.
struct Tale {
    served: Arc<Served>,
    lock: String,
    led: Receiver<Option<LeaderTerm>>,
    nonce: String,
    counter: u64,
    term: Option<u64>,
    is_over: bool,
    place: Option<OwnedSemaphorePermit>,
}

impl Tale {
    /// The first message; `None` if the elector does not lead at this moment.
    fn begin(&mut self) -> Option<Message> {
        let term = self.led.borrow_and_update().clone()?;
        self.term = Some(term.leadership.fencing_token().into());
        if term.leadership.is_valid() { self.message(&term) } else { None }
    }

    /// The next renewal, or the release of the lease; `None` if there is nothing more to tell.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if self.is_over || self.led.changed().await.is_err() {
                return None;
            }
            let term = self.led.borrow_and_update().clone()?;
            if self.term != Some(term.leadership.fencing_token().into()) {
                return None;
            }
            self.is_over = term.released.is_some();
            // A leader whose window is over waits for the end of its work, and then tells of the release.
            if self.is_over || term.leadership.is_valid() {
                return self.message(&term);
            }
        }
    }

    fn message(&mut self, term: &LeaderTerm) -> Option<Message> {
        let place = Place { lock: &self.lock, nonce: &self.nonce, counter: self.counter };
        self.counter += 1;
        Message::of(term, &place, self.served.key.as_ref())
    }
}
