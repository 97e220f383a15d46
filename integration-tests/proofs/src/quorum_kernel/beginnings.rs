//! The beginnings of histories of which only the rest is explored: from nothing on, they have more states than can be explored.

use super::action::{Action, Deed, Fate};
use super::setup::Setup;

/// The first candidate leads by two of three parts.
pub(super) fn a_leader(setup: Setup) -> Setup {
    Setup { beginning: taken(&[0, 1]), ..setup }
}

/// The first candidate leads by two of three parts, and the second has written into the other.
pub(super) fn a_leader_beside_half_a_write(setup: Setup) -> Setup {
    let mut beginning = vec![Action::Node(1, Deed::Poll(0b110))];
    beginning.extend(taken(&[0, 1]));
    beginning.extend([Deed::Acquire, Deed::Put(2, Fate::Answered)].map(|deed| Action::Node(1, deed)));
    Setup { beginning, ..setup }
}

/// The first candidate has won the lease too late to lead: its parts are of different ages.
pub(super) fn a_lease_won_too_late(setup: Setup) -> Setup {
    let mut beginning = taken(&[0, 1]);
    beginning.insert(3, Action::Tick);
    Setup { beginning, ..setup }
}

/// The first candidate has led by three parts, until its renewal came too late and reached two of them.
pub(super) fn a_late_renewal(setup: Setup) -> Setup {
    let mut beginning = taken(&[0, 1, 2]);
    let renewal = [Deed::Put(0, Fate::Answered), Deed::Put(1, Fate::Answered), Deed::Finish, Deed::Poll(0b101)];
    beginning.extend([Action::Node(0, Deed::Renew), Action::Tick]);
    beginning.extend(renewal.map(|deed| Action::Node(0, deed)));
    Setup { beginning, ..setup }
}

/// The steps in which the first candidate takes these parts, which nobody holds.
fn taken(parts: &[usize]) -> Vec<Action> {
    let puts = parts.iter().map(|part| Deed::Put(*part, Fate::Answered));
    let deeds = [Deed::Poll(0b111), Deed::Acquire].into_iter().chain(puts).chain([Deed::Finish]);
    deeds.map(|deed| Action::Node(0, deed)).collect()
}

/// The first of two candidates leads. One of its parts shows what it has rolled back after an earlier try, in which it had not done
/// the job.
pub(super) fn a_part_that_was_rolled_back(setup: Setup) -> Setup {
    let beginning = vec![
        Deed::Poll(0b111),
        Deed::Acquire,
        Deed::Put(0, Fate::Answered),
        Deed::Fail(true),
        Deed::BackgroundPut(0),
        Deed::Acquire,
        Deed::Put(0, Fate::Lost),
        Deed::Put(1, Fate::Answered),
        Deed::Put(2, Fate::Answered),
        Deed::Finish,
        Deed::Poll(0b111),
    ];
    Setup { beginning: beginning.into_iter().map(|deed| Action::Node(0, deed)).collect(), ..setup }
}

/// The release of a leader has reached one part, with the mark of the job, and is in flight to another. The second candidate has
/// seen that part, and then the others alone.
pub(super) fn a_release_in_flight(setup: Setup) -> Setup {
    let [leads, polls] = [0, 1].map(|index| move |deed| Action::Node(index, deed));
    let then = [
        polls(Deed::Poll(0b011)),
        Action::Tick,
        leads(Deed::Release),
        leads(Deed::Put(2, Fate::Late)),
        leads(Deed::Put(1, Fate::Answered)),
        polls(Deed::Poll(0b011)),
        polls(Deed::Poll(0b101)),
    ];
    Setup { beginning: taken(&[0, 1, 2]).into_iter().chain(then).collect(), ..setup }
}
