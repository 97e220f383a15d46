//! [`Retention`] as a configuration file spells it: `{ "terms": 50, "for_at_most": "30days" }`.

use serde::Deserialize;

use super::Retention;
use crate::timings::human::Human;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    terms: u16,
    for_at_most: Option<Human>,
}

impl From<Written> for Retention {
    fn from(Written { terms, for_at_most }: Written) -> Self {
        let keep = Self::terms(terms);
        for_at_most.map_or(keep, |Human(age)| keep.for_at_most(age))
    }
}
