//! The targets.

mod answers;
mod duration;
mod election;
mod fence;
mod file;
mod kubeconfig;
mod lease;
mod pages;
mod patch;
mod peer_feed;
mod peers;
mod record;
mod sequenced;
mod url;

use crate::target::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::new("record", record::record),
    Target::new("session", record::session),
    Target::new("times", record::times),
    Target::new("duration", duration::duration),
    Target::new("url", url::url),
    Target::new("lease", lease::lease),
    Target::new("kubeconfig", kubeconfig::kubeconfig),
    Target::new("s3", answers::s3),
    Target::new("gcs", answers::gcs),
    Target::new("azure", answers::azure),
    Target::new("peers", peers::peers),
    Target::new("sequenced", sequenced::sequenced),
    Target::new("file", file::file),
    Target::new("fence", fence::fence),
    Target::new("pages", pages::pages),
    Target::new("patch", patch::patch),
    Target::new("election", election::election),
    Target::new("peer_feed", peer_feed::peer_feed),
];
