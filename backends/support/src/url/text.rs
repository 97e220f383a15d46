//! The forms that all locations have in common: in a configuration file, a location has the form of its URL.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::{Error as _, Serializer};

use super::{Place, UrlError};

/// Reads a location from its URL. The error is that of `FromStr`, which does not repeat the URL.
struct UrlVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = UrlError>> Visitor<'_> for UrlVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the URL of a lock")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Reads a location from the URL in a configuration file.
///
/// # Errors
///
/// Those of the location's `FromStr`.
pub fn deserialize<'de, T: FromStr<Err = UrlError>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(UrlVisitor(PhantomData))
}

/// Writes a location as its URL.
///
/// # Errors
///
/// If the location has a secret. A text with the secret would reveal it, and a text without it would name another location.
pub fn serialize<T: Place, S: Serializer>(location: &T, serializer: S) -> Result<S::Ok, S::Error> {
    match location.secret() {
        Some(secret) => Err(S::Error::custom(format!("{location} has {secret}"))),
        None => serializer.collect_str(location),
    }
}

/// Implements `Serialize` and `Deserialize` for a [`Place`]: as its URL.
#[macro_export]
macro_rules! text_of_url {
    ($location:ty) => {
        impl<'de> $crate::serde::Deserialize<'de> for $location {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::url::deserialize(deserializer)
            }
        }

        /// Fails if the location has a secret.
        impl $crate::serde::Serialize for $location {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::url::serialize(self, serializer)
            }
        }
    };
}

/// Implements what a location has of its [`Table`](crate::url::Table): `FromStr`, `Display`, `with`, and serde's traits.
#[macro_export]
macro_rules! url_of_table {
    ($location:ty) => {
        $crate::text_of_url!($location);

        impl ::std::str::FromStr for $location {
            type Err = $crate::url::UrlError;

            fn from_str(text: &str) -> Result<Self, $crate::url::UrlError> {
                $crate::url::parse(text)
            }
        }

        impl ::std::fmt::Display for $location {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::url::show(self, f)
            }
        }

        impl $location {
            /// Returns the same place with a parameter of its URL, such as `with("endpoint", "http://127.0.0.1:8333")`.
            ///
            /// # Errors
            ///
            /// If the URL has no such parameter, or if the value is invalid.
            pub fn with(self, parameter: &str, value: &str) -> Result<Self, $crate::url::UrlError> {
                $crate::url::with(self, parameter, value)
            }
        }
    };
}
