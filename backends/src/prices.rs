//! The list prices of requests to object stores.

use std::time::Duration;

use crate::url::Location;

/// A twelfth of a year.
pub const MONTH: Duration = Duration::from_secs(2_629_746);

/// List prices in US dollars, without free tiers, discounts and traffic.
///
/// ```
/// use leaderelection_backends::prices::Prices;
///
/// // A million writes and ten million reads.
/// assert_eq!(Prices::S3.dollars(1e6, 1e7), 9.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prices {
    /// The service, the class of storage, and the place.
    pub service: &'static str,
    /// The date of the price list.
    pub as_of: &'static str,
    /// The page that has the prices.
    pub source: &'static str,
    /// The price of a million writes. A listing has the price of a write, and a deletion is free.
    pub writes: f64,
    /// The price of a million reads.
    pub reads: f64,
}

impl Prices {
    /// Amazon S3.
    pub const S3: Self = Self {
        service: "Amazon S3 Standard, us-east-1",
        as_of: "November 2026",
        source: "https://aws.amazon.com/s3/pricing/",
        writes: 5.0,
        reads: 0.4,
    };
    /// A directory bucket of Amazon S3, by the first example of the page. Every byte costs something too: of a lock's
    /// records, less than a cent a month. No page was found that says what the opening of a session costs; at the price of a
    /// write, a month of them costs two cents for each process.
    pub const S3_EXPRESS: Self = Self {
        service: "Amazon S3 Express One Zone, us-east-1",
        as_of: "a stored copy without a date, read in November 2026",
        source: "https://aws.amazon.com/s3/faqs/",
        writes: 1.13,
        reads: 0.03,
    };
    /// Google Cloud Storage.
    pub const GCS: Self = Self {
        service: "Google Cloud Storage Standard, one region",
        as_of: "September 2026",
        source: "https://cloud.google.com/storage/pricing",
        writes: 5.0,
        reads: 0.4,
    };
    /// Azure Blob Storage.
    pub const AZURE: Self = Self {
        service: "Azure Blob Storage hot LRS, East US",
        as_of: "May 2026",
        source: "https://azure.microsoft.com/pricing/details/storage/blobs/",
        writes: 5.5,
        reads: 0.44,
    };

    /// Returns the list prices of the store at `location`; `None` if no list exists. A store on this machine costs
    /// nothing, and has no list.
    #[must_use]
    pub fn of(location: &Location) -> Option<Self> {
        match location {
            #[cfg(feature = "s3")]
            Location::S3(location) => {
                let is_amazons = location.endpoint.as_ref().is_none_or(|endpoint| endpoint.contains("amazonaws.com"));
                is_amazons.then_some(if location.is_directory() { Self::S3_EXPRESS } else { Self::S3 })
            }
            #[cfg(feature = "gcs")]
            Location::Gcs(_) => Some(Self::GCS),
            #[cfg(feature = "azure")]
            Location::Azure(location) => location.container_url.contains(".windows.net").then_some(Self::AZURE),
            _ => None,
        }
    }

    /// Returns the price of so many writes and reads, in dollars. Listings count as writes.
    #[must_use]
    pub fn dollars(&self, writes: f64, reads: f64) -> f64 {
        (writes * self.writes + reads * self.reads) / 1e6
    }
}
