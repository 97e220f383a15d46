//! The parameters of a request.

use std::time::Duration;

use leaderelection::timings::parse_duration;
use serde_json::Value;

use crate::object::Object;
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
    pub(crate) watch: bool,
    pub(crate) resource_version: String,
    pub(crate) sends_initial_events: bool,
    /// The longest duration of a watch.
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) selector: Selector,
}

impl Query {
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
                "fieldManager" if !value.is_empty() => query.field_manager = Some(value.into_owned()),
                "force" => query.is_forced = is_true,
                "fieldValidation" => query.is_strict = value == "Strict",
                "watch" => query.watch = is_true,
                "resourceVersion" => query.resource_version = value.into_owned(),
                "sendInitialEvents" => query.sends_initial_events = is_true,
                "timeoutSeconds" => query.timeout_seconds = value.parse().ok(),
                "labelSelector" => query.selector.add_labels(&value)?,
                "fieldSelector" => query.selector.add_fields(&value)?,
                _ => {}
            }
        }
        Ok(query)
    }
}

/// The condition of a selector.
#[derive(Clone, Debug)]
struct Term {
    path: Vec<String>,
    /// `None` if the value does not matter.
    value: Option<String>,
    is_wanted: bool,
}

/// The Leases that a listing or a watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector(Vec<Term>);

impl Selector {
    fn add_labels(&mut self, text: &str) -> Result<(), Failure> {
        for term in text.split(',').filter(|term| !term.is_empty()) {
            if term.contains(['(', ')', ' ', '<', '>']) {
                let problem =
                    format!("labelSelector: this server knows =, ==, != and the names of labels, not {term:?}");
                return Err(Failure::bad_request(problem));
            }
            let (label, value, is_wanted) = split(term);
            let (label, is_wanted) = label.strip_prefix('!').map_or((label, is_wanted), |label| (label, false));
            self.0.push(Term {
                path: vec!["metadata".to_owned(), "labels".to_owned(), label.to_owned()],
                value: value.map(str::to_owned),
                is_wanted,
            });
        }
        Ok(())
    }

    fn add_fields(&mut self, text: &str) -> Result<(), Failure> {
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let (field, value, is_wanted) = split(term);
            if !["metadata.name", "metadata.namespace"].contains(&field) {
                return Err(Failure::bad_request(format!("fieldSelector: {field:?} is not a known field selector")));
            }
            let path = field.split('.').map(str::to_owned).collect();
            self.0.push(Term { path, value: value.map(str::to_owned), is_wanted });
        }
        Ok(())
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.0.is_empty() || self.accepts(&object.lease())
    }

    fn accepts(&self, lease: &Value) -> bool {
        self.0.iter().all(|term| {
            let found = term.path.iter().try_fold(lease, |value, part| value.get(part)).and_then(Value::as_str);
            let is_met = found.is_some_and(|found| term.value.as_deref().is_none_or(|value| value == found));
            is_met == term.is_wanted
        })
    }
}

/// Splits a term into its name and its value. Returns `false` if the value must be another one.
fn split(term: &str) -> (&str, Option<&str>, bool) {
    match term.split_once("!=") {
        Some((name, value)) => (name, Some(value), false),
        None => match term.split_once('=') {
            Some((name, value)) => (name, Some(value.trim_start_matches('=')), true),
            None => (term, None, true),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_read_in_the_spelling_of_every_client() {
        let query = Query::parse("&force=true&fieldManager=kubert&timeout=2s&unknown=1").unwrap();
        assert!(query.is_forced);
        assert_eq!(query.field_manager.as_deref(), Some("kubert"));
        assert_eq!(query.timeout, Some(Duration::from_secs(2)));
        Query::parse("dryRun=Some").unwrap_err();
    }

    #[test]
    fn selectors_choose_by_names_and_labels() {
        let lease = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"app": "web"}}});
        for (text, is_chosen) in [
            ("fieldSelector=metadata.name%3Da", true),
            ("fieldSelector=metadata.name%3Db", false),
            ("fieldSelector=metadata.namespace!%3Dn", false),
            ("labelSelector=app", true),
            ("labelSelector=!app", false),
            ("labelSelector=app%3D%3Dweb", true),
            ("labelSelector=app!%3Dweb", false),
            ("labelSelector=other!%3Dweb", true),
            ("labelSelector=app%3Dweb,other", false),
        ] {
            assert_eq!(Query::parse(text).unwrap().selector.accepts(&lease), is_chosen, "{text}");
        }
        Query::parse("fieldSelector=spec.holderIdentity%3Da").unwrap_err();
        Query::parse("labelSelector=app+in+(a)").unwrap_err();
    }
}
