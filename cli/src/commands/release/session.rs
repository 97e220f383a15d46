//! The forced end of a whole session.

use std::io::Write as _;
use std::time::Duration;

use leaderelection::lock::TimeLimit;
use serde_json::json;

use crate::commands::intervene::confirm::Confirmation;
use crate::commands::intervene::{self, LockState};
use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;
use crate::lock::view::SessionRow;
use crate::output::escape::escape;
use crate::output::{BOLD, Format, Output};

/// The longest time for one request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of locks that the question names one by one.
const NAMED: usize = 20;

/// Ends the session, after the output has named the locks that it leads.
pub(super) async fn end(
    url: &LockUrl,
    id: &str,
    seen: &LockState,
    (confirmation, format): (Confirmation, Format),
    output: &Output,
) -> Result<Exit, Failure> {
    output.progress(format_args!("reading the locks of the session {id}"));
    let limit = TimeLimit::new(PATIENCE).of_setting("for one request");
    let target = url.target(Some(limit)).await?;
    let locks = target.locks_of_session().await?;
    output.done();
    let locks: Vec<String> = locks.iter().map(|lock| url.at(lock.key()).to_string()).collect();
    if let Some(holder) = seen.observed.holder() {
        output.say(format_args!("the session {id} of {holder:?} leads {}", in_words(&locks)));
        let question = format!(
            "If {holder:?} is alive, it leads these locks until its next renewal, while other sessions take them at once, and \
             two leaders of each are possible. {holder:?} then opens another session. End the session?"
        );
        if !confirmation.of(&question, output)? {
            output.say("nothing was changed");
            return Ok(Exit::Held);
        }
    }
    let intervention = intervene::within(url, target.force_release(&seen.record)).await?;
    let [before, after] =
        [&intervention.before, &intervention.after].map(|record| SessionRow::of_record(url, id, record));
    let changed = before != after;
    if format == Format::Json {
        output.json(&json!({ "before": before, "after": after, "changed": changed, "locks": locks }))?;
        return Ok(Exit::Done);
    }
    let next = match changed {
        true => "the session has ended; the next sessions that scan take its locks, with larger fencing tokens",
        false => "the session had already ended; nothing was changed",
    };
    let mut out = output.stdout();
    writeln!(out, "{BOLD}{url}{BOLD:#}")?;
    writeln!(out, "{}", escape(next))?;
    out.flush()?;
    Ok(Exit::Done)
}

fn in_words(locks: &[String]) -> String {
    let count = match locks.len() {
        0 => return "no lock".to_owned(),
        1 => "1 lock".to_owned(),
        count => format!("{count} locks"),
    };
    let named = locks.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match locks.len().saturating_sub(NAMED) {
        0 => format!("{count}: {named}"),
        more => format!("{count}: {named}, and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_locks_are_counted_and_some_are_named() {
        let locks: Vec<_> = (0..NAMED + 2).map(|lock| lock.to_string()).collect();
        assert_eq!(in_words(&[]), "no lock");
        assert_eq!(in_words(&locks[..1]), "1 lock: 0");
        assert_eq!(in_words(&locks[..2]), "2 locks: 0, 1");
        assert!(in_words(&locks).ends_with("18, 19, and 2 more"), "{}", in_words(&locks));
    }
}
