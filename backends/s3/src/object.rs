//! An object in an answer: its version, its content and its age.

use std::time::SystemTime;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use leaderelection::implement::{MAX_BODY_BYTES, Version, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{self, Body, Words};

use crate::date::AnswerDate;

/// Returns the version in a successful answer, or an error of `kind` if the answer has none.
pub(crate) fn version(etag: Option<String>, kind: StoreErrorKind, object: &str) -> Result<Version, StoreError> {
    etag.map(Version::new).ok_or_else(|| request::without_version(kind, object, "ETag"))
}

/// Receives an object.
pub(crate) async fn read(
    object: &str,
    output: GetObjectOutput,
    date: &AnswerDate,
) -> Result<VersionedObject, StoreError> {
    let modified = output.last_modified.and_then(|modified| SystemTime::try_from(modified).ok());
    let age = request::answer::age(date.header().map(String::as_str), modified);
    let version = version(output.e_tag, StoreErrorKind::Fatal, object)?;
    let length = output.content_length.and_then(|length| u64::try_from(length).ok());
    let (mut body, mut stream) = (Body::new(object, MAX_BODY_BYTES, length)?, output.body);
    while let Some(chunk) = stream.next().await {
        body.push(&chunk.map_err(|error| request::broke_off(object, Words::of_error(&error)))?)?;
    }
    Ok(VersionedObject::new(body.finish(), version).with_age(age))
}
