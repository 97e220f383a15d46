//! The writes of clients: what an API server does with them, and what keeps two leaders apart.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::audit::{AuditEvent, WriteInFlight};
use crate::body::{content_type, object};
use crate::caller::Caller;
use crate::lease::{Draft, check_kind, check_name};
use crate::leases::{Leases, after, patience};
use crate::object::{MOST_METADATA, Object, Place};
use crate::patch::{self, Patch, PatchKind};
use crate::query::Query;
use crate::served::Served;
use crate::shares::Work;
use crate::status::{Failure, GROUP};

/// The longest part of the name of a client's program that the audit tells.
const MOST_OF_AGENT: usize = 200;

/// The bytes that a renewal may add: times, tokens and ids have more digits or fewer.
const OF_RENEWAL: usize = 512;

/// The number of times that a write that names no version is tried.
const ATTEMPTS: usize = 5;

/// The outcome of a write.
type Written = Result<(StatusCode, Object), Failure>;

/// A request about one Lease.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) served: &'a Served,
    pub(crate) caller: Option<&'a Caller>,
    pub(crate) verb: &'static str,
    pub(crate) place: Place,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    /// The time of its arrival.
    pub(crate) began: Instant,
}

impl Request<'_> {
    fn name(&self) -> &str {
        &self.place.name
    }

    /// The end of the time for this request, by the lease that the client writes, or by that in the store.
    fn deadline(&self, draft: Option<&Draft>) -> Instant {
        let seconds = draft.and_then(|draft| draft.spec.lease_duration_seconds);
        let written = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(std::time::Duration::from_secs);
        // The lease of a release is no measure.
        let written = written.filter(|_| draft.is_some_and(|draft| !draft.spec.holder().is_empty()));
        let stored = || {
            let last = self.served.leases.last(&self.place)?;
            (!last.holder().is_empty()).then(|| last.lease_duration())
        };
        after(self.began, patience(self.query.timeout, written.or_else(stored)))
    }

    pub(crate) async fn get(&self) -> Result<Object, Failure> {
        let found = self.served.leases.read(&self.place, self.deadline(None)).await?;
        found.filter(|object| !object.is_deleted()).ok_or_else(|| Failure::not_found(self.name()))
    }

    /// Reads the body.
    fn sent(&self) -> Result<Value, Failure> {
        object(&self.body, content_type(self.headers), self.query.is_strict)
    }

    /// Reads the Lease in the body.
    fn draft(&self, sent: &Value) -> Result<Draft, Failure> {
        let name = self.name();
        check_kind(sent)?;
        check_name(name)?;
        let namespace = sent["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        if namespace.is_some_and(|namespace| namespace != self.place.namespace) {
            let problem = "the namespace of the object does not match the namespace on the request";
            return Err(Failure::bad_request(problem));
        }
        let draft = Draft::read(name, sent, self.query.is_strict)?;
        if serde_json::to_vec(&draft.metadata).is_ok_and(|metadata| metadata.len() > MOST_METADATA) {
            return Err(Failure::invalid(
                name,
                "metadata",
                &format!("Too long: may not be more than {MOST_METADATA} bytes"),
            ));
        }
        Ok(draft)
    }

    pub(crate) async fn create(mut self) -> Written {
        let sent = self.sent()?;
        check_kind(&sent)?;
        let metadata = &sent["metadata"];
        if metadata["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        self.place.name = match (text("name"), text("generateName")) {
            ("", "") => {
                return Err(Failure::invalid("", "metadata.name", "Required value: name or generateName is required"));
            }
            ("", prefix) => generated(prefix),
            (name, _) => name.to_owned(),
        };
        let draft = self.draft(&sent)?;
        let deadline = self.deadline(Some(&draft));
        if !self.query.is_dry_run {
            match self.write(&draft, None, deadline).await {
                Ok(Some(created)) => return Ok((StatusCode::CREATED, created)),
                Ok(None) => {}
                // What is there is counted already, a deleted Lease included.
                Err(full) if full.is_exceeded() && self.served.leases.read(&self.place, deadline).await?.is_none() => {
                    return Err(full);
                }
                Err(full) if full.is_exceeded() => {}
                Err(failure) => return Err(failure),
            }
        }
        // Something is there, unless this write is not to be sent.
        let before = self.served.leases.read(&self.place, deadline).await?;
        if before.as_ref().is_some_and(|object| !object.is_deleted()) || before.is_none() && !self.query.is_dry_run {
            return Err(Failure::exists(self.name()));
        }
        let created = self.write(&draft, before.as_ref(), deadline).await?;
        Ok((StatusCode::CREATED, created.ok_or_else(|| Failure::exists(self.name()))?))
    }

    /// Writes as [`Leases::write`] does, unless the client only wants to know what would come of it.
    async fn write(
        &self,
        draft: &Draft,
        before: Option<&Object>,
        deadline: Instant,
    ) -> Result<Option<Object>, Failure> {
        let write = Object::wanted(&self.place, before, draft, Leases::now());
        if write.is_beyond_last_token() {
            let why =
                "Invalid value: the fencing token is the largest one, so no term can follow; elect by another Lease";
            return Err(Failure::invalid(self.name(), "spec.leaseTransitions", why));
        }
        if self.query.is_dry_run {
            return Ok(Some(write));
        }
        // A small patch can make a large Lease.
        let (size, before_size) = (write.body().len(), before.map_or(0, |before| before.body().len()));
        if before.is_none() || size > Work::LARGE && size.saturating_sub(before_size) > OF_RENEWAL {
            let Served { quota, listings, .. } = self.served;
            quota.admit(&self.place.namespace, before.is_none(), listings, deadline).await?;
        }
        let written = self.put(write, before, deadline).await?;
        // A balancer that got no answer sends a write twice, to two servers.
        Ok(written.or_else(|| self.served.leases.last(&self.place).filter(|last| last.is_of(draft))))
    }

    /// Writes, and lets the audit know.
    async fn put(&self, write: Object, before: Option<&Object>, deadline: Instant) -> Result<Option<Object>, Failure> {
        let leases = &self.served.leases;
        let Some(tell) = &self.served.audit.0 else { return leases.write(write, before, deadline).await };
        let agent = self.headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let agent = agent.unwrap_or_default().chars().take(MOST_OF_AGENT).collect();
        let event = AuditEvent::of(&write, before, Leases::now(), self.caller, agent, self.verb);
        let mut write_in_flight = WriteInFlight::new(&**tell, event);
        let written = leases.write(write, before, deadline).await;
        write_in_flight.ended(match &written {
            Ok(None) => None,
            Ok(Some(_)) => Some(true),
            Err(failure) => failure.is_in_doubt().then_some(false),
        });
        written
    }

    /// The object with the version that a client names, or what is there instead.
    async fn named(&self, version: Option<&str>, deadline: Instant) -> Result<Option<Object>, Failure> {
        let last = self.served.leases.last(&self.place);
        match last.filter(|last| version == Some(last.resource_version())) {
            Some(last) => Ok(Some(last)),
            None => self.served.leases.read(&self.place, deadline).await,
        }
    }

    /// Refuses a write in the place of another object than the one that it names.
    fn check_named(&self, draft: &Draft, before: &Object) -> Result<(), Failure> {
        let uid = before.uid();
        if draft.uid.as_ref().is_some_and(|named| *named != uid) {
            let named = draft.uid.as_deref().unwrap_or_default();
            let why = format!("Precondition failed: UID in precondition: {named}, UID in object meta: {uid}");
            return Err(Failure::conflict(self.name(), &why));
        }
        if draft.resource_version.as_deref().is_some_and(|version| version != before.resource_version()) {
            return Err(Failure::modified(self.name()));
        }
        // An elector that was frozen beyond its lease releases what somebody else holds by then. No elector that writes
        // here has held it last.
        if draft.spec.is_release_of_elector() && before.is_held_by_candidate_of_library() {
            let why = format!("{} holds the lease, and has not released it", before.holder());
            return Err(Failure::conflict(self.name(), &why));
        }
        Ok(())
    }

    pub(crate) async fn update(self) -> Written {
        let sent = self.sent()?;
        if sent["metadata"]["name"] != self.name() {
            return Err(Failure::bad_request("the name of the object does not match the name on the URL"));
        }
        let draft = self.draft(&sent)?;
        let deadline = self.deadline(Some(&draft));
        let found = self.named(draft.resource_version.as_deref(), deadline).await?;
        let before = found.as_ref().filter(|object| !object.is_deleted());
        match before {
            // An API server would create the Lease anew. No elector wants a term to begin in this way.
            None if draft.uid.is_some() || draft.resource_version.is_some() => {
                return Err(Failure::conflict(self.name(), "the Lease was deleted"));
            }
            None => {}
            Some(_) if draft.resource_version.is_none() => return Err(Failure::without_version(self.name())),
            // Likewise, to one server.
            Some(before) if before.is_of(&draft) => return Ok((StatusCode::OK, before.clone())),
            Some(before) => self.check_named(&draft, before)?,
        }
        if let Some(same) = before.filter(|before| before.is(&draft)) {
            return Ok((StatusCode::OK, same.clone()));
        }
        let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        let written = self.write(&draft, found.as_ref(), deadline).await?;
        Ok((status, written.ok_or_else(|| Failure::modified(self.name()))?))
    }

    pub(crate) async fn patch(self) -> Written {
        let kind = PatchKind::of(content_type(self.headers))?;
        if kind == PatchKind::Apply && self.query.field_manager.is_none() {
            return Err(Failure::unprocessable(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value",
            ));
        }
        let patch = Patch::read(kind, &self.body)?;
        let deadline = self.deadline(None);
        for _ in 0..ATTEMPTS {
            if let Some(written) = self.patch_once(kind, &patch, deadline).await? {
                return Ok(written);
            }
        }
        Err(Failure::modified(self.name()))
    }

    async fn patch_once(
        &self,
        kind: PatchKind,
        patch: &Patch,
        deadline: Instant,
    ) -> Result<Option<(StatusCode, Object)>, Failure> {
        let found = self.named(patch.version(), deadline).await?;
        let before = found.as_ref().filter(|object| !object.is_deleted());
        let mut lease = match before {
            Some(before) => before.lease(),
            None if kind == PatchKind::Apply && patch.version().is_none() => patch::empty(self.name()),
            None => return Err(Failure::not_found(self.name())),
        };
        patch.apply(&mut lease, self.query.is_forced)?;
        if lease["metadata"]["name"] != self.name() {
            return Err(Failure::bad_request("the name of the object does not match the name on the URL"));
        }
        let draft = self.draft(&lease).map_err(Failure::in_patch)?;
        let Some(before) = before else {
            let created = self.write(&draft, found.as_ref(), deadline).await?;
            return Ok(created.map(|created| (StatusCode::CREATED, created)));
        };
        if !before.is_of(&draft) {
            self.check_named(&draft, before)?;
        }
        if before.is(&draft) {
            return Ok(Some((StatusCode::OK, before.clone())));
        }
        let names_version = || patch.names_version(before.lease(), self.query.is_forced);
        if !self.query.is_forced
            && let Err(refusal) = self.check_takeover(&draft, before)
            && !names_version()
        {
            return Err(refusal);
        }
        match self.write(&draft, Some(before), deadline).await? {
            None if names_version() => Err(Failure::modified(self.name())),
            written => Ok(written.map(|written| (StatusCode::OK, written))),
        }
    }

    /// Refuses to take a live lease from its holder by a write that names no version. An API server would let the last of
    /// two such writes win.
    fn check_takeover(&self, draft: &Draft, before: &Object) -> Result<(), Failure> {
        let holder = draft.spec.holder();
        if holder.is_empty() || holder == before.holder() || !self.served.leases.is_live(before) {
            return Ok(());
        }
        let why = format!(
            "{} has renewed its lease within the lease's duration; replace the Lease that you have read (kubectl get -o yaml, kubectl \
             replace), or use kubectl apply --server-side --force-conflicts (force=true)",
            before.holder()
        );
        Err(Failure::conflict(self.name(), &why))
    }

    /// Reads the options of a deletion. A precondition that cannot be read must not count as one that is not there.
    pub(crate) fn deletion(&self) -> Result<Value, Failure> {
        let options = match &*self.body {
            b"" => Value::Null,
            _ => self.sent()?,
        };
        let is_of_kind = |kind: &Value| kind.is_null() || ["", "DeleteOptions"].iter().any(|of| kind == of);
        if !(options.is_null() || options.is_object()) || !is_of_kind(&options["kind"]) {
            return Err(Failure::bad_request("the body of a deletion is no DeleteOptions"));
        }
        let preconditions = &options["preconditions"];
        let is_text = |field: &str| preconditions[field].is_null() || preconditions[field].is_string();
        if !(preconditions.is_null() || preconditions.is_object()) || !is_text("uid") || !is_text("resourceVersion") {
            return Err(Failure::bad_request("preconditions: uid and resourceVersion are strings"));
        }
        Ok(options)
    }

    /// Returns `true` if a client only wants to know what would come of a deletion.
    pub(crate) fn is_dry_run(&self, options: &Value) -> bool {
        self.query.is_dry_run || options["dryRun"].as_array().is_some_and(|values| !values.is_empty())
    }

    /// Deletes a Lease, with the options that [`deletion`](Self::deletion) has read.
    pub(crate) async fn delete(&self, options: &Value) -> Result<Value, Failure> {
        let deadline = self.deadline(None);
        for _ in 0..ATTEMPTS {
            let found = self.served.leases.read(&self.place, deadline).await?;
            let before = found.filter(|object| !object.is_deleted()).ok_or_else(|| Failure::not_found(self.name()))?;
            check_preconditions(&before, options)?;
            let write = before.deletion(Leases::now());
            if self.is_dry_run(options) || self.put(write, Some(&before), deadline).await?.is_some() {
                let details = json!({"name": self.name(), "group": GROUP, "kind": "leases", "uid": before.uid()});
                return Ok(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                }));
            }
        }
        Err(Failure::modified(self.name()))
    }
}

/// Refuses to delete another Lease, or another version of it, than the options name.
pub(crate) fn check_preconditions(before: &Object, options: &Value) -> Result<(), Failure> {
    for (field, is) in [("uid", &*before.uid()), ("resourceVersion", before.resource_version())] {
        if options["preconditions"][field].as_str().is_some_and(|wanted| wanted != is) {
            return Err(Failure::unmet(&before.place().name, field));
        }
    }
    Ok(())
}

/// A name that begins so, with five letters and digits behind, as an API server makes it.
fn generated(prefix: &str) -> String {
    const LETTERS: &[u8; 32] = b"bcdfghjklmnpqrstvwxz2456789bcdfg";
    let random = uuid::Uuid::new_v4().into_bytes();
    let letters = random.iter().take(5).map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    let longest = prefix.char_indices().take_while(|(at, _)| *at < 248).map(|(_, letter)| letter);
    longest.chain(letters).collect()
}

/// The answer to an event of an elector, which nobody keeps.
pub(crate) fn event(body: &[u8], headers: &HeaderMap) -> Result<Value, Failure> {
    let event = object(body, content_type(headers), false)?;
    if event.is_object() { Ok(event) } else { Err(Failure::undecodable("the body", "it is no object")) }
}
