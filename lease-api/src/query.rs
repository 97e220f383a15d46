//! The parameters of a request.

use std::time::Duration;

use leaderelection::timings::parse_duration;

use crate::object::Place;
use crate::selector::Selector;
use crate::status::Failure;

/// The parameters that the server knows. All others are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// The time for which the client waits.
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_dry_run: bool,
    pub(crate) field_manager: Option<String>,
    /// A patch without a version may take a live lease.
    pub(crate) is_forced: bool,
    pub(crate) is_strict: bool,
    pub(crate) included: Included,
    pub(crate) watch: bool,
    pub(crate) resource_version: String,
    version_match: String,
    pub(crate) sends_initial_events: Option<bool>,
    pub(crate) allows_bookmarks: bool,
    /// The longest duration of a watch.
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) selector: Selector,
    /// The largest number of Leases in one answer.
    pub(crate) limit: Option<usize>,
    pub(crate) next: Option<Continue>,
}

/// The part of a Lease that a row of a table has beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Included {
    Nothing,
    #[default]
    Metadata,
    Object,
}

/// The place behind which a listing goes on, and the version of its first part: a watch from there misses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continue {
    pub(crate) version: String,
    pub(crate) behind: Place,
}

impl Continue {
    pub(crate) fn text(&self) -> String {
        format!("{}/{}/{}", self.version, self.behind.namespace, self.behind.name)
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        match text.split('/').collect::<Vec<_>>()[..] {
            [version, namespace, name] => {
                let behind = Place { namespace: namespace.to_owned(), name: name.to_owned() };
                Ok(Self { version: version.to_owned(), behind })
            }
            _ => Err(Failure::bad_request("continue: continue key is not valid; send what the last answer had there")),
        }
    }
}

impl Query {
    /// Returns `true` if a watch begins with a listing, which it tells unless `sendInitialEvents` is false.
    pub(crate) fn begins_with_listing(&self) -> bool {
        self.sends_initial_events == Some(true) || ["", "0"].contains(&self.resource_version.as_str())
    }

    /// The version that a listing must have, if any.
    pub(crate) fn exact_version(&self) -> Option<&str> {
        (self.version_match == "Exact").then_some(&*self.resource_version)
    }

    /// Refuses a listing or a watch whose parameters about versions contradict each other.
    pub(crate) fn check_versions(&self) -> Result<(), Failure> {
        let (version, how) = (self.resource_version.as_str(), self.version_match.as_str());
        let is_initial = self.sends_initial_events.is_some();
        let problem = match how {
            _ if is_initial && !self.watch => "sendInitialEvents: Forbidden: it is for watches",
            _ if is_initial && how != "NotOlderThan" => {
                "resourceVersionMatch: Forbidden: sendInitialEvents requires NotOlderThan"
            }
            "" => return Ok(()),
            "Exact" | "NotOlderThan" if self.watch && !is_initial => {
                "resourceVersionMatch: Forbidden: a watch has it with sendInitialEvents only"
            }
            "Exact" if version == "0" => "resourceVersionMatch: Forbidden: no listing has exactly the version 0",
            "Exact" | "NotOlderThan" if version.is_empty() && !self.watch => {
                "resourceVersionMatch: Forbidden: resourceVersion is missing"
            }
            "Exact" | "NotOlderThan" => return Ok(()),
            _ => "resourceVersionMatch: Unsupported value: supported: \"Exact\", \"NotOlderThan\"",
        };
        Err(Failure::unprocessable(problem))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut query = Self::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let is_true = matches!(&*value, "true" | "1" | "");
            match &*name {
                "timeout" => query.timeout = parse_duration(&value).ok(),
                "dryRun" if value == "All" => query.is_dry_run = true,
                "dryRun" if !value.is_empty() => {
                    return Err(Failure::unprocessable(format!(
                        "dryRun: Unsupported value: {value:?}: supported: \"All\""
                    )));
                }
                "fieldManager" if value.len() > LONGEST_MANAGER || value.contains(char::is_control) => {
                    return Err(Failure::unprocessable(format!(
                        "fieldManager: Invalid value: {value:?}: at most {LONGEST_MANAGER} bytes without control characters"
                    )));
                }
                "fieldManager" if !value.is_empty() => query.field_manager = Some(value.into_owned()),
                "force" => query.is_forced = is_true,
                "fieldValidation" => {
                    query.is_strict = one_of(&name, &value, &["Ignore", "Warn", "Strict"])? == "Strict"
                }
                "propagationPolicy" => drop(one_of(&name, &value, &["Background", "Foreground", "Orphan"])?),
                "includeObject" => {
                    query.included = match &*value {
                        "None" => Included::Nothing,
                        "Object" => Included::Object,
                        "Metadata" | "" => Included::Metadata,
                        _ => return Err(Failure::bad_request(format!("includeObject: Invalid value: {value:?}"))),
                    }
                }
                "watch" => query.watch = is_true,
                "resourceVersion" => query.resource_version = value.into_owned(),
                "resourceVersionMatch" => query.version_match = value.into_owned(),
                "sendInitialEvents" => query.sends_initial_events = Some(is_true),
                "allowWatchBookmarks" => query.allows_bookmarks = is_true,
                "timeoutSeconds" => query.timeout_seconds = u64::try_from(number(&name, &value)?).ok(),
                "limit" => query.limit = usize::try_from(number(&name, &value)?).ok().filter(|limit| *limit > 0),
                "continue" if !value.is_empty() => query.next = Some(Continue::parse(&value)?),
                "labelSelector" => query.selector.add_labels(&value)?,
                "fieldSelector" => query.selector.add_fields(&value)?,
                _ => {}
            }
        }
        Ok(query)
    }
}

