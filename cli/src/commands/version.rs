//! `leaderelect version`.

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Format, Output};

/// Print the version, commit and built-in stores
///
///     leaderelect version --output json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
    features: Vec<&'static str>,
}

pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    match args.output {
        Format::Text => output.raw(concat!("leaderelect ", env!("BUILT_VERSION"), "\n").as_bytes())?,
        Format::Json => output.json(&Version {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("BUILT_COMMIT"),
            features: env!("BUILT_FEATURES").split(", ").filter(|feature| *feature != "none").collect(),
        })?,
    }
    Ok(Exit::Done)
}
