//! The checks of an operator's interventions: each hits only the term that it is about, and tells what it has done.

use leaderelection::LeaderElectionRecord;

use super::knowledge::{Intervention, Oracle, Outcome, Plan};
use super::property::Property;
use crate::simulation::names::PlanId;

impl Oracle {
    pub(crate) fn next_plan(&mut self) -> PlanId {
        self.plans.push(Intervention::default());
        self.plans.len() - 1
    }

    pub(crate) fn plans(&mut self, id: PlanId, plan: Plan) {
        self.log(None, || format!("an operator plans: {plan:?}"));
        self.plans[id].plan = Some(plan);
    }

    pub(crate) fn lied_to_operator(&mut self, plan: PlanId) {
        self.plans[plan].lied_to = true;
    }

    pub(crate) fn operator_got(&mut self, plan: PlanId, outcome: Outcome) {
        self.log(None, || format!("the operator gets: {outcome:?}"));
        self.plans[plan].outcome = Some(outcome);
        self.check_told(plan);
    }

    /// Checks a write of an operator that takes effect.
    pub(super) fn intervened(&mut self, plan: PlanId, record: &LeaderElectionRecord) {
        self.stats.interventions += 1;
        self.plans[plan].applied = true;
        let hit = self.object.term();
        if hit.is_some() {
            self.check_marks_are_kept(record);
        }
        let intended = self.plans[plan].plan.clone();
        if let Some(Plan::Transfer { of, holder, .. } | Plan::Release { of, holder }) = &intended
            && let Some((token, hit)) = hit
        {
            let is_its = token == *of && (hit.is_empty() || hit == *holder);
            self.timeline.demand(is_its, Property::InterventionInItsTerm, || {
                format!("an intervention about {holder:?} with token {of} hits {hit:?} with token {token}")
            });
        }
        match intended {
            Some(Plan::Transfer { to, .. }) => self.asked_for(&to),
            intended => {
                if let Some(Plan::Recreate { token }) = intended {
                    self.timeline.demand(record.leader_transitions >= token, Property::Tokens, || {
                        format!("an operator creates the lock anew, and its token is less than {token}")
                    });
                }
                self.deposed = self.deposed.max(Some(record.leader_transitions));
                self.object.remember(None, (self.timeline.now, self.timeline.now), record);
            }
        }
        self.check_told(plan);
    }

    fn check_told(&mut self, plan: PlanId) {
        let Intervention { plan: intention, applied, lied_to, outcome } = &self.plans[plan];
        // The leader itself may have named the candidate.
        let is_asked = matches!(intention, Some(Plan::Transfer { to, .. }) if self.object.prefers(to));
        let wrong = match outcome {
            Some(Outcome::NotDone) => *applied,
            Some(Outcome::Done { is_reached }) => !applied && !is_reached && !is_asked,
            Some(Outcome::Unknown) | None => false,
        };
        self.timeline.demand(!wrong || *lied_to, Property::InterventionToldTrue, || {
            let effect = if *applied { "took effect" } else { "had no effect" };
            format!("{intention:?} {effect}, and its operator got {outcome:?}")
        });
    }
}
