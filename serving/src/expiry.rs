//! The end of a certificate: the metric that tells it, and the warning before it.
//!
//! The servers of `leaderelect` use this too. This module is no part of the interface that versions keep.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::gauge;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const EXPIRY: &str = "leader_election_certificate_expiry_timestamp_seconds";

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest time before the end in which the log warns.
const LONGEST_WARNING: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The part of a certificate's validity in which the log warns. Programs that renew certificates begin at a third, so by
/// then they have failed for long.
const WARNING_PART: u32 = 10;

/// The time in which a certificate is valid, as times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    begins: Duration,
    ends: Duration,
}

impl Validity {
    /// Returns the validity of the certificate in a chain that ends first; `None` if none of them tells.
    #[must_use]
    pub fn of_chain(chain: &[CertificateDer<'_>]) -> Option<Self> {
        chain.iter().filter_map(Self::of).min_by_key(|validity| validity.ends)
    }

    /// Asks the verifier, which checks the time before anything else: it alone reads certificates here.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let verdict = |time| {
            let (roots, now) = (RootCertStore::empty(), UnixTime::since_unix_epoch(time));
            match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, &[]) {
                Err(Error::InvalidCertificate(problem)) => Some(problem),
                _ => None,
            }
        };
        let Some(CertificateError::ExpiredContext { not_after, .. }) = verdict(Duration::MAX) else { return None };
        let begins = match verdict(Duration::ZERO) {
            Some(CertificateError::NotValidYetContext { not_before, .. }) => not_before.as_secs(),
            _ => 0,
        };
        Some(Self { begins: Duration::from_secs(begins), ends: Duration::from_secs(not_after.as_secs()) })
    }

    /// Returns the time that is left if the log is to warn now, and the time until the next poll. The last warning was so
    /// long ago.
    fn check(&self, now: Duration, last_warning: Option<Duration>) -> (Option<Duration>, Duration) {
        let warning = self.ends.saturating_sub(self.begins) / WARNING_PART;
        let due = self.ends.saturating_sub(warning.min(LONGEST_WARNING));
        let is_due = now >= due && last_warning.is_none_or(|last| last >= DAY);
        let pause = if now < due { HOUR.min(due - now) } else { HOUR };
        (is_due.then(|| self.ends.saturating_sub(now)), pause)
    }
}

/// Tells of the end of a certificate that this process shows for the lock `name`: in the metrics, and in the log when the
/// end is near, once a day and whenever the certificate is read. Ends when nobody reads the certificate any more.
pub async fn tell(certificate: &'static str, name: String, mut validity: watch::Receiver<Option<Validity>>) {
    let mut warned: Option<Instant> = None;
    loop {
        let known = *validity.borrow_and_update();
        let pause = known.map_or(HOUR, |validity| {
            gauge!(EXPIRY, "name" => name.clone(), "certificate" => certificate).set(validity.ends.as_secs_f64());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (left, pause) = validity.check(now, warned.map(|warned| warned.elapsed()));
            if let Some(left) = left {
                match spell(left) {
                    Some(left) => {
                        tracing::warn!(certificate, name, left, "the certificate expires soon; renew its file")
                    }
                    None => tracing::warn!(
                        certificate,
                        name,
                        "the certificate has expired, or expires within the hour; renew its file"
                    ),
                }
                warned = Some(Instant::now());
            }
            pause
        });
        tokio::select! {
            changed = validity.changed() => match changed {
                Ok(()) => warned = None,
                Err(_) => return,
            },
            () = sleep(pause) => {}
        }
    }
}

/// The time that is left; `None` if it is less than an hour.
fn spell(left: Duration) -> Option<String> {
    match left.as_secs() / HOUR.as_secs() {
        0 => None,
        hours @ 1..48 => Some(format!("{hours} hours")),
        hours => Some(format!("{} days", hours / 24)),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// The first of January 2020, and of 2021.
    const YEAR_2020: u64 = 1_577_836_800;
    const YEAR_2021: u64 = 1_609_459_200;

    fn certificate(from: i32, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn the_certificate_that_ends_first_counts() {
        let validity = |from, until| Validity { begins: Duration::from_secs(from), ends: Duration::from_secs(until) };
        let (early, late) = (certificate(2020, 2021), certificate(2020, 9999));
        let ends_first = Some(validity(YEAR_2020, YEAR_2021));
        assert_eq!(Validity::of_chain(&[late.clone(), early.clone()]), ends_first);
        assert_eq!(Validity::of_chain(&[early, late]), ends_first);
        assert_eq!(Validity::of_chain(&[CertificateDer::from(vec![0x30, 0])]), None);
        assert_eq!(Validity::of_chain(&[]), None);
    }

    #[test]
    fn the_time_that_is_left_is_spelled_in_hours_and_then_in_days() {
        let spelled = [HOUR - Duration::from_secs(1), HOUR, HOUR * 47, DAY * 2, DAY * 14].map(spell);
        assert_eq!(
            spelled.each_ref().map(Option::as_deref),
            [None, Some("1 hours"), Some("47 hours"), Some("2 days"), Some("14 days")]
        );
    }

    #[test]
    fn the_log_warns_daily_in_the_last_tenth_of_a_certificate() {
        for (length, before_the_end) in [(365 * DAY, 14 * DAY), (90 * DAY, 9 * DAY), (10 * HOUR, HOUR)] {
            let validity = Validity { begins: DAY, ends: DAY + length };
            let due = validity.ends - before_the_end;
            let minute = Duration::from_secs(60);
            assert_eq!(validity.check(due - minute, None), (None, minute), "{length:?}");
            assert_eq!(validity.check(due, None), (Some(before_the_end), HOUR), "{length:?}");
            assert_eq!(validity.check(due + minute, Some(minute)), (None, HOUR), "{length:?}");
            assert_eq!(validity.check(due, Some(DAY)), (Some(before_the_end), HOUR), "{length:?}");
            assert_eq!(validity.check(validity.ends + DAY, None), (Some(Duration::ZERO), HOUR), "{length:?}");
        }
    }
}
