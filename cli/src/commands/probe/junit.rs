//! The report of a probe in the format of JUnit, which build servers show.

use std::fmt::Write as _;
use std::path::Path;

use leaderelection_conformance::{Check, Outcome, ProbeReport};

use crate::exit::Failure;

/// Writes the checks of the report on each lock as test cases. A check fails if the store failed it and an election depends on
/// it.
pub(super) fn write<'a>(path: &Path, reports: impl Iterator<Item = (String, &'a ProbeReport)>) -> Result<(), Failure> {
    let suites: String = reports.map(|(lock, report)| suite(&lock, report)).collect();
    let document = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n{suites}</testsuites>\n");
    std::fs::write(path, document)
        .map_err(|error| Failure::internal(format!("cannot write {}: {error}; check --junit", path.display())))
}

fn suite(lock: &str, report: &ProbeReport) -> String {
    let cases: Vec<String> = report.checks().iter().map(case).collect();
    let count = |element: &str| cases.iter().filter(|case| case.contains(element)).count();
    let [failures, errors, skipped] = ["<failure", "<error", "<skipped"].map(count);
    let mut suite = String::new();
    let _ = writeln!(
        suite,
        "<testsuite name=\"leaderelect probe {}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{:.3}\">",
        escaped(lock),
        cases.len(),
        report.duration().as_secs_f64(),
    );
    cases.iter().for_each(|case| suite.push_str(case));
    suite.push_str("</testsuite>\n");
    suite
}

fn case(check: &Check) -> String {
    let (name, detail) = (escaped(&check.kind().to_string()), escaped(check.detail()));
    let outcome = match check.outcome() {
        Outcome::Passed => return format!("  <testcase name=\"{name}\"/>\n"),
        Outcome::Failed | Outcome::Refused if check.kind().is_required() => "failure",
        Outcome::Inconclusive if check.kind().is_required() => "error",
        _ => "skipped",
    };
    format!("  <testcase name=\"{name}\"><{outcome} message=\"{detail}\"/></testcase>\n")
}

/// Returns text for an attribute. Characters that XML does not have become spaces.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, character| {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&control) => escaped.push(' '),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_cannot_end_an_attribute() {
        assert_eq!(escaped("a \"<b>\" & \u{1}\n"), "a &quot;&lt;b>&quot; &amp;   ");
    }
}
