//! The judge of histories, a program in Go.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::LazyLock;

/// The folder with the judge, which needs Go.
pub const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/porcupine");

/// The program, which a process builds once. `None` without Go.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let program = env::current_exe().unwrap().with_file_name("judge-of-histories");
    // Other processes build it at the same time, and none runs a part of it.
    let built = program.with_extension(process::id().to_string());
    let mut build = Command::new("go");
    build.args(["build", "-C", JUDGE, "-o"]).arg(&built).arg(".");
    match build.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        said => {
            let said = said.unwrap();
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        }
    }
    fs::rename(built, &program).unwrap();
    Some(program)
});

/// Lets the judge read a history. Returns `None` without Go. `lies` says that a conflict or a refusal may hide an effect, or
/// come before one.
///
/// # Panics
///
/// If the judge cannot be built or read the history.
#[must_use]
pub fn verdict(history: &Path, lies: bool) -> Option<Result<(), String>> {
    let Some(program) = &*PROGRAM else {
        println!("skipped: Go is not installed, so the history is not judged");
        return None;
    };
    let mut judge = Command::new(program);
    let judged = judge.args(lies.then_some("-lies")).stdin(File::open(history).unwrap()).output().unwrap();
    println!("{}", String::from_utf8_lossy(&judged.stdout).trim_end());
    Some(if judged.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&judged.stderr).into_owned()) })
}

/// Demands that some order of the calls explains the answers. A history that nothing explains is kept.
///
/// # Panics
///
/// If there is no such order.
pub fn judge(history: &Path, lies: bool) {
    if let Some(Err(refused)) = verdict(history, lies) {
        let kept = history.with_extension("refused");
        fs::copy(history, &kept).unwrap();
        panic!("{}: {refused}", kept.display());
    }
}
