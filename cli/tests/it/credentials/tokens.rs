//! Tokens of Google, Azure and Kubernetes: replaced where they come from, and waited for while their source is down.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::json;
use tempfile::tempdir;

use super::world::{Source, World};
use super::{HOUR, at_once, end, leader, marked, put, wait_for_command};
use crate::support::{LONG, Running, leaderelect, run};

type Environment = Vec<(&'static str, String)>;

/// A process that reads with a token of this environment.
fn watch(lock: &str, environment: &Environment) -> Running {
    let mut command = leaderelect(["watch", "--interval", "200ms", lock]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Running::of(command)
}

/// Checks that what `give` puts in the place of a token is used, once the service refuses the one before.
fn is_replaced(lock: &str, environment: &Environment, world: &World, give: impl Fn(&'static str)) {
    give("old");
    let watch = watch(lock, environment);
    world.wait_until("old", |seen| seen.by.contains_key("old"));
    give("new");
    world.accept_only("new", (401, ""));
    world.wait_until("new", |seen| seen.by.get("new").is_some_and(|&requests| requests >= 3));
    drop(watch);
}

/// Checks that a candidate goes on until there is a token. `is_missed` waits until it has asked for one.
fn is_waited_for(
    lock: &str,
    environment: &Environment,
    world: &World,
    is_missed: impl FnOnce(),
    give: impl Fn(&'static str),
) {
    let options = [&LONG[..], &["--wait-timeout", "1h"]].concat();
    let mut command = leaderelect(run(lock, &options, &["true"]));
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let candidate = Running::of(command);
    is_missed();
    give("new");
    world.wait_until("new", |seen| seen.by.contains_key("new"));
    drop(candidate);
}

#[test]
fn google_has_files_of_several_forms() {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap().serialize_pem();
    at_once(&[0, 1, 2, 3], |&number: &usize| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Gives("", HOUR)));
        let (url, file) = (world.url(), home.path().join("account"));
        let login = home.path().join(".config/gcloud");
        fs::create_dir_all(&login).unwrap();
        let give = |token: &'static str| match number {
            0 => {
                let account = json!({
                    "type": "external_account", "audience": "//iam.googleapis.com/p", "token_url": format!("{url}/token"),
                    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                    "credential_source": {"file": home.path().join("token")},
                });
                put(home.path(), "token", token);
                put(home.path(), "account", &account.to_string());
            }
            // The key signs the tokens itself.
            1 => {
                let account = json!({
                    "type": "service_account", "client_email": token, "private_key_id": "1", "private_key": key,
                    "project_id": "p",
                });
                put(home.path(), "account", &account.to_string());
            }
            number => {
                let user = json!({
                    "type": "authorized_user", "client_id": "id", "client_secret": "hidden", "refresh_token": token,
                    "token_uri": format!("{url}/token"),
                });
                let (directory, name) = if number == 2 {
                    (home.path(), "account")
                } else {
                    (&*login, "application_default_credentials.json")
                };
                put(directory, name, &user.to_string());
            }
        };
        let mut environment = vec![("HOME", home.path().display().to_string())];
        if number != 3 {
            environment.push(("GOOGLE_APPLICATION_CREDENTIALS", file.display().to_string()));
        }
        is_replaced(&format!("gs://bucket/lock?endpoint={url}"), &environment, &world, give);
    });
}

#[test]
fn google_is_asked_again_by_a_program_that_was_started_too_early() {
    at_once(&[Source::Fails, Source::IsSilent, Source::Closes], |&source| {
        let (home, world) = (tempdir().unwrap(), World::new(&["new"], source));
        let url = world.url();
        let user = json!({
            "type": "authorized_user", "client_id": "id", "client_secret": "hidden", "refresh_token": "new",
            "token_uri": format!("{url}/token"),
        });
        put(home.path(), "account", &user.to_string());
        let environment = vec![("GOOGLE_APPLICATION_CREDENTIALS", home.path().join("account").display().to_string())];
        let asked = || assert_eq!(world.wait_until("new", |seen| seen.asked >= 1), 0);
        is_waited_for(&format!("gs://bucket/lock?endpoint={url}"), &environment, &world, asked, |token| {
            world.set_source(Source::Gives(token, HOUR));
        });
    });
}

/// The environment of a machine of Google's.
fn machine(home: &Path, world: &World) -> Environment {
    let host = world.url().strip_prefix("http://").unwrap().to_owned();
    vec![("GCE_METADATA_HOST", host), ("HOME", home.display().to_string()), ("NO_PROXY", "*".to_owned())]
}

#[test]
fn google_asks_the_metadata_server_again_after_a_refusal() {
    let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Fails));
    let lock = format!("gs://bucket/lock?endpoint={}", world.url());
    is_replaced(&lock, &machine(home.path(), &world), &world, |token| world.set_source(Source::Gives(token, HOUR)));
}

