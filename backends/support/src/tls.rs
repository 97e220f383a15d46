//! The provider of TLS, which is the program's choice.

use leaderelection::{StoreError, StoreErrorKind};
use rustls::crypto::CryptoProvider;

/// Checks that clients have a provider of TLS, because an SDK panics without one. `is_built_in` tells whether a feature of the
/// crate called `name` has brought one.
///
/// # Errors
///
/// [`StoreErrorKind::Fatal`] if neither the features nor the program have chosen a provider.
pub fn check_provider(is_built_in: bool, name: &str) -> Result<(), StoreError> {
    if is_built_in || CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let message = format!(
        "TLS has no provider: enable the feature aws-lc-rs of {name}, or call rustls::crypto::CryptoProvider::install_default at \
         the start of the program"
    );
    Err(StoreError::new(StoreErrorKind::Fatal, message))
}
