//! The program `leaderelect`. Its code is the library of this package, so that tests of other packages can have it.

use std::process::ExitCode;

fn main() -> ExitCode {
    leaderelection_cli::main()
}
