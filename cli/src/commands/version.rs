//! `leaderelect version`.

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Format, Output};

/// Print the version, the commit, and the clouds that are built in
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The output format
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
