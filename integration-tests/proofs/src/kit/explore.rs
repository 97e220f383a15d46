//! The exploration of every history of a setup.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Display, Formatter};
use std::hash::{BuildHasherDefault, Hasher};
use std::iter::repeat_n;
use std::time::{Duration, Instant};

use super::fingerprint::fingerprint;
use super::model::Model;
use super::ways::Ways;

/// The histories of a setup.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The name of the setup.
    pub name: &'static str,
    /// The number of states.
    pub states: usize,
    /// The number of steps to the state that is furthest from the beginning.
    pub depth: usize,
    /// The duration of the exploration.
    pub took: Duration,
    /// The first promise that was found broken. A breach ends the exploration.
    pub broken: Option<Broken>,
    /// The situations that should be in some history, and are in none.
    pub never: Vec<&'static str>,
}

/// A promise that was found broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The name of the promise.
    pub promise: &'static str,
    /// The steps of a shortest way to the breach.
    pub steps: Vec<String>,
}

impl Explored {
    /// Returns `true` if every promise was kept, and everything was seen that should be.
    pub fn is_well(&self) -> bool {
        self.broken.is_none() && self.never.is_empty()
    }
}

impl Display for Explored {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, states, depth, took, never, broken } = self;
        write!(out, "{name}: {states} states, {depth} steps deep, {:.1} s", took.as_secs_f64())?;
        never.iter().try_for_each(|sight| write!(out, "\n{name}: never {sight}"))?;
        broken.iter().try_for_each(|Broken { promise, steps }| {
            write!(out, "\n{name}: {}\nviolated: {promise}", steps.join(", "))
        })
    }
}

/// Visits every state, or `most` states. Asks every question there, and that of the goals if the setup is electable.
pub(super) fn explore<M: Model>(name: &'static str, model: &M, is_electable: bool, most: usize) -> Explored {
    let began = Instant::now();
    let (mut graph, mut sights) = (Graph::default(), Vec::from_iter(model.sights().into_iter().flatten()));
    let mut ways = Ways::new(if is_electable { model.goals() } else { Vec::new() });
    let (mut depth, mut actions) = (0, Vec::new());
    let (mut broken, mut last) = (None, None);
    // Mirror images have different goals.
    let fingerprint_of = |world: &_| if is_electable { fingerprint(world) } else { model.mirrored(world) };
    let first = model.begin();
    graph.visit(fingerprint_of(&first), 0, 0);
    let mut level = vec![(0, first)];
    'search: while !level.is_empty() && graph.len() < most {
        let mut next_level = Vec::new();
        for (from, world) in level {
            if let Some(promise) = model.broken(&world) {
                broken = Some((promise, from));
                break 'search;
            }
            sights.retain(|sight| !(sight.is_seen)(model, &world));
            ways.visit(from, |goal| model.is_reached(&world, goal));
            model.actions(&world, &mut actions);
            // The last step needs no copy of the state.
            let copies = repeat_n(world, actions.len());
            for (number, (action, mut next)) in actions.drain(..).zip(copies).enumerate() {
                let mover = model.mover(&action);
                model.act(&mut next, action);
                if !model.is_within(&next) {
                    ways.step(mover, from, None);
                    continue;
                }
                let (to, is_new) = graph.visit(fingerprint_of(&next), from, number);
                ways.step(mover, from, Some(to));
                if is_new {
                    next_level.push((to, next));
                }
            }
        }
        depth += 1;
        level = next_level;
    }
    if broken.is_none()
        && graph.len() < most
        && let Some((goal, index)) = ways.first_stuck(graph.len())
    {
        broken = Some(("always electable", index));
        last = Some(format!("node {} can never lead lock {} again", goal.node, goal.lock));
    }
    let of_breach = |(promise, index)| {
        let mut steps = graph.steps_to(model, index);
        steps.extend(last);
        Broken { promise, steps }
    };
    Explored {
        name,
        states: graph.len(),
        depth,
        // What an exploration that was stopped has not seen may be seen later.
        never: if broken.is_none() && graph.len() < most {
            sights.iter().map(|sight| sight.name).collect()
        } else {
            Vec::new()
        },
        broken: broken.map(of_breach),
        took: began.elapsed(),
    }
}

/// The states that were visited, in the order in which they were found.
#[derive(Default)]
struct Graph {
    index_of: HashMap<u64, u32, BuildHasherDefault<Same>>,
    /// The state before each state, and the number of the step among the possible ones.
    came_from: Vec<(u32, u16)>,
}

impl Graph {
    fn len(&self) -> usize {
        self.came_from.len()
    }

    /// Returns the index of the state with this fingerprint, and `true` if the state is new.
    fn visit(&mut self, fingerprint: u64, from: u32, step: usize) -> (u32, bool) {
        match self.index_of.entry(fingerprint) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                let index = u32::try_from(self.came_from.len()).expect("fewer states than memory holds");
                new.insert(index);
                self.came_from.push((from, u16::try_from(step).expect("few steps")));
                (index, true)
            }
        }
    }

    /// The steps of a shortest way to a state, which begins with the state at 0.
    fn steps_to<M: Model>(&self, model: &M, mut index: u32) -> Vec<String> {
        let mut numbers = Vec::new();
        while index > 0 {
            let (from, step) = self.came_from[index as usize];
            numbers.push(step.into());
            index = from;
        }
        let (mut world, mut actions, mut steps) = (model.begin(), Vec::new(), Vec::new());
        for number in numbers.into_iter().rev() {
            model.actions(&world, &mut actions);
            let action = actions.swap_remove(number);
            steps.push(format!("{action:?}"));
            model.act(&mut world, action);
            actions.clear();
        }
        steps
    }
}

/// A hash of what is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is a number");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
