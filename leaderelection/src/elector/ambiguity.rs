//! Which writes with an unknown outcome turned out to have landed. For the metrics only.

use super::request::{About, Write};
use crate::election::Answer;
use crate::store::StoreErrorKind;

/// As many as the state machine remembers.
const MOST: usize = 16;

/// What became of a write whose outcome was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    Landed,
    Lost,
    /// The term ended before anybody could tell.
    Unknown,
}

impl Resolution {
    pub(super) const ALL: [Self; 3] = [Self::Landed, Self::Lost, Self::Unknown];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// The writes whose outcome is unknown. All replace the same version: at most one of them lands.
#[derive(Debug, Default)]
pub(super) struct Ambiguity(Vec<Write>);

impl Ambiguity {
    /// Takes an answer; returns how many writes it resolves each way.
    pub(super) fn learn(&mut self, about: &About, answer: &Answer) -> [(Resolution, u64); 2] {
        let mut landed = 0;
        let resolved = match answer {
            Answer::Written(Err(failure)) if failure.kind == StoreErrorKind::Ambiguous => {
                if self.0.len() < MOST {
                    self.0.extend(about.write.clone());
                }
                false
            }
            Answer::Read(Ok(found)) => {
                let write_id = found.as_ref().and_then(|found| found.record.write_id.as_deref());
                let version = found.as_ref().map(|found| &found.version);
                landed = u64::from(self.0.iter().any(|write| write.id.as_deref() == write_id && write_id.is_some()));
                landed == 1 || self.0.iter().any(|write| write.replaces.as_ref() != version)
            }
            Answer::Written(Ok(_)) => true,
            Answer::Read(Err(_)) | Answer::Written(Err(_)) => false,
        };
        let lost = if resolved { self.0.drain(..).count() as u64 - landed } else { 0 };
        [(Resolution::Landed, landed), (Resolution::Lost, lost)]
    }

    /// The term is over.
    pub(super) fn give_up(&mut self) -> [(Resolution, u64); 1] {
        [(Resolution::Unknown, self.0.drain(..).count() as u64)]
    }
}
