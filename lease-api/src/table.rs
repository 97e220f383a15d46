//! Leases as `kubectl` prints them.

use serde_json::{Value, json};

use crate::leases::Leases;
use crate::object::Object;

/// A table without its rows and its metadata.
pub(crate) fn head() -> Value {
    let column = |name: &str, format: &str, description: &str| json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0});
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "columnDefinitions": [
            column("Name", "name", "The name of the Lease"),
            column("Holder", "", "The identity of the holder"),
            column("Age", "", "The time since the Lease was created"),
        ],
    })
}

/// A table of one row.
pub(crate) fn of(row: Value) -> Value {
    let mut table = head();
    let version = row["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    (table["metadata"], table["rows"]) = (json!({"resourceVersion": version}), json!([row]));
    table
}

/// A row, with as much of the Lease as the client wants beside it.
pub(crate) fn row(object: &Object, included: Value) -> Value {
    let name = object.lease()["metadata"]["name"].take();
    json!({"cells": [name, object.holder(), age(object)], "object": included})
}

/// The time since the Lease was created, in its largest unit.
fn age(object: &Object) -> String {
    let Some(created) = object.created() else { return "<unknown>".to_owned() };
    in_largest_unit(Leases::now().signed_duration_since(created).num_seconds().max(0))
}

fn in_largest_unit(seconds: i64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_its_largest_unit() {
        for (seconds, age) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (864_000, "10d"),
        ] {
            assert_eq!(in_largest_unit(seconds), age);
        }
    }
}
