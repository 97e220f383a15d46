//! The environment variables that tell a command of its term.

/// The data of a process from which the variables of its terms are made.
#[derive(Debug)]
pub(super) struct Variables {
    pub(super) identity: String,
    /// The URL of the lock, or those of the slots' locks.
    pub(super) locks: Vec<String>,
}

impl Variables {
    pub(super) fn of_term(&self, fencing_token: u64, slot: Option<u32>) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("LEADERELECTION_IDENTITY", self.identity.clone()),
            ("LEADERELECTION_FENCING_TOKEN", fencing_token.to_string()),
            ("LEADERELECTION_LOCK", self.lock(slot)),
        ];
        variables.extend(slot.map(|slot| ("LEADERELECTION_SLOT", slot.to_string())));
        variables
    }

    /// The URL of the lock that is led, which is that of the slot if there are slots.
    fn lock(&self, slot: Option<u32>) -> String {
        let index = usize::try_from(slot.unwrap_or_default()).unwrap_or(usize::MAX);
        self.locks.get(index).cloned().unwrap_or_default()
    }
}
