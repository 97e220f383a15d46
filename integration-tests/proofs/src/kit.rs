//! The common part of the models: the network, the ids and the ages in a state, the promises, and the exploration. And that of
//! the simulations: many seeds, their numbers, and the timeline of a run.

mod ages;
mod cell;
mod explore;
mod fingerprint;
mod model;
mod net;
mod program;
mod question;
mod seat;
mod simulation;
mod stats;
mod timeline;
mod ways;

pub use ages::{Ages, shift};
pub use cell::Cell;
pub use explore::{Broken, Explored};
pub use fingerprint::{Ids, fingerprint, least_image, orders};
pub use model::{Goal, Model, Mover, Sight, takes};
pub use net::{Flight, Late, Net};
pub use program::{Args, explore_all};
pub use question::{Ask, Asked, Question};
pub(crate) use question::{promises, questions};
pub use seat::{Seat, Work};
pub use simulation::{Campaign, Outcome, Simulation};
pub use stats::Longest;
pub(crate) use stats::stats;
pub(crate) use timeline::Timeline;
pub use timeline::{Run, Violation};
