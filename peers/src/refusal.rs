//! The reasons for which a follower gets no messages from the address in the record.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

/// The reason for which a follower gets no messages from the address in the record. The follower then asks the store,
/// and tries the address again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The address is no URL of a peer.
    #[error("the address must be an https URL without a user name; correct what the leader advertises")]
    BadAddress,
    /// The address begins with `http://`.
    #[error("plain http is not allowed; let the leader advertise https, or allow plain http with a shared key")]
    PlainHttp,
    /// The address begins with `https://`, and no certificate authority is configured.
    #[error("there is no certificate authority for https; configure the one that has signed the peers' certificates")]
    NoAuthority,
    /// The host is outside the allow-list.
    #[error("{host} is outside the allow-list; add its network or its name")]
    NotAllowed {
        /// The host in the address, or what it stands for.
        host: String,
    },
    /// The address is that of this machine, of its link or of a cloud's metadata.
    #[error(
        "{address} is a loopback, link-local, metadata or multicast address; allow exactly this address if it is intended"
    )]
    SpecialAddress {
        /// The address.
        address: IpAddr,
    },
    /// The host has no address.
    #[error("the host has no address: {problem}")]
    Unresolved {
        /// The resolver's error.
        problem: String,
    },
    /// There was no connection, or it was lost.
    #[error("the peer cannot be reached: {problem}")]
    Unreachable {
        /// The system's error.
        problem: String,
    },
    /// There was no answer in time.
    #[error("the peer has not answered within {0:?}")]
    Timeout(Duration),
    /// The stream has said nothing for two retry periods of the leader.
    #[error("the peer has said nothing for {0:?}")]
    Silent(Duration),
    /// The peer ended the stream without saying that the term is over.
    #[error("the peer has ended the stream in the middle of its term; it was killed, or cut off")]
    Closed,
    /// The certificate is for another name.
    #[error("the peer's certificate is for another name; correct the certificate, or the expected name")]
    WrongName,
    /// The certificate has expired, or is not valid yet.
    #[error("the peer's certificate has expired, or is not valid yet; renew it, or correct the clock")]
    Expired,
    /// The certificate is signed by another authority.
    #[error("the peer's certificate is signed by another authority; correct the certificate, or the authority")]
    UnknownIssuer,
    /// The peer demands a certificate of this process, or does not accept it.
    #[error(
        "the peer rejected this process's certificate, or got none; configure one that the peers' authority has signed"
    )]
    ClientCertificate,
    /// Another problem with TLS.
    #[error("TLS failed: {problem}")]
    Tls {
        /// The problem.
        problem: String,
    },
    /// The peer sent a redirect, which is never followed.
    #[error("the peer answered with a redirect, which is never followed; let the leader advertise the target")]
    Redirect,
    /// The peer does not lead.
    #[error("the peer does not lead")]
    NotLeading,
    /// The peer has no such lock.
    #[error("the peer does not serve this lock; attach its elector there, under the same name")]
    UnknownLock,
    /// The peer has reached its limit of streams.
    #[error("the peer has reached its limit of streams")]
    Busy,
    /// The peer answered with another status.
    #[error("the peer answered with status {0}")]
    Status(u16),
    /// The answer is not that of a peer.
    #[error("the answer is not that of a peer ({problem}); something else serves the address")]
    NotAPeer {
        /// The difference.
        problem: String,
    },
    /// The answer is larger than any answer of a peer.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The peer has another shared key, or none: it does not accept the code of a question, or the code of its answer is
    /// wrong.
    #[error("the keys of the two differ; give all candidates the same key")]
    WrongKey,
    /// The answer was made for another request, or for another place in the stream.
    #[error("the answer was made for another request: it was recorded, and played again")]
    Replayed,
    /// The peer leads another term than that which the store shows.
    #[error("the peer reports another term than the store")]
    OtherTerm,
}

impl Refusal {
    /// All names, for metrics.
    pub(crate) const NAMES: [&'static str; 25] = [
        "bad_address",
        "plain_http",
        "no_authority",
        "not_allowed",
        "special_address",
        "unresolved",
        "unreachable",
        "timeout",
        "silent",
        "closed",
        "wrong_name",
        "expired",
        "unknown_issuer",
        "client_certificate",
        "tls",
        "redirect",
        "not_leading",
        "unknown_lock",
        "busy",
        "status",
        "not_a_peer",
        "too_large",
        "wrong_key",
        "replayed",
        "other_term",
    ];

    /// The name in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::BadAddress => "bad_address",
            Self::PlainHttp => "plain_http",
            Self::NoAuthority => "no_authority",
            Self::NotAllowed { .. } => "not_allowed",
            Self::SpecialAddress { .. } => "special_address",
            Self::Unresolved { .. } => "unresolved",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout(_) => "timeout",
            Self::Silent(_) => "silent",
            Self::Closed => "closed",
            Self::WrongName => "wrong_name",
            Self::Expired => "expired",
            Self::UnknownIssuer => "unknown_issuer",
            Self::ClientCertificate => "client_certificate",
            Self::Tls { .. } => "tls",
            Self::Redirect => "redirect",
            Self::NotLeading => "not_leading",
            Self::UnknownLock => "unknown_lock",
            Self::Busy => "busy",
            Self::Status(_) => "status",
            Self::NotAPeer { .. } => "not_a_peer",
            Self::TooLarge(_) => "too_large",
            Self::WrongKey => "wrong_key",
            Self::Replayed => "replayed",
            Self::OtherTerm => "other_term",
        }
    }

    /// Returns `true` if the reason is a normal event of an election: a leader ends, or has just begun.
    pub(crate) fn is_normal(&self) -> bool {
        matches!(self, Self::NotLeading | Self::Closed | Self::OtherTerm)
    }

    pub(crate) fn not_a_peer(problem: impl Into<String>) -> Self {
        Self::NotAPeer { problem: problem.into() }
    }

    /// The reason behind an error in the middle of a stream. The streams of a process that is killed end there.
    pub(crate) fn of_stream(error: &reqwest::Error) -> Self {
        let mut kinds = causes(error).filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
        match kinds.any(|kind| matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)) {
            true => Self::Closed,
            false => Self::of(error),
        }
    }

    /// The reason behind an error of the client.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let deepest = || causes(error).last().map(ToString::to_string).unwrap_or_default();
        causes(error).find_map(tls_error).map_or_else(|| Self::Unreachable { problem: deepest() }, Self::of_tls)
    }

    fn of_tls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(problem) => match problem {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Self::WrongName,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::Expired,
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
                problem => Self::Tls { problem: problem.to_string() },
            },
            rustls::Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnknownCA
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::DecryptError,
            ) => Self::ClientCertificate,
            error => Self::Tls { problem: error.to_string() },
        }
    }
}

/// Returns an error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The error of TLS in an error, if it is one. An error of I/O hides it.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return io.get_ref().and_then(|inner| tls_error(inner));
    }
    error.downcast_ref()
}
