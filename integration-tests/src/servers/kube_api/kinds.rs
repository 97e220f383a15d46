//! The kinds of objects that the server has, and the rules in which they differ.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value};

/// The fields of an object beside `apiVersion`, `kind` and `metadata`.
type Content = Map<String, Value>;

/// A kind of namespaced objects.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
    /// `true` if an update creates a missing object, for every `resourceVersion`.
    pub(super) is_created_by_update: bool,
    /// `true` if an update needs no `resourceVersion`.
    pub(super) is_updated_unconditionally: bool,
    /// Validates an object, and drops what the kind does not have.
    pub(super) content: fn(&Value) -> Result<Content, Flaw>,
}

/// The flaw of a field that makes an object invalid.
#[derive(Debug)]
pub(super) enum Flaw {
    /// The field has another type.
    Undecodable { field: String },
    /// The value is beyond its limits.
    Invalid { field: String, why: String },
}

impl Kind {
    /// The path of the kind's collection in a namespace.
    pub(super) fn path(&self) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{root}/{}/namespaces/{{namespace}}/{}", self.api_version, self.plural)
    }

    /// The name of the resource in messages, such as `leases.coordination.k8s.io`.
    pub(super) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

pub(super) static LEASES: Kind = Kind {
    group: "coordination.k8s.io",
    api_version: "coordination.k8s.io/v1",
    name: "Lease",
    plural: "leases",
    is_created_by_update: true,
    is_updated_unconditionally: false,
    content: lease,
};

pub(super) static CONFIG_MAPS: Kind = Kind {
    group: "",
    api_version: "v1",
    name: "ConfigMap",
    plural: "configmaps",
    is_created_by_update: false,
    is_updated_unconditionally: true,
    content: config_map,
};

fn config_map(object: &Value) -> Result<Content, Flaw> {
    let mut valid = Map::new();
    for field in ["data", "binaryData"] {
        match &object[field] {
            Value::Null => {}
            Value::Object(entries) if entries.values().all(Value::is_string) => {
                valid.insert(field.to_owned(), object[field].clone());
            }
            _ => return Err(Flaw::Undecodable { field: format!("ConfigMap.{field}") }),
        }
    }
    Ok(valid)
}

/// The fields of a Lease. `strategy` and `preferredHolder` are dropped, because their feature gate is off.
fn lease(object: &Value) -> Result<Content, Flaw> {
    let mut valid = Map::new();
    let undecodable = |field: &str| Flaw::Undecodable { field: format!("Lease.spec.{field}") };
    for field in ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"] {
        let value = &object["spec"][field];
        if value.is_null() {
            continue;
        }
        let value = match field {
            "holderIdentity" => value.as_str().map(Value::from),
            "acquireTime" | "renewTime" => value.as_str().and_then(micro_time).map(Value::from),
            _ => value.as_i64().and_then(|number| i32::try_from(number).ok()).map(Value::from),
        };
        valid.insert(field.to_owned(), value.ok_or_else(|| undecodable(field))?);
    }
    let number = |field: &str| valid.get(field).and_then(Value::as_i64);
    let limits = [("leaseDurationSeconds", 1, "greater than 0"), ("leaseTransitions", 0, "greater than or equal to 0")];
    for (field, least, rule) in limits {
        if number(field).is_some_and(|number| number < least) {
            let why = format!("Invalid value: must be {rule}");
            return Err(Flaw::Invalid { field: format!("spec.{field}"), why });
        }
    }
    Ok(Map::from_iter([("spec".to_owned(), Value::Object(valid))]))
}

/// Spells a time as an API server does. A time that is sent has six digits behind the seconds, not fewer and not more.
fn micro_time(time: &str) -> Option<String> {
    let digits = time.split_once('.')?.1.find(|c: char| !c.is_ascii_digit());
    let parsed = DateTime::parse_from_rfc3339(time).ok().filter(|_| digits == Some(6))?;
    Some(parsed.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
}
