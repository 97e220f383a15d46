//! A table of URLs: the schemes of a store, and their parameters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::parts::{Parts, escaped, escaped_value};
use super::{Place, UrlError};

/// A scheme of URLs, `name://authority/path?parameters`, that names places `P`.
#[derive(Debug)]
pub struct Scheme<P: 'static> {
    /// The text before `://`.
    pub name: &'static str,
    /// The parameters, in the order in which they are shown.
    pub parameters: &'static [Parameter<P>],
    /// The parameters that other schemes have and this one cannot have, each with a reason and what to do instead of it.
    pub refused: &'static [(&'static str, &'static str)],
}

/// A parameter of a scheme.
#[derive(Debug)]
pub struct Parameter<P: 'static> {
    /// The name in the URL.
    pub name: &'static str,
    /// The words behind "this is": what the value means.
    pub help: &'static str,
    /// The form of the value, and the field that has it.
    pub value: Value<P>,
}

/// The check of a text, which returns the one spelling or the problem.
pub type Check = fn(&str) -> Result<String, String>;

/// The form of a parameter's value, and the field that has it.
pub enum Value<P: 'static> {
    /// A text that passes a check.
    Text(Check, fn(&mut P) -> &mut Option<String>),
    /// `true` or `false`; `false` is not shown.
    Flag(fn(&mut P) -> &mut bool),
    /// `true` or `false`, either of which may be the default.
    Choice(fn(&mut P) -> &mut Option<bool>),
    /// A number of at least 1, and the default.
    Count(u64, fn(&mut P) -> &mut u64),
    /// `name=value`, any number of times, if a check finds no problem with the pair.
    Pairs(fn(&str, &str) -> Result<(), String>, fn(&mut P) -> &mut BTreeMap<String, String>),
}

impl<P> fmt::Debug for Value<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(..) => "Text",
            Self::Flag(_) => "Flag",
            Self::Choice(_) => "Choice",
            Self::Count(..) => "Count",
            Self::Pairs(..) => "Pairs",
        })
    }
}

impl<P> Value<P> {
    fn set(&self, place: &mut P, name: &str, value: &str) -> Result<(), String> {
        let flag = || value.parse().map_err(|_| format!("{name} is neither true nor false"));
        match self {
            Self::Text(check, field) => *field(place) = Some(check(value)?),
            Self::Flag(field) => *field(place) = flag()?,
            Self::Choice(field) => *field(place) = Some(flag()?),
            Self::Count(_, field) => {
                let number = value.parse().ok().filter(|number| *number > 0);
                *field(place) = number.ok_or_else(|| format!("{name} is no number of at least 1"))?;
            }
            Self::Pairs(check, field) => {
                let (key, value) =
                    value.split_once('=').ok_or_else(|| format!("the value of {name} has no = in it"))?;
                check(key, value)?;
                field(place).insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    /// The values that are not the default.
    fn shown(&self, place: &mut P) -> Vec<String> {
        match self {
            Self::Text(_, field) => field(place).iter().cloned().collect(),
            Self::Flag(field) => field(place).then(|| "true".to_owned()).into_iter().collect(),
            Self::Choice(field) => field(place).iter().map(bool::to_string).collect(),
            Self::Count(default, field) => {
                Some(*field(place)).filter(|n| n != default).iter().map(u64::to_string).collect()
            }
            Self::Pairs(_, field) => field(place).iter().map(|(key, value)| format!("{key}={value}")).collect(),
        }
    }
}

impl<P> Parameter<P> {
    fn set(&self, place: &mut P, value: &str) -> Result<(), String> {
        let Self { name, help, value: form } = self;
        form.set(place, name, value).map_err(|problem| format!("{problem}; {name} is {help}"))
    }
}

impl<P: Clone> Scheme<P> {
    /// Gives the place what a query says.
    ///
    /// # Errors
    ///
    /// The problem, for a [`UrlError`].
    pub fn set(&self, place: &mut P, query: Option<&str>) -> Result<(), String> {
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let parameter = self.parameter(&name, Some(seen.len() + 1))?;
            // Of two values of one parameter, nobody could tell which one counts.
            if seen.contains(&name) && !matches!(parameter.value, Value::Pairs(..)) {
                return Err(format!("the parameter {name} occurs twice; remove one"));
            }
            parameter.set(place, &value)?;
            seen.push(name);
        }
        Ok(())
    }

    /// Gives the place one parameter.
    ///
    /// # Errors
    ///
    /// The problem, for a [`UrlError`].
    pub fn set_one(&self, place: &mut P, name: &str, value: &str) -> Result<(), String> {
        self.parameter(name, None)?.set(place, value)
    }

    /// Returns the parameter of this name, which is this one in the query.
    fn parameter(&self, name: &str, number: Option<usize>) -> Result<&Parameter<P>, String> {
        if let Some(found) = self.parameters.iter().find(|known| known.name == name) {
            return Ok(found);
        }
        if let Some((_, advice)) = self.refused.iter().find(|(refused, _)| *refused == name) {
            return Err((*advice).to_owned());
        }
        // Another name is not repeated, because it may be a part of a secret.
        let known = self.parameters.iter().map(|known| known.name);
        let unknown = match (known.clone().find(|known| is_similar(name, known)), number) {
            (Some(known), _) => format!(" {name} (did you mean {known}?)"),
            (None, Some(number)) => format!(", number {number} after the ?"),
            (None, None) => String::new(),
        };
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "no parameters" } else { &known };
        Err(format!("unknown parameter{unknown}; {}:// takes {known}; a ? in a name is written %3F", self.name))
    }

    /// The query of a URL with its question mark, of those parameters that are not the default.
    #[must_use]
    pub fn query(&self, place: &P) -> String {
        let (mut place, mut query) = (place.clone(), String::new());
        for Parameter { name, value, .. } in self.parameters {
            for value in value.shown(&mut place) {
                let separator = if query.is_empty() { '?' } else { '&' };
                query = format!("{query}{separator}{name}={}", escaped_value(&value));
            }
        }
        query
    }
}

/// Returns `true` if a name is this known one, misspelt.
fn is_similar(name: &str, known: &str) -> bool {
    let most = known.len() / 3;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    // The distance is at least the difference of the lengths, and the names in a query may be long.
    is_plain && name.len().abs_diff(known.len()) <= most && distance(&name.to_ascii_lowercase(), known) <= most.min(2)
}

/// Returns the number of bytes to insert, remove or replace that make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row = Vec::from_iter(0..=other.len());
    for (number, left) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (column, right) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// A place whose URLs are wholly in a table.
pub trait Table: Place + Clone + Sized + 'static {
    /// A valid URL, for errors.
    const EXAMPLE: &'static str;

