//! The command that a kubeconfig names for its user, and that prints a token or a certificate.
//!
//! kube runs it as well, but waits for it without a limit, in the way of whoever makes a client, and leaves it behind.

use std::io::{self, ErrorKind, IsTerminal as _};
use std::process::Stdio;
use std::time::Duration;

use chrono::DateTime;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use leaderelection::StoreErrorKind;
use leaderelection_store_support::request::kept::{Broken, left_until};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

/// The command, for people.
pub(crate) const NAME: &str = "the command that the kubeconfig names for the user";

/// The longest time of a run, which is shorter than that of a load.
const LIMIT: Duration = Duration::from_secs(55);

/// The reason for which a user has no token.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Problem {
    pub(crate) kind: StoreErrorKind,
    words: String,
}

impl Problem {
    /// It may be over at the next request.
    pub(crate) fn now(words: impl Into<String>) -> Self {
        Self { kind: StoreErrorKind::Rejected, words: words.into() }
    }

    /// Only a person ends it.
    fn of_setting(words: impl Into<String>) -> Self {
        Self { kind: StoreErrorKind::Fatal, words: words.into() }
    }
}

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        Self::now(String::from(broken))
    }
}

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// The output of a command.
pub(crate) struct Credential {
    pub(crate) token: Option<String>,
    pub(crate) certificate: Option<Certificate>,
    /// The rest of its life, if it has an end.
    pub(crate) life: Option<Duration>,
}

#[derive(Deserialize)]
struct Printed {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

/// The command of this user, if nothing else comes before it.
pub(crate) fn of(user: &AuthInfo) -> Option<&ExecConfig> {
    let is_first = user.auth_provider.is_none()
        && (user.username.is_none() || user.password.is_none())
        && user.token.is_none()
        && user.token_file.is_none();
    user.exec.as_ref().filter(|_| is_first)
}

/// Runs the command. It is killed when nobody waits for it any more. What it prints, and its environment, may be secrets.
pub(crate) async fn run(exec: &ExecConfig) -> Result<Credential, Problem> {
    let program = exec.command.as_deref().unwrap_or_default();
    let output = match timeout(LIMIT, command(exec, program)?.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let words = format!("{NAME}, {program:?}, cannot be started: {error}");
            // Without memory or a process for a while, the same command may start later.
            let is_setting = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
            return Err(if is_setting { Problem::of_setting(words) } else { Problem::now(words) });
        }
        Err(_) => {
            return Err(Problem::now(format!(
                "{NAME}, {program:?}, was silent for {LIMIT:?}, and is killed; run it by hand"
            )));
        }
    };
    if !output.status.success() {
        return Err(Problem::now(format!("{NAME}, {program:?}, has failed ({}); run it by hand", output.status)));
    }
    credential(&output.stdout)
        .ok_or_else(|| Problem::now(format!("{NAME}, {program:?}, prints no ExecCredential; run it by hand")))
}

fn command(exec: &ExecConfig, program: &str) -> Result<Command, Problem> {
    if program.is_empty() {
        return Err(Problem::of_setting("the kubeconfig has exec without a command for the user"));
    }
    let mut command = Command::new(program);
    command.args(exec.args.iter().flatten()).kill_on_drop(true).stdout(Stdio::piped());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    for name in exec.drop_env.iter().flatten() {
        command.env_remove(name);
    }
    // Standard input may be for the program that leads, unless a person sits there.
    let is_interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never) && io::stdin().is_terminal();
    let stream = || if is_interactive { Stdio::inherit() } else { Stdio::null() };
    command.stdin(stream()).stderr(stream());
    let cluster = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info);
    if exec.provide_cluster_info && cluster.is_none() {
        return Err(Problem::of_setting("the kubeconfig has provideClusterInfo without a cluster"));
    }
    let mut information = json!({
        "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": {"interactive": is_interactive},
    });
    if let Some(cluster) = cluster {
        information["spec"]["cluster"] = json!(cluster);
    }
    command.env("KUBERNETES_EXEC_INFO", information.to_string());
    Ok(command)
}

fn credential(printed: &[u8]) -> Option<Credential> {
    // client-go takes YAML, too.
    let Status { token, client_certificate_data, client_key_data, expiration_timestamp } =
        serde_saphyr::from_slice::<Printed>(printed).ok()?.status?;
    let certificate = client_certificate_data.zip(client_key_data).map(|(chain, key)| Certificate { chain, key });
    let life = match expiration_timestamp {
        None => None,
        Some(end) => Some(left_until(DateTime::parse_from_rfc3339(&end).ok()?.into())),
    };
    (token.is_some() || certificate.is_some()).then_some(Credential { token, certificate, life })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_json_or_yaml_with_a_token_or_a_pair() {
        let has = |text: &str| {
            credential(text.as_bytes()).map(|found| (found.token, found.certificate.is_some(), found.life.is_some()))
        };
        let token = Some("a".to_owned());
        assert_eq!(has(r#"{"kind": "ExecCredential", "status": {"token": "a"}}"#), Some((token.clone(), false, false)));
        assert_eq!(
            has("kind: ExecCredential\nstatus:\n  token: a\n  expirationTimestamp: \"2099-01-01T00:00:00Z\"\n"),
            Some((token, false, true))
        );
        let pair = r#"{"status": {"clientCertificateData": "b", "clientKeyData": "c"}}"#;
        assert_eq!(has(pair), Some((None, true, false)));
        for nothing in
            ["", "{}", "{\"status\": {}}", "{\"status\": {\"clientKeyData\": \"c\"}}", "not: [valid", "Log in!"]
        {
            assert!(has(nothing).is_none(), "{nothing}");
        }
        assert!(has(r#"{"status": {"token": "a", "expirationTimestamp": "tomorrow"}}"#).is_none());
    }
}
