//! Who asks, and what it may do.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::status::{Failure, GROUP};

/// What a caller may do with Leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read, list and watch them.
    Read,
    /// Create, change and delete them too.
    Write,
}

/// Who asks, as an extension of its request. A request without it may do everything.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The name of the caller in the audit log, which is no secret. Callers of one name have one share, and so have all service
    /// accounts of one namespace (`system:serviceaccount:NAMESPACE:NAME`).
    pub name: String,
    /// What it may do in all namespaces.
    pub everywhere: Option<Role>,
    /// What it may do in some namespaces besides.
    pub namespaces: BTreeMap<String, Role>,
}

impl Caller {
    /// What it may do in a namespace, or in all.
    fn role(&self, namespace: Option<&str>) -> Option<Role> {
        self.everywhere.max(namespace.and_then(|namespace| self.namespaces.get(namespace)).copied())
    }

    pub(crate) fn check(caller: Option<&Self>, namespace: Option<&str>, wanted: Role) -> Result<(), Failure> {
        match caller.map_or(Some(Role::Write), |caller| caller.role(namespace)) {
            Some(role) if role >= wanted => Ok(()),
            role => Err(Failure::forbidden(namespace, role.is_some())),
        }
    }

    /// Answers a SelfSubjectAccessReview, as `kubectl auth can-i` asks it.
    pub(crate) fn review(caller: Option<&Self>, mut review: Value) -> Result<Value, Failure> {
        let asked = review["spec"]["resourceAttributes"].clone();
        let text = |field: &str| asked[field].as_str().unwrap_or_default();
        let wanted = match text("verb") {
            "get" | "list" | "watch" => Some(Role::Read),
            "create" | "update" | "patch" | "delete" | "deletecollection" | "*" => Some(Role::Write),
            _ => None,
        };
        let is_of_leases = [GROUP, "*"].contains(&text("group")) && ["leases", "*"].contains(&text("resource"));
        let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
        let refused = match wanted.filter(|_| is_of_leases) {
            Some(wanted) => Self::check(caller, namespace, wanted).err(),
            None => Some(Failure::no_path()),
        };
        let reason = refused.as_ref().map(Failure::message).unwrap_or_default();
        let status = json!({"allowed": refused.is_none(), "reason": reason});
        let fields = review.as_object_mut().ok_or_else(|| Failure::undecodable("the body", "it is no object"))?;
        fields.insert("status".to_owned(), status);
        Ok(review)
    }
}
