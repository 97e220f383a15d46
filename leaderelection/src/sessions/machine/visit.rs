//! For explorers, which are model checkers: shows a member's moments, so that an explorer recognizes equivalent states.

use std::time::Duration;

use super::lock::Phase;
use super::member::Member;
use super::peer::Peer;
use crate::election::{OfKernel, Visitor};

impl Member {
    /// Shows every instant to `visitor`, which may replace each.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Some(own) = &mut self.own {
            own.election.visit(visitor);
            if let Some(term) = &mut own.term {
                visitor.moment(&mut term.sent_at);
                visitor.moment(&mut term.valid_until);
            }
            if self.rules.balance {
                visitor.moment(&mut own.opened_at);
            } else {
                visitor.pause(&mut own.opened_at);
            }
        }
        if let Some(open_at) = &mut self.open_at {
            visitor.pause(open_at);
        }
        visitor.pause(&mut self.open_after);
        self.housekeeping.visit(|at| visitor.pause(at));
        self.due_locks.visit(|at| visitor.pause(at));
        self.ending_deadlines.visit(|at| visitor.timer(at));
        visitor.pause(&mut self.asked_until);
        self.list_again.iter_mut().for_each(|at| visitor.pause(at));
        visitor.pause(&mut self.scanned_at);
        for listing in [&mut self.session_listing, &mut self.lock_listing] {
            listing.began_at.iter_mut().for_each(|at| visitor.pause(at));
        }
        let balances = self.rules.balance;
        self.peers.visit(&mut OfKernel(visitor, Duration::ZERO), |visitor, peer| {
            visitor.1 = peer.end_delay;
            peer.visit(balances, visitor.0);
        });
        self.leaving.iter_mut().for_each(|leaving| visitor.pause(&mut leaving.until));
        self.rebalance_scan.iter_mut().filter_map(|scan| scan.ready_at.as_mut()).for_each(|at| visitor.pause(at));
        self.busy_since.iter_mut().for_each(|since| visitor.pause(since));
        self.concurrency.visit(visitor);
        for (poll_at, until) in self.handing_over.values_mut().filter_map(|handoff| handoff.released.as_mut()) {
            [poll_at, until].into_iter().for_each(|at| visitor.pause(at));
        }
        self.table.visit(&mut OfKernel(visitor, Duration::ZERO));
        for lock in &mut self.locks {
            visitor.pause(&mut lock.not_before);
            visitor.pause(&mut lock.free_since);
            if let Phase::Ending(ending) = &mut lock.phase {
                ending.visit(|until| visitor.timer(until));
            }
        }
    }
}

impl Peer {
    fn visit(&mut self, balances: bool, visitor: &mut impl Visitor) {
        if balances {
            visitor.moment(&mut self.alive_since);
        } else {
            visitor.pause(&mut self.alive_since);
        }
        visitor.pause(&mut self.poll_at);
        if let Some(peer_feed) = &mut self.peer_feed {
            peer_feed.visit(visitor);
        }
        visitor.pause(&mut self.polled_at);
        if let Some(rhythm) = &mut self.rhythm {
            rhythm.visit(visitor);
        }
        visitor.pause(&mut self.not_before);
        self.give_up_at.iter_mut().for_each(|from| visitor.timer(from));
        visitor.pause(&mut self.no_handoff_until);
        visitor.moment(&mut self.changed_at);
    }
}
