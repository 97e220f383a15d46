//! Advice for people who set variables and write no program: what the environment says about credentials and the region.

use std::env;
use std::path::Path;

use leaderelection_store_support::variable;

/// The variables that name a file. All but the last two hold a token.
const FILES: [&str; 4] = [
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
];

const KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";

/// The usual places of credentials.
fn set_some() -> String {
    match [KEY, SECRET].map(|name| variable(name).is_some()) {
        [true, false] => format!("{KEY} is set, but {SECRET} is not; set both, or AWS_PROFILE"),
        [false, true] => format!("{SECRET} is set, but {KEY} is not; set both, or AWS_PROFILE"),
        _ => format!("set {KEY} and {SECRET}, or AWS_PROFILE"),
    }
}

/// The advice for a client without a region.
pub(crate) fn no_region() -> String {
    let empty = ["AWS_REGION", "AWS_DEFAULT_REGION"]
        .into_iter()
        .find(|name| env::var(name).is_ok_and(|value| value.is_empty()));
    let empty = empty.map(|name| format!("{name} is empty: ")).unwrap_or_default();
    let profile = variable("AWS_PROFILE").map(|name| format!("the profile {name:?} of AWS_PROFILE has none: "));
    let profile = profile.unwrap_or_default();
    format!("no region; {empty}{profile}set AWS_REGION, or add ?region=eu-central-1 to the URL")
}

/// The advice for a client that asks this machine for its region.
pub(crate) fn no_region_yet() -> String {
    "no region yet: the metadata service of this machine has not told it, and is asked again; or set AWS_REGION"
        .to_owned()
}

fn shared_file() -> String {
    variable("AWS_SHARED_CREDENTIALS_FILE").unwrap_or_else(|| "~/.aws/credentials".to_owned())
}

fn config_file() -> String {
    variable("AWS_CONFIG_FILE").unwrap_or_else(|| "~/.aws/config".to_owned())
}

/// The advice for a client whose sources of credentials have none.
pub(crate) fn no_credentials() -> String {
    let advice = missing_file().unwrap_or_else(|| match variable("AWS_PROFILE") {
        Some(name) => {
            let (shared, config) = (shared_file(), config_file());
            format!("AWS_PROFILE is {name:?}, and neither {shared} nor {config} has credentials of that profile; add them, or correct AWS_PROFILE")
        }
        None => format!("{}, or give the machine a role", set_some()),
    });
    format!("no credentials; {advice}")
}

/// The advice for a client with a source of credentials that fails: that of this machine, or another.
pub(crate) fn credentials_failed(asks_machine: bool) -> String {
    let advice = missing_file().unwrap_or_else(|| match (asks_machine, variable("AWS_PROFILE")) {
        (true, Some(name)) => format!(
            "this machine's role gave none; AWS_PROFILE is {name:?}: check that {} or {} has credentials of that profile",
            shared_file(),
            config_file()
        ),
        (true, None) => format!(
            "the only source is this machine's role, which gave none; {}, or check the machine's role",
            set_some()
        ),
        (false, _) => "check where they come from".to_owned(),
    });
    format!("cannot load credentials; the request was not sent; {advice}")
}

/// The advice for a client whose settings of credentials contradict one another or themselves.
pub(crate) fn wrong_settings() -> String {
    let advice =
        missing_file().unwrap_or_else(|| "correct the profile or the variable that the cause names".to_owned());
    format!("the settings of the credentials are invalid; {advice}")
}

/// What to check if no request reaches the store.
const CHECK_SETTINGS: &str = "check the region (AWS_REGION, or region= in the URL), the endpoint \
     (AWS_ENDPOINT_URL, or endpoint=), and the network";

/// The advice for a host whose name has no address. `endpoint` is the URL of the bucket, if it is known.
pub(crate) fn unknown_host(endpoint: Option<&str>) -> String {
    let host = endpoint.and_then(host).unwrap_or("the store");
    format!("cannot find the host {host}; {CHECK_SETTINGS}")
}

/// The advice for a host that accepts no connection. `endpoint` is the URL of the bucket, if it is known.
pub(crate) fn unreachable(endpoint: Option<&str>) -> String {
    let to = endpoint.and_then(host).map(|host| format!(" to {host}")).unwrap_or_default();
    format!("cannot connect{to}; check that the store runs there; if it has never answered, {CHECK_SETTINGS}")
}

/// The host and the port of a URL, without a user's name.
fn host(url: &str) -> Option<&str> {
    url.split('/').nth(2)?.rsplit('@').next()
}

fn missing_file() -> Option<String> {
    let (name, path) = FILES.iter().find_map(|name| {
        let path = variable(name)?;
        (!Path::new(&path).exists()).then_some((name, path))
    })?;
    Some(format!("{name} names {path}, which does not exist or cannot be read; correct {name}, or put the file there"))
}