    /// The schemes of the URLs.
    const SCHEMES: &'static [Scheme<Self>];

    /// Names the place at this path, without parameters.
    ///
    /// # Errors
    ///
    /// The problem, for a [`UrlError`].
    fn made(scheme: &str, authority: &str, path: String) -> Result<Self, String>;

    /// The scheme of this place's URL.
    fn scheme(&self) -> &'static Scheme<Self> {
        &Self::SCHEMES[0]
    }

    /// The text before the first slash of the URL.
    fn authority(&self) -> &str;

    /// The text behind that slash, not yet encoded.
    fn path(&self) -> Cow<'_, str> {
        self.key().into()
    }

    /// The same place with what is the default in its one spelling.
    #[must_use]
    fn normalized(self) -> Self {
        self
    }
}

/// The error of a place with this problem.
pub fn wrong<P: Table>(problem: impl Into<String>) -> UrlError {
    UrlError::new(problem, P::EXAMPLE)
}

/// Reads a URL by its table.
///
/// # Errors
///
/// If the text is no URL of the table.
pub fn parse<P: Table>(text: &str) -> Result<P, UrlError> {
    let read = || {
        let names: Vec<&str> = P::SCHEMES.iter().map(|scheme| scheme.name).collect();
        let (number, Parts { authority, path, query }) = Parts::of(text, &names)?;
        let scheme = &P::SCHEMES[number];
        let mut place = P::made(scheme.name, authority, path)?;
        scheme.set(&mut place, query)?;
        Ok::<P, String>(place.normalized())
    };
    read().map_err(wrong::<P>)
}

/// Returns the place with this parameter of its URL.
///
/// # Errors
///
/// If the scheme has no such parameter, or if the value is invalid.
pub fn with<P: Table>(mut place: P, name: &str, value: &str) -> Result<P, UrlError> {
    place.scheme().set_one(&mut place, name, value).map_err(wrong::<P>)?;
    Ok(place)
}

/// Shows the URL by which [`parse`] finds the same place.
///
/// # Errors
///
/// Those of the formatter.
pub fn show<P: Table>(place: &P, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (scheme, place) = (place.scheme(), place.clone().normalized());
    write!(f, "{}://{}/{}{}", scheme.name, place.authority(), escaped(&place.path()), scheme.query(&place))
}
