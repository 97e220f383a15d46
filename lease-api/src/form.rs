//! The form in which a client wants Leases, by the header `Accept`.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use serde_json::{Value, json};

use crate::object::Object;
use crate::query::Included;
use crate::status::{Failure, KIND};
use crate::table;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Lease,
    /// Without the spec, for clients that follow metadata.
    Partial,
    Table(Included),
}

impl Form {
    /// Chooses the first form in the header that there is.
    ///
    /// # Errors
    ///
    /// There is none: the client could not read the answer.
    pub(crate) fn of(headers: &HeaderMap, included: Included) -> Result<Self, Failure> {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
        if accepted.peek().is_none() {
            return Ok(Self::Lease);
        }
        let forms = accepted.flat_map(|value| value.split(',')).filter_map(|range| Self::named(range, included));
        forms.into_iter().next().ok_or_else(Failure::not_acceptable)
    }

    fn named(range: &str, included: Included) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        // A client that asks for protobuf decodes what the answer says that it is.
        let media_types = ["application/json", "application/*", "*/*", "application/vnd.kubernetes.protobuf", ""];
        media_types.contains(&parts.next()?).then_some(())?;
        let (mut form, mut is_known) = (Self::Lease, true);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match (name, value) {
                ("as", "Table") => form = Self::Table(included),
                ("as", "PartialObjectMetadata" | "PartialObjectMetadataList") => form = Self::Partial,
                ("as", _) => is_known = false,
                ("v", version) => is_known &= version == "v1",
                ("g", group) => is_known &= group == "meta.k8s.io",
                _ => {}
            }
        }
        is_known.then_some(form)
    }

    /// Shows a Lease in a list or alone, other than in a table.
    pub(crate) fn item(self, object: &Object) -> Value {
        match self {
            Self::Lease => object.lease(),
            Self::Partial => partial(object),
            Self::Table(Included::Metadata) => table::row(object, partial(object)),
            Self::Table(Included::Object) => table::row(object, object.lease()),
            Self::Table(Included::Nothing) => table::row(object, Value::Null),
        }
    }

    /// Shows a Lease alone, and in the event of a watch, which has no version of a table.
    pub(crate) fn alone(self, object: &Object) -> Value {
        match self {
            Self::Table(_) => table::of(self.item(object)),
            _ => self.item(object),
        }
    }

    /// A list without its metadata and items, and the name of the items.
    pub(crate) fn list(self) -> (Value, &'static str) {
        match self {
            Self::Lease => (json!({"kind": format!("{KIND}List"), "apiVersion": crate::status::API_VERSION}), "items"),
            Self::Partial => (json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}), "items"),
            Self::Table(_) => (table::head(), "rows"),
        }
    }
}

fn partial(object: &Object) -> Value {
    let metadata = object.lease()["metadata"].take();
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_there_is_counts() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let of = |accept: &str| {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            Form::of(&headers, Included::Metadata).ok()
        };
        for (accept, form) in [
            ("application/json", Some(Form::Lease)),
            ("text/html, */*;q=0.8", Some(Form::Lease)),
            ("application/vnd.kubernetes.protobuf", Some(Form::Lease)),
            (&format!("{table},application/json"), Some(Form::Table(Included::Metadata))),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Some(Form::Lease)),
            ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Some(Form::Partial)),
            ("application/json;as=Other;v=v1;g=meta.k8s.io", None),
            ("text/html", None),
        ] {
            assert_eq!(of(accept), form, "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new(), Included::Metadata).unwrap(), Form::Lease);
    }
}
