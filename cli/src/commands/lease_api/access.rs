//! Who asks: somebody with a token of the file, or a service account.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use leaderelection_lease_api::{Caller, Role};
use serde_json::json;

use super::accounts::Accounts;
use crate::pages::http::{Scope, Token, shown_in};

/// Those who may ask, if not everybody may.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) token: Option<Token>,
    pub(super) accounts: Option<Arc<Accounts>>,
}

/// Lets a request pass with what its token is for. Probes need none.
pub(super) async fn only_with_token(
    State(Access { token, accounts }): State<Access>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(token) = token.filter(|_| !["/livez", "/readyz", "/healthz"].contains(&request.uri().path())) else {
        return next.run(request).await;
    };
    let headers = request.headers().clone();
    let account = match accounts.filter(|_| token.scope_of(&headers).is_none()) {
        // A request that waits for its answer, as a thousand watches may, keeps no room for a review of its token.
        Some(accounts) => match Box::pin(accounts.name_of(shown_in(&headers))).await {
            Ok(name) => name,
            Err(problem) => return unavailable(&problem),
        },
        None => None,
    };
    let name = account.clone().or_else(|| token.name_of(&headers));
    let scope = move |token: &Token| match &account {
        Some(name) => Some(token.scope_of_account(name).unwrap_or_default()),
        None => token.scope_of(&headers),
    };
    match (scope(&token), name) {
        (Some(found), Some(name)) if found.everywhere.is_some() || request.uri().path() != "/metrics" => {
            request.extensions_mut().insert(caller(name, found));
            token.keep_watch(next.run(request).await, scope)
        }
        _ => refused(),
    }
}

fn caller(name: String, scope: Scope) -> Caller {
    let role = |writes: bool| if writes { Role::Write } else { Role::Read };
    Caller {
        name,
        everywhere: scope.everywhere.map(role),
        namespaces: scope.namespaces.into_iter().map(|(name, writes)| (name, role(writes))).collect(),
    }
}

/// The connection of a stranger is closed, so that it takes no room from others.
fn refused() -> Response {
    let status =
        status(StatusCode::UNAUTHORIZED, "Unauthorized", "expected a token of --token-file, or of a service account");
    ([(WWW_AUTHENTICATE, r#"Bearer realm="leaderelect""#), (CONNECTION, "close")], status).into_response()
}

fn unavailable(problem: &str) -> Response {
    let status = status(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        &format!("cannot find the owner of the token: {problem}"),
    );
    ([(RETRY_AFTER, "1")], status).into_response()
}

fn status(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "message": message,
        "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}
