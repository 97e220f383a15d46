//! The frame of all answers: the token, the headers, the files of the pages, and what pages of other sites may not ask for.
//!
//! A page of any site can have a browser send a request to an address of this machine, also with the password that somebody has
//! typed there. It cannot read the answer, but a write needs none. A browser says what it asks for, and no other client does so.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
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

/// Adds the headers that all answers have, and refuses what pages of other sites ask for.
pub(crate) fn framed(routes: Router) -> Router {
    routes.layer(from_fn(only_from_own_pages)).layer(from_fn(with_headers))
}

async fn only_from_own_pages(request: Request, next: Next) -> Response {
    if is_of_another_site(request.method(), request.headers()) {
        (StatusCode::FORBIDDEN, "requests from web pages of other sites are refused\n").into_response()
    } else {
        next.run(request).await
    }
}

/// Returns `true` if a browser says that a page of another site asks.
fn is_of_another_site(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| headers.get(name).is_some_and(|said| said.as_bytes() == word.as_bytes());
    let is_other = says("sec-fetch-site", "cross-site") || says("sec-fetch-site", "same-site");
    if matches!(*method, Method::GET | Method::HEAD) {
        // People follow links.
        is_other && !says("sec-fetch-mode", "navigate")
    } else {
        // Without TLS, a browser names the site only. Some clients of Kubernetes do so too when they read.
        is_other || headers.contains_key(ORIGIN) && !says("sec-fetch-site", "same-origin")
    }
}

async fn only_with_token(State(token): State<Arc<Option<Token>>>, request: Request, next: Next) -> Response {
    match &*token {
        Some(token) if !token.is_shown_by(request.headers()) => {
            let challenge = [(WWW_AUTHENTICATE, r#"Basic realm="leaderelect", Bearer realm="leaderelect""#)];
            (StatusCode::UNAUTHORIZED, challenge, "expected a token of --token-file\n").into_response()
        }
        Some(token) => {
            let headers = request.headers().clone();
            token.keep_watch(next.run(request).await, move |token| token.scope_of(&headers))
        }
        None => next.run(request).await,
    }
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_change_nothing_and_links_are_followed() {
        let (origin, site, mode) = ("origin", "sec-fetch-site", "sec-fetch-mode");
        for (method, said, is_refused) in [
            ("POST", &[][..], false),
            ("POST", &[(origin, "http://evil.example")], true),
            ("PUT", &[(origin, "null")], true),
            ("DELETE", &[(site, "cross-site")], true),
            ("PATCH", &[(site, "same-site")], true),
            ("POST", &[(site, "cross-site"), (mode, "navigate")], true),
            ("POST", &[(origin, "http://127.0.0.1:4040"), (site, "same-origin")], false),
            ("GET", &[(origin, "http://127.0.0.1:4040")], false),
            ("GET", &[(site, "same-origin")], false),
            ("GET", &[(site, "none")], false),
            ("GET", &[(site, "cross-site"), (mode, "no-cors")], true),
            ("GET", &[(site, "cross-site"), (mode, "navigate")], false),
        ] {
            let headers =
                said.iter().map(|(name, word)| (HeaderName::from_static(name), HeaderValue::from_static(word)));
            let method = method.parse().unwrap();
            assert_eq!(is_of_another_site(&method, &headers.collect()), is_refused, "{method} {said:?}");
        }
    }
}
