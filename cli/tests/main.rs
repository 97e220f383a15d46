//! `leaderelect`, for the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    leaderelection_cli::main()
}
