//! The checks of an operator's interventions: each hits only the term that it is about, and tells what it has done.

use leaderelection::LeaderElectionRecord;

use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::operator::Plan;
use crate::simulation::timeline::{Event, PlanId};

/// The result of an intervention, as its operator was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::simulation) enum Told {
    /// The intervention succeeded. `is_reached` tells that its aim needed no write.
    Done { is_reached: bool },
    /// The intervention did not happen.
    NotDone,
    /// The operator was told that the result is unknown.
    Unknown,
}

/// One intervention.
#[derive(Debug, Default)]
pub(super) struct Watch {
    plan: Option<Plan>,
    /// A write of the intervention has taken effect.
    applied: bool,
    /// The store has lied to the operator about an effect, or about the object.
    lied_to: bool,
    told: Option<Told>,
}

impl Oracle {
    pub(in crate::simulation) fn next_plan(&mut self) -> PlanId {
        self.plans.push(Watch::default());
        self.plans.len() - 1
    }

    pub(in crate::simulation) fn plans(&mut self, now: TrueTime, id: PlanId, plan: Plan) {
        self.log(now, None, Event::Plans(plan.clone()));
        self.plans[id].plan = Some(plan);
    }

    pub(in crate::simulation) fn lied_to_operator(&mut self, plan: PlanId) {
        self.plans[plan].lied_to = true;
    }

    pub(in crate::simulation) fn was_told(&mut self, now: TrueTime, plan: PlanId, told: Told) {
        self.log(now, None, Event::WasTold(told));
        self.plans[plan].told = Some(told);
        self.check_told(now, plan);
    }

    /// Checks a write of an operator that takes effect.
    pub(in crate::simulation) fn intervened(&mut self, now: TrueTime, plan: PlanId, record: &LeaderElectionRecord) {
        self.stats.interventions += 1;
        self.plans[plan].applied = true;
        if self.object.term().is_some() {
            self.check_marks_are_kept(now, record);
        }
        let about = match &self.plans[plan].plan {
            Some(Plan::Transfer { of, holder, .. } | Plan::Release { of, holder }) => Some((*of, holder.clone())),
            _ => None,
        };
        if let Some((of, holder)) = about
            && let Some((token, hit)) = self.object.term()
            && (token != of || !hit.is_empty() && hit != holder)
        {
            let what = format!("an intervention about {holder:?} with token {of} hits {hit:?} with token {token}");
            self.violated(now, Property::InterventionInItsTerm, what);
        }
        match &self.plans[plan].plan {
            Some(Plan::Transfer { to, .. }) => {
                let to = to.clone();
                self.asked_for(now, to);
            }
            _ => {
                self.deposed = self.deposed.max(Some(record.leader_transitions));
                self.object.remember(None, (now, now), record);
            }
        }
        self.check_told(now, plan);
    }

    fn check_told(&mut self, now: TrueTime, plan: PlanId) {
        let Watch { plan: ref intention, applied, lied_to, told } = self.plans[plan];
        // The leader itself may have named the candidate.
        let is_asked = matches!(intention, Some(Plan::Transfer { to, .. }) if self.object.prefers(to));
        let wrong = match told {
            Some(Told::NotDone) => applied,
            Some(Told::Done { is_reached }) => !applied && !is_reached && !is_asked,
            Some(Told::Unknown) | None => false,
        };
        if wrong && !lied_to {
            let effect = if applied { "took effect" } else { "had no effect" };
            let what = format!("{intention:?} {effect}, and its operator was told {told:?}");
            self.violated(now, Property::InterventionToldTrue, what);
        }
    }
}
