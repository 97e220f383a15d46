//! Processes that come, stop and die on a store that fails: no slot has two workers, and no process works in two slots or
//! holds two.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::sessions::{Slot, Slots};
use leaderelection::{Session, StoreErrorKind};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{Fault, Faulty, RETRY};

const SEEDS: u64 = 4;
const PROCESSES: usize = 5;
const SLOTS: u32 = 3;
/// The polls of each fleet, one retry period apart.
const LOOKS: u32 = 200;

/// Numbers that depend on a seed alone.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The oracle: the process and the slot of each work that runs, and the broken promises.
#[derive(Debug, Default)]
struct Oracle {
    works: Vec<(usize, u32)>,
    begun: u32,
    broken: Vec<String>,
}

/// A work that runs. The work is over when this is dropped.
struct Working(Arc<Mutex<Oracle>>, (usize, u32));

impl Working {
    fn begin(oracle: Arc<Mutex<Oracle>>, process: usize, slot: u32) -> Self {
        let mut seen = oracle.lock().unwrap();
        seen.begun += 1;
        let (mut broken, works) = (Vec::new(), &seen.works);
        for &(other, taken) in works {
            if other == process {
                broken.push(format!("process {process} works in the slots {taken} and {slot}"));
            }
            if taken == slot {
                broken.push(format!("the processes {other} and {process} work in the slot {slot}"));
            }
        }
        seen.broken.extend(broken);
        seen.works.push((process, slot));
        drop(seen);
        Self(oracle, (process, slot))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.lock().unwrap().works.retain(|work| *work != self.1);
    }
}

/// A process that holds one slot after the other.
struct Member {
    number: usize,
    slots: Arc<Slots>,
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

impl Member {
    fn start(store: &Faulty, number: usize, mut dice: Dice, oracle: &Arc<Mutex<Oracle>>) -> Self {
        let session = Session::builder(store.clone(), "fleet", format!("node-{number}")).clock(TokioClock::new());
        let session = session.build().unwrap();
        let (slots, stop) = (Arc::new(session.slots("worker", SLOTS).unwrap()), CancellationToken::new());
        let (competing, token, oracle) = (Arc::clone(&slots), stop.clone(), Arc::clone(oracle));
        let terms = async move {
            while !token.is_cancelled() {
                let (lasts, oracle) = (Duration::from_secs(1 + dice.below(120)), Arc::clone(&oracle));
                let work = move |slot: Slot| async move {
                    let _working = Working::begin(oracle, number, slot.number());
                    tokio::select! { _ = slot.leadership().lost() => {}, () = sleep(lasts) => {} }
                };
                let _ = competing.run_while_leading(token.clone().cancelled_owned(), work).await;
            }
        };
        let token = stop.clone();
        let run = async move { session.run(token.cancelled_owned()).await.unwrap() };
        Self { number, slots, stop, tasks: [tokio::spawn(terms), tokio::spawn(run)] }
    }

    fn held(&self) -> usize {
        (0..SLOTS).filter(|slot| self.slots.handle(*slot).unwrap().is_leader()).count()
    }

    async fn end(self, gracefully: bool) {
        self.stop.cancel();
        for task in self.tasks {
            if !gracefully {
                task.abort();
            }
            let _ = task.await;
        }
    }
}

async fn fleet(seed: u64) {
    let (mut dice, oracle) = (Dice(seed), Arc::default());
    let store = Faulty::default();
    let luck = Mutex::new(Dice(seed + 1000));
    store.fail(move |_, _, _| {
        Some(match luck.lock().unwrap().below(60) {
            0 => Fault::Refuse(StoreErrorKind::Ambiguous),
            1 => Fault::ApplyThen(StoreErrorKind::Ambiguous),
            2 => Fault::Hang,
            3 => Fault::ApplyThenHang,
            4 => Fault::Refuse(StoreErrorKind::Rejected),
            _ => return None,
        })
    });
    let mut number = 0;
    let mut start = |dice: &mut Dice| {
        number += 1;
        Member::start(&store, number, Dice(dice.below(u64::MAX)), &oracle)
    };
    let mut members: Vec<_> = (0..PROCESSES).map(|_| start(&mut dice)).collect();
    for _ in 0..LOOKS {
        sleep(RETRY).await;
        for member in &members {
            assert!(member.held() <= 1, "seed {seed}: process {} holds {} slots", member.number, member.held());
        }
        if let chance @ ..2 = dice.below(40) {
            let gone = members.remove(dice.below(PROCESSES as u64) as usize);
            gone.end(chance == 0).await;
            members.push(start(&mut dice));
        }
    }
    let seen = oracle.lock().unwrap();
    assert!(seen.broken.is_empty(), "seed {seed}: {:#?}", seen.broken);
    assert!(seen.begun > 10, "seed {seed}: {} works", seen.begun);
}

#[tokio::test(start_paused = true)]
async fn a_process_works_in_one_slot_and_a_slot_has_one_worker() {
    for seed in 0..SEEDS {
        fleet(seed).await;
    }
}
