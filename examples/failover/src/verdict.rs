//! The final checks of the demonstration.

use std::fmt;

use leaderelection_arena::fenced_log::Entry;
use leaderelection_arena::verdict::check_log;

use crate::scenario::{Findings, Takeover, Thaw, ms};
use crate::world::World;

#[derive(Debug)]
pub struct Verdict {
    figures: Vec<(&'static str, String)>,
    problems: Vec<String>,
}

impl Verdict {
    pub fn new(world: &World, log: &[Entry], findings: &anyhow::Result<Findings>) -> Self {
        let mut problems = check_log(log, &world.evidence);
        let tokens: Vec<String> = world.evidence.claims.keys().map(u64::to_string).collect();
        let mut figures = vec![
            ("terms", format!("{}, with the fencing tokens {}", tokens.len(), tokens.join(", "))),
            ("log", format!("{} entries; tokens never go back, one writer per token", log.len())),
        ];
        match findings {
            Ok(findings) => {
                problems.extend(check_findings(findings));
                figures.extend(figures_of(findings));
            }
            Err(error) => problems.push(format!("{error:#}")),
        }
        if let Some((words, saved)) = world.messages {
            figures.push(("peers", format!("followers got {words} messages, which saved {saved} reads of the lock")));
            if words == 0 {
                problems.push("no follower got a message from a leader".to_owned());
            }
        }
        Self { figures, problems }
    }

    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.passed() {
            writeln!(f, "verdict: passed")?;
            return self.figures.iter().try_for_each(|(name, figure)| writeln!(f, "  {name:<8} {figure}"));
        }
        writeln!(f, "verdict: FAILED")?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}

fn figures_of(Findings { crash, handover, freeze }: &Findings) -> [(&'static str, String); 4] {
    let after = |takeover: &Takeover| format!("taken over {} after the lease had expired", ms(takeover.after_expiry));
    [
        ("kill -9", after(crash)),
        ("SIGTERM", format!("handed over in {}", ms(*handover))),
        ("SIGSTOP", format!("{}; frozen for {:.1}s", after(&freeze.takeover), freeze.lasted.as_secs_f64())),
        (
            "SIGCONT",
            format!("noticed before any work: {} entries written, its stale token refused", freeze.entries_after),
        ),
    ]
}

fn check_findings(Findings { crash, freeze, .. }: &Findings) -> Vec<String> {
    let mut problems = Vec::new();
    if crash.too_early || freeze.takeover.too_early {
        problems.push("a lease was taken before it had expired".to_owned());
    }
    match &freeze.thaw {
        Thaw::Leads => problems.push("the frozen leader still believed to lead when it went on".to_owned()),
        Thaw::Stopped(stale) if !stale.refused => {
            problems.push("the log took an entry with the token of a term that was over".to_owned());
        }
        Thaw::Stopped(_) => {}
    }
    if freeze.entries_after > 0 {
        problems.push(format!("{} entries of the frozen leader are from after it went on", freeze.entries_after));
    }
    problems
}