#[test]
fn google_waits_for_the_metadata_server() {
    at_once(&[Source::Fails, Source::IsSilent, Source::Closes], |&source| {
        let (home, world) = (tempdir().unwrap(), World::new(&["new"], source));
        let lock = format!("gs://bucket/lock?endpoint={}", world.url());
        let asked = || assert_eq!(world.wait_until("new", |seen| seen.asked >= 1), 0);
        is_waited_for(&lock, &machine(home.path(), &world), &world, asked, |token| {
            world.set_source(Source::Gives(token, HOUR));
        });
    });
}

/// The client asks four minutes before the end, and then every ten seconds.
#[cfg(feature = "all-tests")]
#[test]
fn google_goes_on_with_a_token_whose_source_fails_before_its_end() {
    at_once(&[Source::Fails, Source::IsSilent, Source::Closes], |&source| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old", "new"], Source::Fails));
        world.set_source(Source::Gives("old", Duration::from_secs(243)));
        let watch = watch(&format!("gs://bucket/lock?endpoint={}", world.url()), &machine(home.path(), &world));
        world.wait_until("old", |seen| seen.by.contains_key("old"));
        let first = world.asked();
        world.set_source(source);
        world.wait_until("old", |seen| seen.asked > first);
        let before = world.wait_until("old", |_| true);
        world.wait_until("old", |seen| seen.by["old"] >= before + 5);
        world.set_source(Source::Gives("new", HOUR));
        world.wait_until("new", |seen| seen.by.contains_key("new"));
        drop(watch);
    });
}

/// A source of tokens of Entra ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entra {
    WorkloadIdentity,
    ServicePrincipal,
    ManagedIdentity,
    CommandLine,
}

impl Entra {
    const ALL: [Self; 4] = [Self::WorkloadIdentity, Self::ServicePrincipal, Self::ManagedIdentity, Self::CommandLine];

    /// The environment of a process with this source. `authority` is the service of tokens, which has to speak TLS.
    fn environment(self, home: &Path, authority: &str, world: &World) -> Environment {
        let principal = vec![
            ("AZURE_AUTHORITY_HOST", authority.to_owned()),
            ("AZURE_TENANT_ID", "tenant".to_owned()),
            ("AZURE_CLIENT_ID", "id".to_owned()),
        ];
        match self {
            Self::WorkloadIdentity => {
                let file = ("AZURE_FEDERATED_TOKEN_FILE", home.join("token").display().to_string());
                [principal, vec![file]].concat()
            }
            Self::ServicePrincipal => [principal, vec![("AZURE_CLIENT_SECRET", "hidden".to_owned())]].concat(),
            Self::ManagedIdentity => {
                vec![("IDENTITY_ENDPOINT", format!("{}/msi", world.url())), ("IDENTITY_HEADER", "hidden".to_owned())]
            }
            Self::CommandLine => {
                let program = home.join("az");
                fs::write(&program, format!("#!/bin/sh\n{}\n", marked(&home.join("login")))).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
                let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
                vec![("AZURE_STORAGE_ACCOUNT", "account".to_owned()), ("PATH", path)]
            }
        }
    }

    fn give(self, home: &Path, world: &World, token: &'static str) {
        world.set_source(Source::Gives(token, HOUR));
        match self {
            Self::WorkloadIdentity => put(home, "token", token),
            Self::CommandLine => put(home, "login", &super::world::az(token, std::time::SystemTime::now() + HOUR)),
            Self::ServicePrincipal | Self::ManagedIdentity => {}
        }
    }
}

/// The store and the service of tokens have one certificate, which the URL names.
#[test]
fn azure_gets_another_token_when_one_is_refused() {
    at_once(&Entra::ALL, |&entra| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Fails));
        let front = world.tls(home.path());
        let lock = format!("{}/account/container/lock?ca={}", front.url(), front.certificate().display());
        let environment = entra.environment(home.path(), &front.url(), &world);
        is_replaced(&lock, &environment, &world, |token| entra.give(home.path(), &world, token));
    });
}

/// A renewal is refused, and the next one has another token.
#[test]
fn a_term_on_azure_goes_on_when_a_token_is_refused() {
    at_once(&Entra::ALL, |&entra| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Fails));
        let front = world.tls(home.path());
        let lock = format!("{}/account/container/lock?ca={}", front.url(), front.certificate().display());
        let environment = entra.environment(home.path(), &front.url(), &world);
        entra.give(home.path(), &world, "old");
        let mut leader = leader(&home, &lock, &environment);
        leader.wait_for("leads");
        entra.give(home.path(), &world, "new");
        world.accept_only("new", (401, ""));
        world.wait_until("new", |seen| seen.by.get("new").is_some_and(|&requests| requests >= 3));
        end(leader);
    });
}

