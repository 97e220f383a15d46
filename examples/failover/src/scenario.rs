//! The acts: a leader crashes, hands over, or is frozen, and the effects are measured.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use console::style;
use rustix::process::Signal;

use crate::stage::Stage;
use crate::world::{Leader, StaleAppend, State, World};

/// The results of the acts.
#[derive(Debug)]
pub struct Findings {
    pub crash: Takeover,
    pub handover: Duration,
    pub freeze: Freeze,
}

/// The takeover of a lease that expired.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    pub after_expiry: Duration,
    /// `true` if the lease was taken while it was certainly unexpired, which must never happen.
    pub too_early: bool,
}

#[derive(Debug)]
pub struct Freeze {
    pub takeover: Takeover,
    pub lasted: Duration,
    pub thaw: Thaw,
    /// The number of entries with the frozen leader's token that the log accepted after the freeze.
    pub entries_after: usize,
}

/// The state that a frozen leader found when it went on.
#[derive(Clone, Debug)]
pub enum Thaw {
    /// The candidate still believed that it leads.
    Leads,
    /// The candidate knew that it does not lead, and has stopped its work. The value is the log's answer to the token
    /// of the candidate's last term.
    Stopped(StaleAppend),
}

/// The number of times that an act is played if a busy machine causes an unplanned change of leaders.
const TRIES: usize = 3;

const UNSTEADY: &str = "leaders lose their lease by themselves all the time; give slower timings, such as --lease 15s \
                        --renew 10s --retry 2s";

pub async fn play(stage: &mut Stage) -> anyhow::Result<Findings> {
    stage.fill_slots()?;
    let crash = crash(stage).await?;
    stage.fill_slots()?;
    let handover = handover(stage).await?;
    stage.fill_slots()?;
    let freeze = freeze(stage).await?;
    stage.stable_leader().await?;
    stage.say("the end: all are told to stop");
    stage.clear().await?;
    Ok(Findings { crash, handover, freeze })
}

/// Kills the leader without a warning. The lease must expire, and then another candidate takes the lease at once.
async fn crash(stage: &mut Stage) -> anyhow::Result<Takeover> {
    for _ in 0..TRIES {
        let leader = stage.stable_leader().await?;
        stage.say(format!("{}: {}, the leader, is gone without a word", command("-9", &leader), leader.name));
        stage.signal(leader.slot, Signal::KILL)?;
        stage.until(|world| gone(world, &leader), "the killed process is still there").await?;
        if let Some((_, takeover)) = expect_takeover(stage, &leader).await? {
            return Ok(takeover);
        }
        stage.fill_slots()?;
    }
    bail!("{UNSTEADY}")
}

/// Stops the leader gracefully. The leader ends its work and releases the lease, so no candidate waits for the expiry.
async fn handover(stage: &mut Stage) -> anyhow::Result<Duration> {
    for _ in 0..TRIES {
        let leader = stage.stable_leader().await?;
        stage.say(format!("{}: {} ends its work and releases the lease", command("-TERM", &leader), leader.name));
        let told = Instant::now();
        stage.signal(leader.slot, Signal::TERM)?;
        let gracefully =
            stage.until(|world| gone(world, &leader), "the leader was told to stop and is still there").await?;
        ensure!(gracefully, "{} did not end gracefully when it was told to stop", leader.name);
        let successor = stage.until(|world| successor(world, &leader), "nobody has taken over").await?;
        if successor.began < stage.world.terms[&leader.token].expires() {
            let handover = successor.began.saturating_duration_since(told);
            stage.say(format!("{} leads, {} after the signal", style(successor.name).green().bold(), ms(handover)));
            return Ok(handover);
        }
        stage.say(format!("{} could not release its lease in time; once more", leader.name));
        stage.fill_slots()?;
    }
    bail!("{UNSTEADY}")
}

