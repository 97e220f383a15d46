//! A store that can only create, as one client of a sequenced lock reaches it, and a sweeper of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::StoreError;
use leaderelection::implement::{Version, VersionedObject};
use leaderelection_sequenced::steps::{Ask, Number, Reported};
use leaderelection_sequenced::{Content, CreateOnlyStore, Entry};
use tokio::time::sleep;

use super::carry::{self, Answer, Request};
use super::dice::Dice;
use super::faults::{CONFLICT, Fate, Reply, error};
use super::names::{Call, Client, RequestId};
use super::object::{State, Stored, parse};
use super::oracle::Property;
use super::timings::QUICK;
use super::world::World;

/// The key of the lock.
pub(super) const KEY: &str = "lock";

/// The way of one client to the objects of the lock.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    world: Arc<World>,
    client: Client,
    call: Arc<Mutex<Call>>,
}

/// A request about one object, or for a listing.
#[derive(Clone)]
struct Part {
    wire: Wire,
    call: Call,
    ask: Ask,
}

impl Wire {
    pub(super) fn new(world: &Arc<World>, client: Client) -> Self {
        Self { world: Arc::clone(world), client, call: Arc::default() }
    }

    /// Begins a call.
    pub(super) fn begin(&self, id: RequestId) {
        let highest = self.world.objects[0].lock().unwrap().numbers().highest();
        *self.call.lock().unwrap() = Call { highest, ..Call::begin(id, self.world.now()) };
    }

    /// Returns `true` if all answers of this call were true ones.
    pub(super) fn was_honest(&self) -> bool {
        !self.call.lock().unwrap().was_deceived
    }

    /// Checks the result of a read, and returns the state that it shows.
    pub(super) fn saw(&self, found: Option<VersionedObject>) -> Option<State> {
        let call = *self.call.lock().unwrap();
        let mut object = self.world.objects[0].lock().unwrap();
        let numbers = object.numbers();
        let may_be_old = call.was_blinded || self.world.scenario.sequenced.is_some_and(|sequenced| sequenced.repeats);
        let Some(found) = found else {
            if !may_be_old && !numbers.was_absent_since(call.highest) {
                self.violated(Property::OneHistory, "a read finds no lock, although there was one all the time");
            }
            return None;
        };
        let number = number(&found.version);
        if number < call.highest && !may_be_old {
            let what = format!("a read shows number {number}, and {} was there when it began", call.highest);
            self.violated(Property::OneHistory, &what);
        }
        let Some(state) = numbers.state(number).filter(|state| state.object.body == found.body).cloned() else {
            let what = format!("a read shows a content as number {number} that never was the lock's");
            self.violated(Property::OneHistory, &what);
            return None;
        };
        Some(State { object: found, ..state })
    }

    /// Checks a write that is acknowledged.
    pub(super) fn wrote(&self, version: &Version, body: &Bytes) {
        let number = number(version);
        let counts = {
            let mut object = self.world.objects[0].lock().unwrap();
            object.numbers().state(number).is_some_and(|state| state.object.body == *body)
        };
        if !counts {
            let what = format!("a write is acknowledged as number {number}, which is another write's");
            self.violated(Property::OneHistory, &what);
        }
    }

    fn violated(&self, property: Property, what: &str) {
        let what = format!("{:?}: {what}", self.client);
        self.world.oracle().timeline.violated(property, what);
    }

    async fn ask(&self, ask: Ask) -> Result<Reported, StoreError> {
        let fate = self.fate(&ask);
        let call = *self.call.lock().unwrap();
        carry::send(Part { wire: self.clone(), call, ask }, fate).await.map_err(error)
    }

    /// Draws the fate of a request. Listings and removals are never answered falsely, because the store's contract
    /// rules that out.
    fn fate(&self, ask: &Ask) -> Fate {
        let fate = self.world.fate(self.client);
        let repeats = self.world.scenario.sequenced.is_some_and(|sequenced| sequenced.repeats);
        match (ask, fate.reply) {
            (Ask::Create(..), Reply::OfSecond) if !repeats => Fate { again: None, reply: Reply::Honest, ..fate },
            (Ask::Create(..), _) if !repeats => Fate { again: None, ..fate },
            (Ask::List(_) | Ask::Remove(_), Reply::False(_)) => Fate { reply: Reply::Honest, ..fate },
            _ => fate,
        }
    }
}

impl Request for Part {
    type Done = Reported;

    fn way(&self) -> (&Arc<World>, Client) {
        (&self.wire.world, self.wire.client)
    }

    fn is_read(&self) -> bool {
        !matches!(self.ask, Ask::Create(..))
    }

