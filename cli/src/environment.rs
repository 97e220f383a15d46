//! The environment variables that set options.
//!
//! Every option has a variable, so that a URL with a secret is in no list of processes, and so that a unit or a
//! container can be configured without a command line of its own.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;

use clap::builder::{BoolishValueParser, TypedValueParser as _};
use clap::{Arg, ArgAction, Command};

/// The beginning of every such variable. The rest is the option's name.
pub(crate) const PREFIX: &str = "LEADERELECT_";

/// The variable with the token of a server, if there is no token file.
pub(crate) const TOKEN_VARIABLE: &str = "LEADERELECTION_HTTP_TOKEN";

/// Gives a variable to every option of the command and of its subcommands, and to the URLs that need no option.
pub(crate) fn with_variables(command: Command) -> Command {
    let has_option = has_option(&command);
    command
        .mut_args(|arg| if has_option && arg.is_positional() { arg } else { with_variable(arg) })
        .mut_subcommands(with_variables)
}

/// Returns `true` if an option names the same lock as the argument, so that the variable is the option's.
fn has_option(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some("lock"))
}

fn with_variable(arg: Arg) -> Arg {
    let Some(variable) = variable(&arg) else { return arg };
    // Containers and units set to nothing what they do not set, and other programs take that for a variable that is not set.
    if std::env::var_os(&variable).is_some_and(|value| value.is_empty()) {
        return arg;
    }
    let arg = match arg.get_action() {
        // A flag that is off excludes no other option, so it counts as one that was not given.
        ArgAction::SetTrue if is_off(&variable) => return arg,
        // The usual value of a flag's variable is 1.
        ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
        _ => arg,
    };
    // The value may be a secret, such as the SAS in a URL.
    arg.env(variable).hide_env_values(true)
}

fn is_off(variable: &str) -> bool {
    let parsed = |value: OsString| BoolishValueParser::new().parse_ref(&Command::new(""), None, &value).ok();
    std::env::var_os(variable).and_then(parsed) == Some(false)
}

/// The name of the variable of an argument.
fn variable(arg: &Arg) -> Option<String> {
    let name = match arg.get_long() {
        Some(long) => long,
        None => {
            let is_url = |names: &[clap::builder::Str]| names.iter().any(|name| name.ends_with("URL"));
            arg.get_value_names().filter(|names| is_url(names)).map(|_| arg.get_id().as_str())?
        }
    };
    Some(format!("{PREFIX}{}", name.replace(['-', '.'], "_").to_uppercase()))
}

/// The variables of this kind that are set, known or not.
pub(crate) fn set() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok().filter(|name| name.starts_with(PREFIX)))
}

/// The variables that no command of a user gets: they may be secrets, and a leaderelect below the command would take them for
/// its own.
pub(crate) fn hidden() -> impl Iterator<Item = String> {
    set().chain([TOKEN_VARIABLE.to_owned()])
}

/// The variables of this kind that are set and belong to no option of any subcommand. A misspelt option would be ignored
/// without a word.
pub(crate) fn unknown(command: &Command) -> Vec<String> {
    let mut known = HashSet::new();
    collect(command, &mut known);
    let is_empty = |name: &String| std::env::var_os(name).is_some_and(|value| value.is_empty());
    set().filter(|name| !known.contains(name) && !is_of_a_service(name) && !is_empty(name)).collect()
}

fn collect(command: &Command, known: &mut HashSet<String>) {
    let has_option = has_option(command);
    let takes_one = |arg: &&Arg| arg.get_env().is_some() || matches!(arg.get_action(), ArgAction::SetTrue);
    let those = command.get_arguments().filter(takes_one).filter(|arg| !(has_option && arg.is_positional()));
    known.extend(those.filter_map(variable));
    command.get_subcommands().for_each(|subcommand| collect(subcommand, known));
}

/// Returns the variable that has set this option, such as `--lock`; `None` if the command line or a default has.
pub(crate) fn source(option: &str) -> Option<String> {
    let variable = format!("{PREFIX}{}", option.strip_prefix("--")?.replace(['-', '.'], "_").to_uppercase());
    std::env::var_os(&variable).filter(|value| !value.is_empty())?;
    let names = |arg: OsString| {
        arg.to_str()
            .and_then(|arg| arg.strip_prefix(option))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let is_given = std::env::args_os().skip(1).take_while(|arg| arg != "--").any(names);
    (!is_given).then_some(variable)
}

/// Returns the variables that have set the options of which a message speaks, as `'--lock <URL>'`.
pub(crate) fn sources(message: &str) -> Vec<String> {
    let quoted = message.split("'--").skip(1).filter_map(|rest| rest.split(['\'', ' ', '=']).next());
    let found = quoted.filter_map(|name| source(&format!("--{name}"))).collect::<BTreeSet<_>>();
    found.into_iter().collect()
}

/// Returns `true` for the variables that Kubernetes sets in every pod for a service of that name.
fn is_of_a_service(name: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || name.ends_with("_PORT")
}

/// The values of these variables, which no message may repeat in full.
pub(crate) fn values() -> impl Iterator<Item = String> {
    set().filter_map(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest line of a help text.
    const WIDTH: usize = 80;

    /// The command and all commands below it.
    fn all(command: &Command) -> Vec<Command> {
        std::iter::once(command.clone()).chain(command.get_subcommands().flat_map(all)).collect()
    }

    fn commands() -> Vec<Command> {
        let mut program = crate::command().disable_help_subcommand(true);
        program.build();
        let commands = all(&program);
        assert!(commands.len() > 10, "{commands:?}");
        commands
    }

    #[test]
    fn every_option_has_a_variable_that_is_named_in_the_help_without_its_value() {
        for mut command in commands() {
            let help = command.render_long_help().to_string();
            let options = command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
            let mut names = BTreeSet::new();
            for arg in options.filter(|arg| arg.get_long().is_some()) {
                let name = arg.get_env().unwrap_or_else(|| panic!("{}: {arg} has no variable", command.get_name()));
                let name = name.to_str().unwrap().to_owned();
                assert!(arg.is_hide_env_values_set() && help.contains(&format!("[env: {name}]")), "{name}: {help}");
                assert!(names.insert(name.clone()), "{}: {name} sets two options", command.get_name());
            }
        }
    }

    #[test]
    fn the_help_fits_a_terminal_and_says_defaults() {
        for mut command in commands() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            }
            // What is laid out by hand is not broken anew.
            for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= WIDTH && help.contains(line), "{name}: {line}");
                }
            }
            for arg in command.get_positionals() {
                assert_eq!(arg.get_help_heading(), None, "{name}: {arg} is no option of a group");
            }
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                for default in arg.get_default_values() {
                    let default = format!("[default: {}]", default.to_str().unwrap());
                    assert!(help.contains(&default), "{name}: {arg} {default}");
                }
            }
        }
    }
}
