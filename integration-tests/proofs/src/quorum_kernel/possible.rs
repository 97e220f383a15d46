//! The steps that are possible from a state: whatever a policy may do, whatever the network does, and time.

use leaderelection_protocol::quorum::{Plan, Put};

use super::action::{Action, Deed, Fate, Forgery};
use super::half::Half;
use super::setup::Setup;
use super::world::{Call, World};

/// Returns `true` if a write can no longer be committed in enough parts.
pub(super) fn is_lost(setup: &Setup, plan: &mut Plan<Half>) -> bool {
    plan.puts().is_empty() && plan.written().len() < setup.needed
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        actions.extend((0..self.late.len()).map(Action::ArriveLate));
        if self.forgeries < setup.forgeries {
            let forgeries = [Forgery::Emptied, Forgery::Copied, Forgery::Higher, Forgery::Missing];
            actions
                .extend(setup.hostile_parts().flat_map(|part| forgeries.map(|forgery| Action::Forge(part, forgery))));
        }
        let may_fail = self.faults < setup.faults;
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deeds: &[Deed]| actions.extend(deeds.iter().map(|deed| Action::Node(index, *deed)));
            match &node.call {
                None => {
                    let may_write = self.may_write(setup) && setup.acquires(index);
                    let may_ask = setup.asks(index) && self.requests < setup.requests;
                    if may_ask {
                        push(&[Deed::Ask]);
                    }
                    if may_write {
                        push(&[Deed::Acquire, Deed::Renew]);
                    }
                    // Otherwise no poll matters any more: see `World::canonical`.
                    let may_poll = may_write || may_ask || !node.is_done();
                    if may_poll && setup.slow_polls {
                        (0..setup.parts).for_each(|part| push(&[Deed::See(part)]));
                    } else if may_poll {
                        let enough = |those: &usize| those.count_ones() as usize >= setup.needed;
                        (0..1 << setup.parts).filter(enough).for_each(|those| push(&[Deed::Poll(those)]));
                    }
                    if setup.stops || setup.gives_up {
                        push(&[Deed::GiveUp]);
                    }
                    if (setup.stops || setup.job) && may_write {
                        push(&[Deed::Release]);
                    }
                }
                Some(Call::Poll(seen)) => {
                    push(&[Deed::EndPoll]);
                    let left = (0..setup.parts).filter(|part| !seen.contains_key(part));
                    left.for_each(|part| push(&[Deed::See(part)]));
                }
                Some(Call::Write(plan)) => {
                    push(&[Deed::Finish]);
                    let mut plan = plan.clone();
                    // A write that could go on ends by a fault only, or there would be halves of any number of writes.
                    if may_fail || is_lost(setup, &mut plan) {
                        push(&[Deed::Fail(false), Deed::Fail(true)]);
                    }
                    let first = if setup.any_order { usize::MAX } else { 1 };
                    for part in plan.puts().iter().take(first).map(Put::part) {
                        push(&[Deed::Put(part, Fate::Answered)]);
                        if may_fail {
                            push(&[Fate::Doubted, Fate::Lost, Fate::Late].map(|fate| Deed::Put(part, fate)));
                        }
                    }
                    let more = node.quorum.release_all(&plan);
                    more.iter().for_each(|put| push(&[Deed::ReleaseToo(put.part())]));
                }
            }
            node.background.puts.iter().for_each(|put| push(&[Deed::BackgroundPut(put.part())]));
            node.background.reads.iter().for_each(|(_, part)| push(&[Deed::BackgroundRead(*part)]));
            if setup.stops {
                push(&[Deed::EndTerm, Deed::Withdraw]);
            }
            if self.crashes < setup.crashes {
                push(&[Deed::Crash]);
            }
        }
    }
}