    fn apply(&self) -> Answer<Reported> {
        let Self { wire: Wire { world, client, .. }, call, ask } = self;
        let mut object = world.objects[0].lock().unwrap();
        let highest = object.numbers().highest();
        let (event, answer) = match ask {
            Ask::List(after) => {
                let listed =
                    object.numbers().objects.keys().copied().map(Number::new).filter(|number| Some(*number) > *after);
                (format!("lists, and {highest} is the highest number"), Ok(Reported::Numbers(listed.collect())))
            }
            Ask::Read(number) => {
                let now = object.header();
                let found = object.numbers().objects.get(&number.get()).cloned();
                let is_there = found.is_some();
                let content = found.map(|Stored { content, written }| {
                    let age = now.zip(written).map(|(now, written)| now.saturating_sub(written));
                    Content::new(content).with_age(age)
                });
                let missing = if is_there { "" } else { ", which is not there" };
                (format!("reads number {}{missing}", number.get()), Ok(Reported::Content(content)))
            }
            Ask::Remove(number) => {
                object.numbers().objects.remove(&number.get());
                if number.get() == highest {
                    self.wire.violated(Property::HighestStays, &format!("number {highest} is removed"));
                }
                (format!("removes number {}", number.get()), Ok(Reported::Done))
            }
            Ask::Create(number, _) if object.numbers().objects.contains_key(&number.get()) => {
                (format!("creates no number {}, which is there", number.get()), Err(CONFLICT))
            }
            Ask::Create(number, content) if number.get() <= highest => {
                let written = object.header();
                object.numbers().objects.insert(number.get(), Stored { content: content.clone(), written });
                world.oracle().stats.late_creations += 1;
                (format!("CREATES NUMBER {} LATE", number.get()), Ok(Reported::Done))
            }
            Ask::Create(number, _) if number.get() > highest + 1 => {
                let what = format!("number {} is created, and the highest is {highest}", number.get());
                self.wire.violated(Property::OneHistory, &what);
                return Err(CONFLICT);
            }
            Ask::Create(number, content) => {
                let body = content.slice(..content.len() - 1);
                if body.is_empty() {
                    self.wire.violated(Property::NoErasure, "the lock is deleted");
                    return Err(CONFLICT);
                }
                let record = parse(&body);
                object.replace(body, record.holder_identity.clone());
                world.oracle().wrote_by(*client, (call.id, call.sent), &record);
                (format!("creates number {}: WRITES w{}", number.get(), object.newest()), Ok(Reported::Done))
            }
        };
        world.oracle().log(client.process(), || event);
        if let Ask::Create(..) = ask {
            world.created.notify_waiters();
        }
        answer
    }

    fn show_false(&self, _age: Option<usize>) -> Option<Reported> {
        let Ask::Read(_) = self.ask else { return None };
        let mut call = self.wire.call.lock().unwrap();
        call.was_blinded |= call.id == self.call.id;
        if let Some(process) = self.wire.client.process() {
            self.wire.world.oracle().deceived(process, self.call.id);
        }
        Some(Reported::Content(None))
    }

    fn answered(&self, _answer: &Answer<Reported>, honest: bool) {
        if !honest {
            self.wire.call.lock().unwrap().is_deceived(self.call.id);
        }
    }
}

/// Removes everything but the highest number that a listing has shown, oldest first, as soon as there is something to
/// remove.
pub(super) async fn sweep_without_end(world: Arc<World>, mut dice: Dice) {
    let timings = world.scenario.timings;
    let wire = Wire::new(&world, Client::Sweeper);
    loop {
        let created = world.created.notified();
        // A sweep may have ended early.
        tokio::select! {
            biased;
            () = created => {}
            () = sleep(timings.lease) => {}
        }
        let late = timings.delay(&mut dice, timings.lease);
        sleep(dice.pick(&[Duration::ZERO, Duration::ZERO, QUICK, late])).await;
        let sweep = async {
            let Ok(Reported::Numbers(mut numbers)) = wire.ask(Ask::List(None)).await else { return };
            numbers.sort_unstable();
            numbers.pop();
            for number in numbers {
                // What is newer stays as long as something older stays.
                if wire.ask(Ask::Remove(number)).await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(timings.timeout, sweep).await;
    }
}

fn number(version: &Version) -> u64 {
    version.as_str().parse().expect("a version is a number")
}

/// Returns the number in the key of an object.
fn number_in(key: &str) -> Number {
    let digits = key.rsplit_once('/').map(|(_, digits)| digits);
    Number::new(digits.and_then(|digits| digits.parse().ok()).expect("a key ends in a number"))
}

#[async_trait]
impl CreateOnlyStore for Wire {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        match self.ask(Ask::Read(number_in(key))).await? {
            Reported::Content(content) => Ok(content),
            _ => unreachable!("a read is answered with what was read"),
        }
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        self.ask(Ask::Create(number_in(key), content)).await.map(drop)
    }

    async fn list(&self, _prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        match self.ask(Ask::List(after.map(number_in))).await? {
            Reported::Numbers(numbers) => {
                Ok(numbers.into_iter().map(|number| Entry::new(format!("{KEY}/{:020}", number.get()), None)).collect())
            }
            _ => unreachable!("a listing is answered with what was listed"),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.ask(Ask::Remove(number_in(key))).await.map(drop)
    }

    fn describe(&self, key: &str) -> String {
        format!("simulated:{key}")
    }
}
