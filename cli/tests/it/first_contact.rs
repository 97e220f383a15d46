//! The first command of somebody who has set up less than is needed.

use axum::http::StatusCode;
use tempfile::tempdir;

use crate::fake_s3::{FakeS3, with_keys};
use crate::support::{end_of, leaderelect};

/// The variables that name credentials, in part or as a whole.
const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
const REGION: (&str, &str) = ("AWS_REGION", "eu-central-1");
const ROLE: (&str, &str) = ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r");

/// A mistake, the lock, the environment, and the words of the error.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

/// The SDK reads the retries of the environment, and panics at what it does not know. A store makes one attempt anyway.
#[test]
fn retries_of_other_programs_end_nobody() {
    let (home, server) = (tempdir().unwrap(), FakeS3::start(|_, _| (StatusCode::NOT_FOUND, NO_OBJECT)));
    let profile = home.path().join("config");
    std::fs::write(&profile, "[default]\nretry_mode = legacy\nmax_attempts = 0\n").unwrap();
    for (name, value) in [
        ("AWS_RETRY_MODE", "legacy"),
        ("AWS_MAX_ATTEMPTS", ""),
        ("AWS_MAX_ATTEMPTS", "0"),
        ("AWS_CONFIG_FILE", profile.to_str().unwrap()),
    ] {
        let mut command = with_keys(leaderelect(["status", &server.url("key")]));
        command.env("HOME", home.path()).env("AWS_EC2_METADATA_DISABLED", "true").env(name, value);
        let ended = end_of(command);
        assert_eq!(ended.code, Some(0), "{name}={value}: {ended:?}");
    }
}

const NO_OBJECT: &str = "<Error><Code>NoSuchKey</Code></Error>";