/// Freezes the leader past its lease, and lets the process go on when another candidate leads and has worked.
async fn freeze(stage: &mut Stage) -> anyhow::Result<Freeze> {
    for _ in 0..TRIES {
        let leader = stage.stable_leader().await?;
        stage.say(format!("{}: {} is frozen, and does not know it", command("-STOP", &leader), leader.name));
        let froze = Instant::now();
        stage.signal(leader.slot, Signal::STOP)?;
        let Some((successor, takeover)) = expect_takeover(stage, &leader).await? else {
            stage.signal(leader.slot, Signal::CONT)?;
            continue;
        };
        // On a busy machine, the first leader after the frozen one may lose its lease before it has worked.
        let at_work = |world: &World| {
            let mut later = world.terms.range(successor.token..).map(|(&token, _)| world.entries(token));
            later.any(|entries| entries >= 4).then_some(())
        };
        stage.until(at_work, "the new leader does no work").await?;

        let before = entries_of(stage, leader.token).await?;
        stage.say(format!("{}: {} goes on where it was", command("-CONT", &leader), leader.name));
        let lasted = froze.elapsed();
        stage.signal(leader.slot, Signal::CONT)?;
        let thaw = stage.until(|world| thaw(world, &leader), "the frozen leader does not say what it found").await?;
        match &thaw {
            Thaw::Leads => stage.say(format!("{} still believes to lead", leader.name)),
            Thaw::Stopped(stale) => {
                stage.say(format!("{} knows that it does not lead any more, and stops", leader.name));
                stage.say(format!("as a test it writes all the same: {}", stale.answer));
            }
        }
        let entries_after = entries_of(stage, leader.token).await?.saturating_sub(before);
        return Ok(Freeze { takeover, lasted, thaw, entries_after });
    }
    bail!("{UNSTEADY}")
}

async fn entries_of(stage: &Stage, token: u64) -> anyhow::Result<usize> {
    let entries = stage.site.log().entries().await?;
    Ok(entries.iter().filter(|entry| entry.token == token).count())
}

#[derive(Debug)]
struct Successor {
    token: u64,
    name: String,
    began: Instant,
}

fn successor(world: &World, leader: &Leader) -> Option<Successor> {
    let (&token, term) = world.terms.range(leader.token + 1..).next()?;
    Some(Successor { token, name: term.holder.clone(), began: term.began })
}

/// Waits until another candidate leads. Returns `None` if the lease did not expire, but was released just before.
async fn expect_takeover(stage: &mut Stage, leader: &Leader) -> anyhow::Result<Option<(Successor, Takeover)>> {
    let successor = stage.until(|world| successor(world, leader), "nobody has taken over").await?;
    let lost = &stage.world.terms[&leader.token];
    if lost.released {
        stage.say(format!("{} had just given up the lease by itself; once more", leader.name));
        return Ok(None);
    }
    let after_expiry = successor.began.saturating_duration_since(lost.expires());
    let too_early = successor.began < lost.earliest_expiry();
    stage.say(format!(
        "{} leads, {} after the lease had expired",
        style(&successor.name).green().bold(),
        ms(after_expiry)
    ));
    Ok(Some((successor, Takeover { after_expiry, too_early })))
}

fn thaw(world: &World, leader: &Leader) -> Option<Thaw> {
    let candidate = &world.candidates[leader.slot];
    match (candidate.thawed?, candidate.state) {
        (true, _) => Some(Thaw::Leads),
        (false, State::Leading { token }) if token == leader.token => None,
        (false, _) => candidate.stale_append.clone().map(Thaw::Stopped),
    }
}

/// Returns `true` if the leader's process ended gracefully, and `None` if the process still runs.
fn gone(world: &World, leader: &Leader) -> Option<bool> {
    match world.candidates[leader.slot].state {
        State::Gone { gracefully } => Some(gracefully),
        _ => None,
    }
}

/// Returns the command that sends the same signal by hand.
fn command(signal: &str, leader: &Leader) -> impl Display + use<> {
    style(format!("kill {signal} {}", leader.pid)).bold()
}

pub fn ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
