//! The environment variables that set options.
//!
//! Every option has a variable, so that a URL with a secret is in no list of processes, and so that a unit or a
//! container can be configured without a command line of its own.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;

use clap::builder::{BoolishValueParser, StyledStr, TypedValueParser as _};
use clap::{Arg, ArgAction, Command};

/// The beginning of every such variable. The rest is the option's name.
pub(crate) const PREFIX: &str = "LEADERELECT_";

/// The variable with the token of a server, if there is no token file.
pub(crate) const TOKEN_VARIABLE: &str = "LEADERELECTION_HTTP_TOKEN";

/// The options that were renamed, each with its former name. The former option and its variable keep working; no help
/// shows them.
const RENAMED: &[(&str, &str)] = &[
    ("lease-duration", "lease"),
    ("renew-deadline", "renew"),
    ("retry-period", "retry"),
    ("failback", "take-back"),
    ("quorum", "needed"),
    ("second-lock", "also"),
    ("endpoint", "also"),
    ("second-folder", "also"),
    ("service", "purpose"),
    ("job-id", "once-for"),
    ("heartbeat-timeout", "ping-within"),
    ("exit-on-stdin-eof", "end-with-stdin"),
];

/// The end of `-h`, which has no room for the variable of each option.
const NOTE: &str = "\
Every option can be set by a variable: --lock-file by LEADERELECT_LOCK_FILE.
All options, details and examples: --help";

/// Gives a variable to every option of the command and of its subcommands, and to the URLs that need no option.
pub(crate) fn with_variables(command: Command) -> Command {
    let has_option = has_option(&command);
    let command = if command.get_after_help().is_none() { command.after_help(NOTE) } else { command };
    command
        .mut_args(|arg| if has_option && arg.is_positional() { arg } else { with_variable(arg) })
        .mut_subcommands(with_variables)
}

/// Returns `true` if an option names the same lock as the argument, so that the variable is the option's.
fn has_option(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some("lock"))
}

fn with_variable(arg: Arg) -> Arg {
    let Some(name) = name(&arg).map(str::to_owned) else { return arg };
    let former = former(&name);
    let arg = with_help(arg, &variable_of(&name));
    let arg = former.into_iter().fold(arg, Arg::alias);
    // Containers and units set to nothing what they do not set, and other programs take that for a variable that is not set.
    let is_set = |variable: &String| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let variable = match variables_of(&name).find(is_set) {
        Some(variable) => variable,
        None if std::env::var_os(variable_of(&name)).is_some() => return arg,
        None => variable_of(&name),
    };
    let arg = match arg.get_action() {
        // A flag that is off excludes no other option, so it counts as one that was not given.
        ArgAction::SetTrue if is_off(&variable) => return arg,
        // The usual value of a flag's variable is 1.
        ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
        _ => arg,
    };
    // The value may be a secret, such as the SAS in a URL. The help names the variable already.
    arg.env(variable).hide_env_values(true).hide_env(true)
}

/// Writes the variable and the default behind the help of an option: in `-h` one line for each option, in `--help` one paragraph.
fn with_help(arg: Arg, variable: &str) -> Arg {
    let text = |help: Option<&StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let short = text(arg.get_help());
    let long = text(arg.get_long_help().or(arg.get_help())).replacen("\n\n", ". ", 1);
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let takes_value = arg.get_action().takes_values();
    let default = if takes_value && !defaults.is_empty() { format!(" [default: {defaults}]") } else { String::new() };
    arg.help(format!("{short}{default}"))
        .long_help(format!("{long}{default} [env: {variable}]"))
        .hide_default_value(takes_value)
        .hide_possible_values(takes_value)
}

fn is_off(variable: &str) -> bool {
    let parsed = |value: OsString| BoolishValueParser::new().parse_ref(&Command::new(""), None, &value).ok();
    std::env::var_os(variable).and_then(parsed) == Some(false)
}

/// The name that the variable of an argument has after its prefix.
fn name(arg: &Arg) -> Option<&str> {
    arg.get_long().or_else(|| {
        let is_url = |names: &[clap::builder::Str]| names.iter().any(|name| name.ends_with("URL"));
        arg.get_value_names().filter(|names| is_url(names)).map(|_| arg.get_id().as_str())
    })
}

/// The name of the variable of an argument.
pub(crate) fn variable(arg: &Arg) -> Option<String> {
    name(arg).map(variable_of)
}

fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.replace(['-', '.'], "_").to_uppercase())
}

/// The former name of an option; `None` if it has always had this one.
fn former(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(new, _)| *new == name).map(|(_, old)| *old)
}

/// Returns the present name of an option of this command line that is given by its former one, such as `--lease`; `None` if this is
/// no former name.
pub(crate) fn present_name(former: &str) -> Option<String> {
    let (program, former) = (crate::command(), former.strip_prefix("--")?);
    let command = std::env::args_os().skip(1).find_map(|word| program.find_subcommand(word))?;
    let is_here = |new: &str| command.get_arguments().any(|arg| arg.get_long() == Some(new));
    RENAMED.iter().find(|(new, old)| *old == former && is_here(new)).map(|(new, _)| format!("--{new}"))
}

