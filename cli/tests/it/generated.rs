//! Help, completions and man pages.

use crate::support::{Place, end};

/// Those that the program itself names.
fn commands() -> Vec<String> {
    let help = end(&["--help"]).stdout;
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        // What a description goes on with is further in.
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        name.split(' ').next().map(str::to_owned)
    });
    let names: Vec<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 10 && names.iter().any(|name| name == "serve"), "{names:?}");
    names
}

#[test]
fn help_names_every_command_and_every_code() {
    let ended = end(&["--help"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    for command in commands() {
        let own = end(&[&command, "--help"]);
        assert!(own.code == Some(0) && own.stdout.contains("Usage: leaderelect"), "{own:?}");
    }
    for code in ["0", "1", "64", "65", "69", "74", "75", "79", "80", "126", "127", "128+n"] {
        assert!(ended.stdout.contains(&format!(" {code}  ")), "{code}: {ended:?}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = end(&["completions", shell]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for command in commands() {
            assert!(ended.stdout.contains(&command), "{shell} does not complete {command}");
        }
        assert!(ended.stdout.contains("wait-timeout"), "{shell} does not complete options");
        assert!(!ended.stdout.contains("__watchdog"), "{shell} completes what is for nobody");
    }
    assert_eq!(end(&["completions", "tcsh"]).code, Some(64));
}

#[test]
fn bash_understands_its_completions() {
    let place = Place::new();
    let script = place.path("completions");
    std::fs::write(&script, end(&["completions", "bash"]).stdout).unwrap();
    let ask = r#"source "$0"; COMP_WORDS=(leaderelect sta); COMP_CWORD=1; _leaderelect leaderelect sta leaderelect
                 echo "${COMPREPLY[@]}""#;
    let output = std::process::Command::new("bash").args(["-c", ask]).arg(&script).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "status\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// The text of a section of a man page.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let found = [format!("\n.SH {name}\n"), format!("\n.SH \"{name}\"\n")];
    let text =
        found.iter().find_map(|heading| page.split_once(heading)).unwrap_or_else(|| panic!("no {name}: {page}")).1;
    text.split_once("\n.SH").map_or(text, |(text, _)| text)
}

fn check_sections(page: &str) {
    for name in ["NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"] {
        assert!(!section(page, name).trim().is_empty(), "{name}: {page}");
    }
    assert!(section(page, "EXIT STATUS").contains("leadership was lost"), "{page}");
    assert!(section(page, "EXAMPLES").contains("leaderelect"), "{page}");
}

#[test]
fn a_man_page_for_the_whole_and_for_each_command() {
    let page = end(&["man"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(page.stdout.contains(".TH leaderelect 1"), "{page:?}");
    check_sections(&page.stdout);
    assert!(page.stdout.contains("LEADERELECTION_HTTP_TOKEN"), "{page:?}");

    let place = Place::new();
    let directory = place.path("");
    assert_eq!(end(&["man", "--directory", directory.to_str().unwrap()]).code, Some(0));
    for command in commands() {
        let page = std::fs::read_to_string(directory.join(format!("leaderelect-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && !page.contains("EXTRA"), "{command}");
        assert!(page.contains("leaderelect(1)"), "{command}");
        check_sections(&page);
    }
    let run = std::fs::read_to_string(directory.join("leaderelect-run.1")).unwrap();
    let variables = section(&run, "ENVIRONMENT").replace('\\', "");
    assert!(variables.contains("LEADERELECT_LOCK_FILE\n.nf\n    The same as --lock-file."), "{variables}");
    assert!(section(&run, "EXAMPLES").contains("A job that never runs twice"), "{run}");
    let (_, synopsis) = run.split_once(".SH SYNOPSIS\n").unwrap();
    let synopsis = synopsis.split_once(".SH").unwrap().0.replace('\\', "");
    assert!(synopsis.contains("<URL> [-- <COMMAND>...]"), "{synopsis}");
    let whole = std::fs::read_to_string(directory.join("leaderelect.1")).unwrap().replace('\\', "");
    for named in whole.split_whitespace().filter_map(|word| word.trim_end_matches(',').strip_suffix("(1)")) {
        assert!(directory.join(format!("{named}.1")).exists(), "{named} has no page");
    }
    let ended = end(&["man", "--directory", "/nonexistent/directory"]);
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("the directory must exist"), "{ended:?}");
}

#[test]
fn the_version_names_the_commit_and_the_clouds() {
    let ended = end(&["--version"]);
    let (version, rest) = ended.stdout.trim().split_once(" (commit ").unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(version, concat!("leaderelect ", env!("CARGO_PKG_VERSION")));
    let (commit, features) = rest.split_once("; features: ").unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(features, "azure, gcs, kubernetes, lease-api, s3)", "these tests have all");
    // A copy without the repository has no commit.
    let is_name = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_name || commit == "unknown", "{ended:?}");
    assert_eq!(end(&["version"]).stdout, ended.stdout);
    let json: serde_json::Value = serde_json::from_str(&end(&["version", "-o", "json"]).stdout).unwrap();
    let features = serde_json::json!(["azure", "gcs", "kubernetes", "lease-api", "s3"]);
    assert_eq!((&json["commit"], &json["features"]), (&commit.into(), &features), "{json}");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(end(&["run", "--version"]).stdout.replace("leaderelect-run", "leaderelect"), ended.stdout);
}