#[test]
fn azure_waits_for_a_source_of_tokens() {
    let cases = [
        (Entra::WorkloadIdentity, Source::Fails),
        (Entra::ServicePrincipal, Source::Fails),
        (Entra::ServicePrincipal, Source::IsSilent),
        (Entra::ServicePrincipal, Source::Closes),
        (Entra::ManagedIdentity, Source::Fails),
        (Entra::ManagedIdentity, Source::IsSilent),
        (Entra::CommandLine, Source::Fails),
    ];
    at_once(&cases, |&(entra, source)| {
        let (home, world) = (tempdir().unwrap(), World::new(&["new"], source));
        let front = world.tls(home.path());
        let lock = format!("{}/account/container/lock?ca={}", front.url(), front.certificate().display());
        put(home.path(), "token", "new");
        let environment = entra.environment(home.path(), &front.url(), &world);
        let is_missed = || match entra {
            Entra::CommandLine => wait_for_command(&home.path().join("login")),
            _ => assert_eq!(world.wait_until("new", |seen| seen.asked >= 1), 0),
        };
        is_waited_for(&lock, &environment, &world, is_missed, |token| entra.give(home.path(), &world, token));
    });
}

/// A kubeconfig for this user.
pub(super) fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {cluster}}}]\nusers: [{{name: a, user: {user}}}]\n"
    )
}

/// A user whose command prints a file.
pub(super) fn by_command(file: &Path) -> String {
    let command = marked(file);
    format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: [-c, '{command}']}}}}"
    )
}

fn credential(token: &str) -> String {
    let status = json!({"token": token});
    json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}).to_string()
}

#[test]
fn kubernetes_reads_the_kubeconfig_its_file_and_its_command_anew() {
    at_once(&[0, 1, 2], |&number: &usize| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Fails));
        let give = |token: &'static str| {
            let user = match number {
                0 => format!("{{token: {token}}}"),
                1 => format!("{{tokenFile: {}}}", home.path().join("token").display()),
                _ => by_command(&home.path().join("credential")),
            };
            put(home.path(), "config", &kubeconfig(&format!("{{server: '{}'}}", world.url()), &user));
            put(home.path(), "token", token);
            put(home.path(), "credential", &credential(token));
        };
        let missing = home.path().join("missing").display().to_string();
        let list = format!("{missing}:{}", home.path().join("config").display());
        is_replaced("lease://default/a", &vec![("KUBECONFIG", list)], &world, give);
    });
}

/// kube reads it once a minute.
#[cfg(feature = "all-tests")]
#[test]
fn kubernetes_reads_the_file_of_a_token_again_before_it_is_refused() {
    let (home, world) = (tempdir().unwrap(), World::new(&["old", "new"], Source::Fails));
    let user = format!("{{tokenFile: {}}}", home.path().join("token").display());
    put(home.path(), "config", &kubeconfig(&format!("{{server: '{}'}}", world.url()), &user));
    put(home.path(), "token", "old");
    let watch = watch("lease://default/a", &vec![("KUBECONFIG", home.path().join("config").display().to_string())]);
    let first = world.wait_until("old", |seen| seen.by.contains_key("old"));
    put(home.path(), "token", "new");
    // Within twice the patience of this one.
    world.wait_until("old", |seen| seen.by["old"] >= first + 150);
    world.wait_until("new", |seen| seen.by.contains_key("new"));
    drop(watch);
}

#[test]
fn kubernetes_waits_for_a_command_that_fails() {
    let (home, world) = (tempdir().unwrap(), World::new(&["new"], Source::Fails));
    let user = by_command(&home.path().join("credential"));
    put(home.path(), "config", &kubeconfig(&format!("{{server: '{}'}}", world.url()), &user));
    let environment = vec![("KUBECONFIG", home.path().join("config").display().to_string())];
    let is_missed = || wait_for_command(&home.path().join("credential"));
    is_waited_for("lease://default/a", &environment, &world, is_missed, |token| {
        put(home.path(), "credential", &credential(token));
    });
}

/// A kubeconfig may name another cluster by now. The lock would be another one there, and a token must not go there either.
#[test]
fn kubernetes_stays_at_its_cluster() {
    let (home, world, other) =
        (tempdir().unwrap(), World::new(&["old"], Source::Fails), World::new(&["new"], Source::Fails));
    let config = |world: &World, token: &str| {
        put(
            home.path(),
            "config",
            &kubeconfig(&format!("{{server: '{}'}}", world.url()), &format!("{{token: {token}}}")),
        );
    };
    config(&world, "old");
    let environment = vec![("KUBECONFIG", home.path().join("config").display().to_string())];
    let mut watch = watch("lease://default/a", &environment);
    world.wait_until("old", |seen| seen.by.get("old").is_some_and(|&requests| requests >= 3));
    config(&other, "new");
    world.accept_only("new", (401, ""));
    watch.wait_for_line("the credentials are loaded anew");
    watch.wait_for_line("the credentials are wrong or have expired");
    assert_eq!(world.wait_until("new", |_| true), 0);
    assert_eq!(other.wait_until("new", |_| true), 0);
}
