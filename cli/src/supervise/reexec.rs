//! This program, which starts itself as a helper process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::process::Command;

use crate::exit::Failure;

/// The argument with which this program starts the command.
pub(crate) const START: &str = "__start";

/// The argument with which this program watches over the command.
pub(crate) const WATCHDOG: &str = "__watchdog";

/// The argument with which this program guards the watchdog.
pub(crate) const GUARD: &str = "__guard";

/// The beginning of the variables that tell the guard and the watchdog the command.
const COMMAND: &str = "LEADERELECT_COMMAND_";

/// The longest value of such a variable, in bytes. Linux takes 128 KiB with the name.
const LONGEST: usize = 100_000;

/// The path of this program, even if a newer version has replaced its file.
fn path() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    env::current_exe().unwrap_or_else(|_| PathBuf::from("leaderelect"))
}

/// Fails where no helper can be started, before anybody relies on one.
pub(crate) fn check() -> Result<(), Failure> {
    if cfg!(target_os = "linux") && !path().exists() {
        return Err(Failure::internal(
            "/proc is not mounted, but is needed to find the processes of the command; mount it: mount -t proc proc /proc",
        ));
    }
    Ok(())
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

/// Passes the arguments of the command to a helper, each behind its length. They are as long together as the system takes
/// arguments, and a variable for each would take more room.
pub(crate) fn pass_messages(helper: &mut Command, words: &[OsString]) {
    let mut all = Vec::new();
    for word in words {
        all.extend_from_slice(format!("{}:", word.len()).as_bytes());
        all.extend_from_slice(word.as_bytes());
    }
    helper.envs(variables().zip(all.chunks(LONGEST).map(OsStr::from_bytes)));
}

/// Returns the arguments of the command that this helper got.
pub(crate) fn told_words() -> Vec<OsString> {
    let all: Vec<u8> = variables().map_while(env::var_os).flat_map(OsString::into_vec).collect();
    words_in(&all)
}

fn words_in(all: &[u8]) -> Vec<OsString> {
    let (mut words, mut rest) = (Vec::new(), all);
    while let Some((word, others)) = first_word(rest) {
        words.push(OsStr::from_bytes(word).to_owned());
        rest = others;
    }
    words
}

fn first_word(all: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = all.iter().position(|byte| *byte == b':')?;
    let length = str::from_utf8(all.get(..colon)?).ok()?.parse().ok()?;
    all.get(colon + 1..)?.split_at_checked(length)
}

/// Keeps these arguments out of the environment of the command.
pub(crate) fn forget_words(command: &mut Command) {
    for variable in variables().take_while(|variable| env::var_os(variable).is_some()) {
        command.env_remove(variable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_are_told_in_variables_that_the_system_takes() {
        let words = ["", ":", "7:a", "naïve", &"x".repeat(131_071), &":".repeat(3 * LONGEST)].map(OsString::from);
        let mut helper = Command::new("helper");
        pass_messages(&mut helper, &words);
        let told: Vec<_> =
            helper.get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
        assert!(told.iter().all(|(name, value)| name.len() + value.len() < 128 << 10), "{}", told.len());
        let all: Vec<u8> = variables()
            .map_while(|variable| {
                let found = told.iter().find(|(name, _)| *name == *variable)?;
                Some(found.1.clone().into_vec())
            })
            .flatten()
            .collect();
        assert_eq!(words_in(&all), words);
    }
}
