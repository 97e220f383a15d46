//! The prices of requests.

use leaderelection_backends::url::Location;

/// List prices in US dollars for a million requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prices {
    pub(super) what: &'static str,
    /// The date of the price list. docs/operations.md names the source.
    pub(super) as_of: &'static str,
    pub(super) writes: f64,
    pub(super) reads: f64,
}

/// The prices without free tiers, discounts and traffic.
#[cfg(feature = "s3")]
const S3: Prices = Prices { what: "Amazon S3 Standard, us-east-1", as_of: "November 2026", writes: 5.0, reads: 0.4 };
#[cfg(feature = "gcs")]
const GCS: Prices =
    Prices { what: "Google Cloud Storage Standard, one region", as_of: "September 2026", writes: 5.0, reads: 0.4 };
#[cfg(feature = "azure")]
const AZURE: Prices =
    Prices { what: "Azure Blob Storage hot LRS, East US", as_of: "May 2026", writes: 5.5, reads: 0.44 };

/// The list prices of a store; `None` if no list exists.
pub(super) fn list_prices(location: &Location) -> Option<Prices> {
    match location {
        #[cfg(feature = "s3")]
        Location::S3(location) => {
            location.endpoint.as_ref().is_none_or(|endpoint| endpoint.contains("amazonaws.com")).then_some(S3)
        }
        #[cfg(feature = "gcs")]
        Location::Gcs(_) => Some(GCS),
        #[cfg(feature = "azure")]
        Location::Azure(location) => location.container_url.contains(".windows.net").then_some(AZURE),
        _ => None,
    }
}

/// Returns `true` if requests to this store cost nothing.
pub(super) fn is_local(location: &Location) -> bool {
    match location {
        #[cfg(unix)]
        Location::File(_) => true,
        Location::Memory(_) => true,
        _ => false,
    }
}
