//! The Leases that a listing or a watch is about, by their names and labels.

use std::collections::BTreeMap;

use crate::listed::Listed;
use crate::object::Place;
use crate::status::Failure;

/// The most requirements and values in the selectors of a request. A watch keeps them, and each Lease is compared with all.
const MOST_REQUIREMENTS: usize = 100;

/// The attribute of a Lease that a condition is about.
#[derive(Clone, Debug)]
enum Attribute {
    Name,
    Namespace,
    Label(String),
}

/// The condition of a selector.
#[derive(Clone, Debug)]
struct Term {
    attribute: Attribute,
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

    pub(crate) fn add_labels(&mut self, text: &str) -> Result<(), Failure> {
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
            self.add(Attribute::Label(label.to_owned()), test, is_wanted)?;
        }
        Ok(())
    }

    pub(crate) fn add_fields(&mut self, text: &str) -> Result<(), Failure> {
        for term in terms(text) {
            let (field, test, is_wanted) = split(term);
            if matches!(test, Test::Any) {
                return Err(Failure::bad_request(format!("fieldSelector: {term:?} has no operator: use =, == or !=")));
            }
            let attribute = match field {
                "metadata.name" => Attribute::Name,
                "metadata.namespace" => Attribute::Namespace,
                _ => {
                    let problem = format!("fieldSelector: {field:?} is not a known field selector");
                    return Err(Failure::bad_request(problem));
                }
            };
            self.add(attribute, test, is_wanted)?;
        }
        Ok(())
    }

    fn add(&mut self, attribute: Attribute, test: Test, is_wanted: bool) -> Result<(), Failure> {
        self.0.push(Term { attribute, test, is_wanted });
        let size = |term: &Term| if let Test::OneOf(values) = &term.test { values.len() } else { 1 };
        let count: usize = self.0.iter().map(size).sum();
        if count > MOST_REQUIREMENTS {
            let most = MOST_REQUIREMENTS;
            return Err(Failure::bad_request(format!("the selectors have more than {most} requirements and values")));
        }
        Ok(())
    }

    pub(crate) fn needs_labels(&self) -> bool {
        self.0.iter().any(|term| matches!(term.attribute, Attribute::Label(_)))
    }

    /// The bytes of a Lease that are read to see whether it matches.
    pub(crate) fn cost(&self, listed: &Listed) -> usize {
        if self.needs_labels() { listed.size() } else { 0 }
    }

    pub(crate) fn matches(&self, listed: &Listed) -> bool {
        let object = if self.needs_labels() { listed.object() } else { None };
        self.accepts(listed.place(), &object.map(|object| object.labels()).unwrap_or_default())
    }

    fn accepts(&self, place: &Place, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| {
            let found = match &term.attribute {
                Attribute::Name => Some(&place.name),
                Attribute::Namespace => Some(&place.namespace),
                Attribute::Label(label) => labels.get(label),
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
    use std::collections::BTreeMap;

    use crate::object::Place;
    use crate::query::Query;

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
