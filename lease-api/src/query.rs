//! The parameters of a request.

use std::collections::BTreeMap;
use std::time::Duration;

use leaderelection::timings::parse_duration;

use crate::listed::Listed;
use crate::object::Place;
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
    pub(crate) sends_initial_events: bool,
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
    /// Returns `true` if a watch begins with the Leases that are there.
    pub(crate) fn begins_with_listing(&self) -> bool {
        self.sends_initial_events || ["", "0"].contains(&self.resource_version.as_str())
    }

    /// Refuses a listing or a watch whose parameters about versions contradict each other.
    pub(crate) fn check_versions(&self) -> Result<(), Failure> {
        let (version, how) = (self.resource_version.as_str(), self.version_match.as_str());
        let problem = match how {
            _ if self.sends_initial_events && !self.watch => "sendInitialEvents: Forbidden: it is for watches",
            _ if self.sends_initial_events && how != "NotOlderThan" => {
                "resourceVersionMatch: Forbidden: sendInitialEvents requires NotOlderThan"
            }
            "" => return Ok(()),
            "Exact" | "NotOlderThan" if self.watch && !self.sends_initial_events => {
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
                "sendInitialEvents" => query.sends_initial_events = is_true,
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

/// The most requirements and values in the selectors of a request. A watch keeps them, and each Lease is compared with all.
const MOST_REQUIREMENTS: usize = 100;

/// The part of a Lease that a condition is about.
#[derive(Clone, Debug)]
enum Part {
    Name,
    Namespace,
    Label(String),
}

/// The condition of a selector.
#[derive(Clone, Debug)]
struct Term {
    part: Part,
    test: Test,
    is_wanted: bool,
}

/// What a value has to be.
#[derive(Clone, Debug)]
enum Test {
    Any,
    OneOf(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Test {
    fn accepts(&self, value: &str) -> bool {
        let number = value.parse::<i64>().ok();
        match self {
            Self::Any => true,
            Self::OneOf(values) => values.iter().any(|one| one == value),
            Self::Above(least) => number.is_some_and(|number| number > *least),
            Self::Below(most) => number.is_some_and(|number| number < *most),
        }
    }
}

/// The Leases that a listing or a watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector(Vec<Term>);

impl Selector {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add_labels(&mut self, text: &str) -> Result<(), Failure> {
        for term in terms(text) {
            let compared = |mark: char, test: fn(i64) -> Test| {
                let (label, value) = term.split_once(mark)?;
                Some((label.trim(), value.trim().parse().ok().map(test)?, true))
            };
            let (label, test, is_wanted) = match term.split_once('(') {
                Some((head, values)) => set(head, values).ok_or_else(|| unreadable(term))?,
                None => {
                    compared('>', Test::Above).or_else(|| compared('<', Test::Below)).unwrap_or_else(|| split(term))
                }
            };
            let (label, is_wanted) = label.strip_prefix('!').map_or((label, is_wanted), |label| (label.trim(), false));
            let is_value = |value: &String| !value.contains(['=', '!']);
            let is_label = !label.is_empty() && !label.contains([' ', '<', '>', '(', ')']);
            let are_values = !matches!(&test, Test::OneOf(values) if !values.iter().all(is_value));
            if !is_label || label.matches('/').count() > 1 || !are_values {
                return Err(unreadable(term));
            }
            self.add(Part::Label(label.to_owned()), test, is_wanted)?;
        }
        Ok(())
    }

    fn add_fields(&mut self, text: &str) -> Result<(), Failure> {
        for term in terms(text) {
            let (field, test, is_wanted) = split(term);
            if matches!(test, Test::Any) {
                return Err(Failure::bad_request(format!("fieldSelector: {term:?} has no operator: use =, == or !=")));
            }
            let part = match field {
                "metadata.name" => Part::Name,
                "metadata.namespace" => Part::Namespace,
                _ => {
                    let problem = format!("fieldSelector: {field:?} is not a known field selector");
                    return Err(Failure::bad_request(problem));
                }
            };
            self.add(part, test, is_wanted)?;
        }
        Ok(())
    }

    fn add(&mut self, part: Part, test: Test, is_wanted: bool) -> Result<(), Failure> {
        self.0.push(Term { part, test, is_wanted });
        let size = |term: &Term| if let Test::OneOf(values) = &term.test { values.len() } else { 1 };
        let count: usize = self.0.iter().map(size).sum();
        if count > MOST_REQUIREMENTS {
            let most = MOST_REQUIREMENTS;
            return Err(Failure::bad_request(format!("the selectors have more than {most} requirements and values")));
        }
        Ok(())
    }

    pub(crate) fn needs_labels(&self) -> bool {
        self.0.iter().any(|term| matches!(term.part, Part::Label(_)))
    }

    pub(crate) fn matches(&self, listed: &Listed) -> bool {
        let object = if self.needs_labels() { listed.object() } else { None };
        self.accepts(listed.place(), &object.map(|object| object.labels()).unwrap_or_default())
    }

    fn accepts(&self, place: &Place, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| {
            let found = match &term.part {
                Part::Name => Some(&place.name),
                Part::Namespace => Some(&place.namespace),
                Part::Label(label) => labels.get(label),
            };
            found.is_some_and(|found| term.test.accepts(found)) == term.is_wanted
        })
    }
}

fn unreadable(term: &str) -> Failure {
    Failure::bad_request(format!(
        "labelSelector: this server knows =, ==, !=, <, >, in, notin and names of labels, not {term:?}"
    ))
}

/// The terms of a selector. A comma in brackets separates values.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let parts = text.split(move |character| {
        is_inside = character == '(' || is_inside && character != ')';
        character == ',' && !is_inside
    });
    parts.map(str::trim).filter(|term| !term.is_empty())
}

/// Splits a term into its name and its value. Returns `false` if the value must be another one.
fn split(term: &str) -> (&str, Test, bool) {
    let one = |value: &str| Test::OneOf(vec![value.trim_start_matches('=').trim().to_owned()]);
    match term.split_once("!=") {
        Some((name, value)) => (name.trim(), one(value), false),
        None => match term.split_once('=') {
            Some((name, value)) => (name.trim(), one(value), true),
            None => (term, Test::Any, true),
        },
    }
}

/// Reads a term with a set of values, such as `app in (a, b)`, of which `head` ends before the bracket.
fn set<'a>(head: &'a str, values: &str) -> Option<(&'a str, Test, bool)> {
    let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    let (label, operator) = head.trim().rsplit_once(' ')?;
    let is_wanted = match operator {
        "in" => true,
        "notin" => false,
        _ => return None,
    };
    Some((label.trim(), Test::OneOf(values), is_wanted))
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

    #[test]
    fn selectors_choose_by_names_and_labels() {
        let place = Place { namespace: "n".to_owned(), name: "a".to_owned() };
        let labels = [("app", "web"), ("rank", "7")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
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
            ("labelSelector=app+in+(api,+web),app", true),
            ("labelSelector=app+in+(api),app", false),
            ("labelSelector=app+notin+(api,db)", true),
            ("labelSelector=app+notin+(api,web)", false),
            ("labelSelector=other+notin+(api)", true),
            ("labelSelector=app+%3D+web,+!other", true),
            ("labelSelector=rank%3E6", true),
            ("labelSelector=rank+%3E+7", false),
            ("labelSelector=rank%3C8,app", true),
            ("labelSelector=rank%3C-8", false),
            ("labelSelector=app%3E1", false),
            ("labelSelector=other%3C1", false),
        ] {
            assert_eq!(Query::parse(text).unwrap().selector.accepts(&place, &labels), is_chosen, "{text}");
        }
        Query::parse("fieldSelector=spec.holderIdentity%3Da").unwrap_err();
        for refused in ["app+in+(a", "app+within+(a)", "in+(a)", "app>a", "rank<", "app+web", "a%3Db%3Dc", "a/b/c"] {
            Query::parse(&format!("labelSelector={refused}")).unwrap_err();
        }
    }

    #[test]
    fn a_selector_has_no_more_requirements_than_a_watch_can_keep() {
        let names = |count: usize| vec!["a"; count].join(",");
        for (count, values, is_right) in [(99, 1, true), (100, 1, false), (1, 99, true), (1, 100, false)] {
            let text = format!("labelSelector={},b+in+({})", names(count), names(values));
            assert_eq!(Query::parse(&text).is_ok(), is_right, "{count} {values}");
        }
    }
}
