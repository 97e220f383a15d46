//! This program, which starts itself as a helper process.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The argument with which this program starts the command.
pub(crate) const START: &str = "__start";

/// The argument with which this program watches over the command.
pub(crate) const WATCHDOG: &str = "__watchdog";

/// The argument with which this program guards the watchdog.
pub(crate) const GUARD: &str = "__guard";

/// The beginning of the variables that tell the guard and the watchdog the command.
const COMMAND: &str = "LEADERELECT_COMMAND_";

/// The path of this program, even if a newer version has replaced its file.
fn path() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    env::current_exe().unwrap_or_else(|_| PathBuf::from("leaderelect"))
}

/// A helper process. The guard and the watchdog have names of their own, and no name of a command among their arguments:
/// `pkill -f leaderelect` must not end the processes that end the command of a `leaderelect` that was killed.
pub(crate) fn helper(argument: &str) -> Command {
    let mut command = Command::new(path());
    std::os::unix::process::CommandExt::arg0(&mut command, name(argument).unwrap_or("leaderelect"));
    command.arg(argument);
    command
}

/// The name of a helper that lives as long as the command: at most 15 letters, which Linux keeps.
fn name(argument: &str) -> Option<&'static str> {
    match argument {
        GUARD => Some("leader-guard"),
        WATCHDOG => Some("leader-watchdog"),
        _ => None,
    }
}

/// Gives this process the name of a helper, for `ps` and `pkill`. The system has named it after the file that was started.
pub(crate) fn take_name(argument: &str) {
    if let Some(name) = name(argument) {
        // Without /proc, only the first argument tells the name.
        let _ = fs::write("/proc/self/comm", name);
    }
}

fn variables() -> impl Iterator<Item = String> {
    (0_u32..).map(|index| format!("{COMMAND}{index}"))
}

/// Passes the arguments of the command to a helper.
pub(crate) fn tell_words(helper: &mut Command, words: &[OsString]) {
    helper.envs(variables().zip(words));
}

/// Returns the arguments of the command that this helper got.
pub(crate) fn told_words() -> Vec<OsString> {
    variables().map_while(env::var_os).collect()
}

/// Keeps these arguments out of the environment of the command.
pub(crate) fn forget_words(command: &mut Command, words: &[OsString]) {
    for (variable, _) in variables().zip(words) {
        command.env_remove(variable);
    }
}
