//! A network that lets the requests of the leaders through in the order of a schedule.

use leaderelection::implement::ConditionalStore;

use super::gate::{Passage, Request, Requests, Write};
use super::schedule::Schedules;

/// A possible next event.
#[derive(Clone, Copy, Debug)]
enum Step {
    Request(usize),
    LateWrite,
}

/// Runs the leaders until both have finished and no request is in flight. Returns the events in their order.
pub(super) async fn carry(
    store: &impl ConditionalStore,
    mut leaders: [(&str, Requests); 2],
    schedules: &mut Schedules,
    mut may_lose: bool,
) -> Vec<String> {
    let mut waiting: [Option<Request>; 2] = [None, None];
    let mut late: Option<Write> = None;
    let mut history = Vec::new();
    loop {
        // Only the leader whose request was let through last runs, so the order is deterministic.
        for (slot, (_, requests)) in waiting.iter_mut().zip(&mut leaders) {
            if slot.is_none() {
                *slot = requests.recv().await;
            }
        }
        let mut steps: Vec<Step> = (0..2).filter(|&leader| waiting[leader].is_some()).map(Step::Request).collect();
        steps.extend(late.as_ref().map(|_| Step::LateWrite));
        if steps.is_empty() {
            return history;
        }
        match steps[schedules.choose(steps.len())] {
            Step::LateWrite => {
                if let Some(write) = late.take() {
                    let answer = write.on(store).await.map_err(|error| error.kind());
                    history.push(format!("the late write arrives: {answer:?}"));
                }
            }
            Step::Request(leader) => {
                let Some(request) = waiting[leader].take() else { continue };
                let loss = request.write.as_ref().filter(|_| may_lose).map_or(0, |_| schedules.choose(4));
                may_lose &= loss == 0;
                let what = match (loss, &request.write) {
                    (0, None) => "reads",
                    (0, Some(_)) => "writes",
                    (1, _) => "writes and gets no answer",
                    (2, _) => "writes in vain and gets no answer",
                    _ => "writes late and gets no answer",
                };
                history.push(format!("{} {what}", leaders[leader].0));
                late = late.or(request.write.filter(|_| loss == 3));
                let passage =
                    [Passage::Good, Passage::LosesTheAnswer, Passage::LosesTheRequest, Passage::LosesTheRequest];
                request.passage.send(passage[loss]).ok();
            }
        }
    }
}