/// The longest name of a field manager, in bytes.
const LONGEST_MANAGER: usize = 128;

/// Reads a number; an empty value is 0.
fn number(name: &str, value: &str) -> Result<i64, Failure> {
    if value.is_empty() {
        return Ok(0);
    }
    value.parse().map_err(|_| Failure::bad_request(format!("{name}: Invalid value: {value:?}: expected a number")))
}

/// Refuses a value that is neither empty nor one of those that are possible.
fn one_of<'a>(name: &str, value: &'a str, possible: &[&str]) -> Result<&'a str, Failure> {
    if value.is_empty() || possible.contains(&value) {
        return Ok(value);
    }
    Err(Failure::unprocessable(format!("{name}: Unsupported value: {value:?}: supported: {possible:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_in_the_spelling_of_every_client() {
        let query = Query::parse("&force=true&fieldManager=kubert&timeout=2s&unknown=1").unwrap();
        assert!(query.is_forced);
        assert_eq!(query.field_manager.as_deref(), Some("kubert"));
        assert_eq!(query.timeout, Some(Duration::from_secs(2)));
        for refused in [
            "dryRun=Some",
            "fieldValidation=Some",
            "propagationPolicy=Some",
            "includeObject=Some",
            "limit=some",
            "timeoutSeconds=some",
            "fieldManager=%01",
            &format!("fieldManager={}", "a".repeat(129)),
            "fieldSelector=metadata.name",
        ] {
            Query::parse(refused).unwrap_err();
        }
        Query::parse("fieldValidation=Sometimes").unwrap_err();
        let query = Query::parse("dryRun=&fieldManager=&limit=0&continue=").unwrap();
        assert!(!query.is_dry_run && query.next.is_none(), "{query:?}");
        assert_eq!((query.field_manager, query.limit), (None, None), "what is empty or 0 is not there");
    }

    #[test]
    fn versions_and_the_way_to_match_them_go_together() {
        let exact = "resourceVersionMatch=Exact";
        let initial = "watch=1&sendInitialEvents=true";
        for (text, is_right) in [
            ("resourceVersion=0", true),
            ("resourceVersion=5&resourceVersionMatch=Exact", true),
            ("resourceVersion=0&resourceVersionMatch=NotOlderThan", true),
            (&format!("{initial}&resourceVersionMatch=NotOlderThan"), true),
            ("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", true),
            ("watch=1&sendInitialEvents=false", false),
            ("watch=1&resourceVersionMatch=NotOlderThan", false),
            ("sendInitialEvents=false", false),
            (exact, false),
            (&format!("resourceVersion=0&{exact}"), false),
            (&format!("watch=1&resourceVersion=5&{exact}"), false),
            (initial, false),
            ("sendInitialEvents=true", false),
            ("resourceVersion=5&resourceVersionMatch=Some", false),
        ] {
            assert_eq!(Query::parse(text).unwrap().check_versions().is_ok(), is_right, "{text}");
        }
    }
}
