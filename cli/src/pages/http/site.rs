//! The frame of all answers: the token, the headers, and the files of the pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::token::Token;

const STYLE: &str = include_str!("../../../templates/page.css");
const SCRIPT: &str = include_str!("../../../templates/page.js");

/// The content security policy: a page consists of three files of this server, and may only request itself again.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers that forbid foreign content and embedding in other pages; and caching, unless the answer allows it.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// Joins the routes that require the token, if there is one, and those that do not. Adds the files of the pages.
pub(crate) fn site(guarded: Router, open: Router, token: Option<Token>) -> Router {
    let guarded = guarded
        .route("/page.css", get(|| async { ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route("/page.js", get(|| async { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT) }))
        .route_layer(from_fn_with_state(Arc::new(token), only_with_token));
    framed(guarded.merge(open))
}

/// Adds the headers that all answers have.
pub(crate) fn framed(routes: Router) -> Router {
    routes.layer(from_fn(with_headers))
}

async fn only_with_token(State(token): State<Arc<Option<Token>>>, request: Request, next: Next) -> Response {
    match &*token {
        Some(token) if !token.is_shown_by(request.headers()) => {
            let challenge = [(WWW_AUTHENTICATE, r#"Basic realm="leaderelect", Bearer realm="leaderelect""#)];
            (StatusCode::UNAUTHORIZED, challenge, "show the token of --token-file\n").into_response()
        }
        _ => next.run(request).await,
    }
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