/// The variables that set an option, first the one that wins.
fn variables_of(name: &str) -> impl Iterator<Item = String> {
    std::iter::once(variable_of(name)).chain(former(name).map(variable_of))
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
    known.extend(those.filter_map(name).flat_map(variables_of));
    command.get_subcommands().for_each(|subcommand| collect(subcommand, known));
}

/// Returns the variable that has set this option, such as `--lock`; `None` if the command line or a default has.
pub(crate) fn source(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let variable = variables_of(name).find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))?;
    let names = |arg: OsString| {
        let given = arg.to_str().and_then(|arg| arg.strip_prefix("--"));
        given
            .and_then(|given| given.split('=').next())
            .is_some_and(|given| given == name || former(name) == Some(given))
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

    /// The text without the ends of its lines.
    fn words(help: &str) -> String {
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_help_names_every_variable_without_its_value() {
        for mut command in commands() {
            let help = words(&command.render_long_help().to_string());
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

    /// The most lines of `-h`: one screen.
    const SCREEN: usize = 45;

    /// The most characters of the effect of an option, which has one line in `-h`.
    const EFFECT: usize = 43;

    /// The beginnings of a text that names a thing, and not what the option does.
    const NOT_IMPERATIVE: [&str; 12] =
        ["The", "A", "An", "This", "That", "As", "For", "If", "In", "Of", "Whether", "Number"];

    #[test]
    fn the_short_help_is_one_screen_with_one_line_for_each_option() {
        for mut command in commands() {
            let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= SCREEN, "{name} has {} lines: {help}", help.lines().count());
            assert!(!help.contains("[env:"), "{name}: {help}");
            for arg in command.get_arguments().filter(|arg| arg.get_id() != "help" && arg.get_id() != "version") {
                let shown = arg.get_help().unwrap().to_string();
                let effect = shown.split(" [default: ").next().unwrap();
                assert!(effect.chars().count() <= EFFECT && !effect.ends_with('.'), "{name}: {arg}: {effect}");
                let first = effect.split([' ', ';', ',']).next().unwrap();
                assert!(first.starts_with(char::is_uppercase) && !NOT_IMPERATIVE.contains(&first), "{name}: {effect}");
                let option = arg.get_long().map_or_else(|| "[".to_owned(), |long| format!("--{long}"));
                let line = help.lines().find(|line| line.ends_with(&shown) && line.contains(&option));
                let is_required = arg.is_positional() && arg.is_required_set();
                let is_shown = line.is_some() || is_required || arg.is_hide_short_help_set();
                assert!(is_shown, "{name}: {arg} has no line of its own: {help}");
                if let Some(long) = arg.get_long_help() {
                    assert!(long.to_string().starts_with(effect), "{name}: {arg}: {long}");
                }
            }
        }
    }

    #[test]
    fn the_long_help_begins_with_the_purpose_and_an_example() {
        for mut command in commands() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            let (about, _) = help.split_once("\nUsage:").unwrap();
            assert!(about.starts_with(&command.get_about().unwrap().to_string()), "{name}: {help}");
            assert!(about.contains("\n\n    leaderelect "), "{name} has no example: {help}");
        }
    }

    /// The most columns of `--help`.
    const COLUMNS: usize = 80;

    #[test]
    fn the_lines_of_the_long_help_fit_its_columns() {
        for command in commands() {
            let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            // A paragraph of one line is broken where the terminal needs it. Lines of a broken one would be broken again.
            for line in about.split("\n\n").filter(|paragraph| paragraph.contains('\n')).flat_map(str::lines) {
                assert!(line.chars().count() <= COLUMNS, "{}: {line}", command.get_name());
            }
        }
    }

    #[test]
    fn a_former_name_of_an_option_is_an_alias_that_no_help_shows() {
        for (new, old) in RENAMED {
            let mut found = 0;
            for mut command in commands() {
                let help = command.render_long_help().to_string();
                let shown = help.split(|c: char| !c.is_alphanumeric() && c != '-');
                assert!(
                    shown.clone().all(|word| word != format!("--{old}")),
                    "{}: --{old}: {help}",
                    command.get_name()
                );
                let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(new)) else { continue };
                assert!(arg.get_all_aliases().is_some_and(|aliases| aliases.contains(old)), "--{new}");
                found += 1;
            }
            assert!(found > 0, "no command has --{new}");
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
                    assert!(line.chars().count() <= WIDTH, "{name}: {line}");
                }
            }
            if let Some(text) = command.get_after_long_help() {
                for line in text.to_string().lines() {
                    assert!(help.contains(line), "{name}: {line}");
                }
            }
            for arg in command.get_positionals() {
                assert_eq!(arg.get_help_heading(), None, "{name}: {arg} is no option of a group");
            }
            let help = words(&help);
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                for default in arg.get_default_values() {
                    let default = format!("[default: {}]", default.to_str().unwrap());
                    assert!(help.contains(&default), "{name}: {arg} {default}");
                }
            }
        }
    }
}