#[test]
fn what_is_missing_is_named_with_the_variable_the_file_or_the_parameter() {
    let home = tempdir().unwrap();
    let profiles = home.path().join("profiles");
    std::fs::write(&profiles, "[profile other]\nregion = eu-central-1\n").unwrap();
    let profiles = profiles.to_str().unwrap();
    let host = format!("{}.invalid", "x".repeat(64));
    let unknown_host = format!("s3://bucket/key?endpoint=http://{host}");
    let lock = "s3://bucket/key";
    let broken = home.path().join("broken");
    std::fs::write(&broken, "[default]\ncredential_process = sh -c 'echo ask the operator >&2; exit 3'\n").unwrap();
    let broken = broken.to_str().unwrap();
    let nobody = "http://127.0.0.1:1";
    let rows: [Row<'_>; 28] = [
        (
            "no credentials of Google's",
            "gs://bucket/key",
            &[("GCE_METADATA_HOST", "127.0.0.1:1")],
            &["run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"],
        ),
        (
            "a file of Google's credentials that does not exist",
            "gs://bucket/key",
            &[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")],
            &["/nowhere/key.json", "`GOOGLE_APPLICATION_CREDENTIALS`"],
        ),
        (
            "a file that is not one of Google's credentials",
            "gs://bucket/key",
            &[("GOOGLE_APPLICATION_CREDENTIALS", broken)],
            &["cannot create a client; check ", "which GOOGLE_APPLICATION_CREDENTIALS names"],
        ),
        (
            "an empty variable of Google's",
            "gs://bucket/key",
            &[("GOOGLE_APPLICATION_CREDENTIALS", "")],
            &["GOOGLE_APPLICATION_CREDENTIALS is empty: unset it, or name a file"],
        ),
        (
            "a secret of Azure's without a tenant",
            "az://account/container/blob",
            &[("AZURE_CLIENT_SECRET", "secret"), ("AZURE_CLIENT_ID", "id")],
            &["AZURE_CLIENT_SECRET is set, and AZURE_TENANT_ID is not", "set AZURE_CLIENT_ID and AZURE_TENANT_ID"],
        ),
        (
            "half of an identity of Azure's",
            "az://account/container/blob",
            &[("AZURE_FEDERATED_TOKEN_FILE", "/nowhere/token")],
            &["set AZURE_CLIENT_ID and AZURE_TENANT_ID", "AZURE_STORAGE_CONNECTION_STRING"],
        ),
        ("no cluster", "lease://default/a", &[], &["no cluster is known; set KUBECONFIG, or run in a pod"]),
        (
            "a kubeconfig that does not exist",
            "lease://default/a",
            &[("KUBECONFIG", "/nowhere/config")],
            &["no cluster is known; KUBECONFIG is /nowhere/config: correct it"],
        ),
        (
            "no directory",
            "file:///nowhere/a",
            &[],
            &["directory /nowhere not found; check the URL, or start a candidate"],
        ),
        (
            "the key alone",
            lock,
            &[REGION, KEYS[0]],
            &[
                "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; set both, or AWS_PROFILE, or give the machine a role;",
            ],
        ),
        ("no region", lock, &KEYS, &["no region; set AWS_REGION, or add ?region=eu-central-1 to the URL"]),
        (
            "a profile without a region",
            lock,
            &[KEYS[0], KEYS[1], ("AWS_PROFILE", "nobody")],
            &["no region; the profile \"nobody\" of AWS_PROFILE has none: set AWS_REGION"],
        ),
        (
            "no credentials",
            lock,
            &[REGION],
            &[
                "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role",
            ],
        ),
        (
            "an empty region",
            lock,
            &[KEYS[0], KEYS[1], ("AWS_REGION", "")],
            &["no region; AWS_REGION is empty: set AWS_REGION"],
        ),
        (
            "a machine whose metadata service is down",
            lock,
            &[REGION, ("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", nobody)],
            &["cannot load credentials", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "the machine's role"],
        ),
        (
            "a container whose source is down",
            lock,
            &[REGION, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/keys")],
            &["cannot load credentials; the request was not sent; check where they come from"],
        ),
        (
            "a helper that fails with a hint",
            lock,
            &[REGION, ("AWS_CONFIG_FILE", broken)],
            &["cannot load credentials", "ask the operator"],
        ),
        (
            "one file of a list that is missing, and one that is no kubeconfig",
            "lease://default/a",
            &[("KUBECONFIG", &format!("/nowhere/config:{profiles}"))],
            &["the kubeconfig is invalid"],
        ),
        (
            "a profile that does not exist",
            lock,
            &[REGION, ("AWS_PROFILE", "nobody")],
            &[
                "no credentials; AWS_PROFILE is \"nobody\"",
                "~/.aws/credentials",
                "~/.aws/config",
                "correct AWS_PROFILE",
            ],
        ),
        (
            "a profile that does not exist, and a machine whose metadata service is down",
            lock,
            &[
                REGION,
                ("AWS_PROFILE", "nobody"),
                ("AWS_EC2_METADATA_DISABLED", "false"),
                ("AWS_EC2_METADATA_SERVICE_ENDPOINT", nobody),
            ],
            &[
                "cannot load credentials",
                "AWS_PROFILE is \"nobody\": check that ~/.aws/credentials or ~/.aws/config has",
            ],
        ),
        (
            "a profile that is not in the file",
            lock,
            &[REGION, ("AWS_PROFILE", "nobody"), ("AWS_CONFIG_FILE", profiles)],
            &["AWS_PROFILE is \"nobody\"", profiles],
        ),
        (
            "a file of profiles that does not exist",
            lock,
            &[REGION, ("AWS_PROFILE", "nobody"), ("AWS_CONFIG_FILE", "/nowhere/profiles")],
            &[
                "no credentials; AWS_CONFIG_FILE names /nowhere/profiles, which does not exist",
                "correct AWS_CONFIG_FILE",
            ],
        ),
        (
            "a token file that does not exist",
            lock,
            &[REGION, ROLE, ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")],
            &["AWS_WEB_IDENTITY_TOKEN_FILE names /nowhere/token, which does not exist", "or put the file there"],
        ),
        (
            "a host without an address",
            &unknown_host,
            &KEYS,
            &[
                &format!("cannot find the host {host}; check the region (AWS_REGION, or region= in the URL)"),
                "endpoint=",
            ],
        ),
        (
            "the address of an object of S3",
            "https://bucket.s3.eu-central-1.amazonaws.com/key",
            &KEYS,
            &[
                "an https:// URL names an Azure blob, but this is an object of S3",
                "s3://bucket/key?region=eu-central-1",
            ],
        ),
        (
            "the address of an object of Google's",
            "https://storage.googleapis.com/bucket/object",
            &[],
            &["an https:// URL names an Azure blob, but this is an object of Google's", "gs://bucket/object"],
        ),
        (
            "an object of a store on a host of one's own",
            "http://host/bucket/key",
            &KEYS,
            &["for an S3-compatible store, write s3://bucket/key?endpoint=http://host"],
        ),
        (
            "a SAS for everybody to read",
            "http://account.example/container/blob?sig=hidden",
            &[],
            &["everybody on the network could read the SAS in transit; begin the URL with https://"],
        ),
    ];
    for (case, url, environment, words) in rows {
        let mut command = leaderelect(["status", "--request-timeout", "30s", url]);
        command.env("HOME", home.path()).env("AWS_EC2_METADATA_DISABLED", "true").envs(environment.iter().copied());
        let ended = end_of(command);
        assert!(!ended.stderr.contains("hidden"), "{case}: {ended:?}");
        for word in words {
            assert!(ended.code != Some(0) && ended.stderr.contains(word), "{case}: {word}: {}", ended.stderr);
        }
    }
}
