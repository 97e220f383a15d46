//! The questions that are asked in every state.

use stateright::Property;

use super::node::Work;
use super::world::{Manner, Setup, Spoilt, Violation, World};

/// Returns the properties that a setup checks.
pub(super) fn of(setup: &Setup) -> Vec<Property<Setup>> {
    fn never(world: &World, violation: Violation) -> bool {
        world.violation != Some(violation)
    }
    if setup.deletion {
        return vec![
            Property::always("no haste", |_, world: &World| never(world, Violation::Haste)),
            Property::sometimes("another record", |_, world: &World| world.deleted && world.cell.is_some()),
        ];
    }
    let exclusion = Property::always("exclusion", |setup: &Setup, world: &World| {
        !setup.trusted_clocks || world.leaders(setup) <= 1
    });
    if setup.only_exclusion {
        return vec![exclusion];
    }
    let mut properties = vec![
        exclusion,
        Property::always("tokens", |_, world: &World| never(world, Violation::Tokens)),
        Property::always("no revival", |_, world: &World| never(world, Violation::Revival)),
        Property::always("no spurious loss", |_, world: &World| never(world, Violation::SpuriousLoss)),
        Property::always("no erasure", |_, world: &World| never(world, Violation::Erasure)),
        Property::always("no early release", |_, world: &World| never(world, Violation::EarlyRelease)),
        Property::always("no overrun", |_, world: &World| never(world, Violation::Overrun)),
        Property::always("no early end", |_, world: &World| never(world, Violation::EarlyEnd)),
        Property::always("no disobedience", |_, world: &World| never(world, Violation::Disobedience)),
        Property::always("stop before the next leader", |_, world: &World| never(world, Violation::Order)),
        Property::always("no hurry", |_, world: &World| never(world, Violation::Hurry)),
        Property::always("no false clash", |_, world: &World| never(world, Violation::FalseClash)),
        // An empty exploration would prove the properties above, so a leader must exist in some state.
        Property::sometimes("a leader", |setup: &Setup, world: &World| world.leaders(setup) == 1),
    ];
    if setup.last_token > 0 {
        properties.push(Property::sometimes("another term", |_, world: &World| world.started > 1));
    }
    if setup.work == Manner::EndsLate {
        properties.push(Property::sometimes("work that is dropped", |_, world: &World| {
            world.nodes.iter().any(|node| node.work == Work::Dropped)
        }));
        properties.push(Property::sometimes("work that is given up", |_, world: &World| {
            world.nodes.iter().any(|node| node.work == Work::Abandoned)
        }));
    }
    if setup.stops {
        properties.push(Property::sometimes("a release", |_, world: &World| {
            world.cell.as_ref().is_some_and(|cell| cell.record.is_released())
        }));
    }
    if setup.spoils {
        properties.push(Property::sometimes("a leader after a repair", |setup: &Setup, world: &World| {
            world.spoilt == Spoilt::Over && world.leaders(setup) == 1
        }));
    }
    if setup.transfers > 0 {
        properties.push(Property::sometimes("a request obeyed", |_, world: &World| {
            world.cell.as_ref().is_some_and(|cell| cell.record.is_released() && cell.record.preferred_holder.is_some())
        }));
    }
    if setup.waits {
        properties.push(Property::sometimes("a leader that is asked to wait", |setup: &Setup, world: &World| {
            world.nodes.iter().any(|node| !node.silent.is_zero() && node.leading(setup).is_some())
        }));
    }
    if setup.jobs > 0 {
        properties.extend([
            Property::always("once per job", |_, world: &World| never(world, Violation::Repetition)),
            Property::always("no false mark", |_, world: &World| never(world, Violation::FalseMark)),
            Property::always("no lost mark", |_, world: &World| never(world, Violation::LostMark)),
            Property::always("no missing mark", |_, world: &World| never(world, Violation::MissingMark)),
            Property::always("no false report of a job", |_, world: &World| never(world, Violation::FalseReport)),
            Property::sometimes("a job that is done", |_, world: &World| world.job.marked),
            Property::sometimes("a job that is found done", |setup: &Setup, world: &World| {
                world.job.marked && world.nodes.iter().filter(|node| node.rests).count() == setup.jobs
            }),
        ]);
    }
    if setup.jobs > 0 && setup.last_token > 0 {
        properties.push(Property::sometimes("a job that is done again", |_, world: &World| {
            world.job.marked && world.job.succeeded.count_ones() > 1
        }));
    }
    if setup.words > 0 {
        properties.extend([
            Property::always("no echo", |_, world: &World| never(world, Violation::Echo)),
            Property::always("no trust in silence", |_, world: &World| never(world, Violation::Trust)),
            Property::sometimes("a word that counts", |_, world: &World| {
                world.nodes.iter().any(|node| node.election.last_heard().is_some())
            }),
        ]);
    }
    if setup.follower.is_some() {
        properties.push(Property::always("no sloth", |_, world: &World| never(world, Violation::Sloth)));
    }
    if setup.fails {
        properties.push(Property::always("no futility", |_, world: &World| never(world, Violation::Futility)));
        properties.push(Property::sometimes("a release after a failure", |_, world: &World| {
            world.cell.as_ref().is_some_and(|cell| cell.record.is_released())
        }));
    }
    if setup.has_ranks() {
        properties.push(Property::always("no pushing", |_, world: &World| never(world, Violation::Pushing)));
    }
    if setup.takes_back {
        properties.extend([
            Property::always("no insolence", |_, world: &World| never(world, Violation::Insolence)),
            Property::always("no oblivion", |_, world: &World| never(world, Violation::Oblivion)),
            Property::sometimes("a request of a better candidate", |_, world: &World| {
                world.cell.as_ref().is_some_and(|cell| cell.record.take_backs > 0)
            }),
        ]);
    }
    if setup.late_writes > 0 {
        properties.push(Property::sometimes("a late write", |_, world: &World| !world.orphans.is_empty()));
    }
    properties
}
