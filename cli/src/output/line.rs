//! One line of standard error, for people or for programs.

use std::fmt;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use leaderelection::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value};
use tracing::Level;
use tracing::field::{Field, Visit};

use crate::lock::view;
use crate::output::escape::{escape, plain_json};

/// The format of results, and of messages and the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object per line
    Json,
}

impl Format {
    /// The format of messages that the command line or the environment asks for, if the command line cannot be understood.
    pub(crate) fn asked_for(args: impl Iterator<Item = String>, variable: Option<&str>) -> Self {
        let mut asked = variable.map(str::to_owned);
        let mut args = args.take_while(|arg| arg != "--");
        while let Some(arg) = args.next() {
            match arg.strip_prefix("--log-format") {
                Some("") => asked = args.next(),
                Some(value) => asked = value.strip_prefix('=').map(str::to_owned).or(asked),
                None => {}
            }
        }
        asked.and_then(|asked| Self::from_str(&asked, false).ok()).unwrap_or_default()
    }

    /// The value of `--log-format`.
    #[cfg(unix)]
    pub(crate) fn as_arg(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rendering {
    pub(super) format: Format,
    pub(super) colour: bool,
}

/// The fields of an event or a span, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(pub(super) Vec<(&'static str, Given)>);

/// The value of a field.
#[derive(Clone, Debug)]
pub(super) struct Given {
    value: Value,
    /// The value is a text, which is shown in quotes, so that its end is seen. It was not formatted for people already.
    is_quoted: bool,
}

impl Given {
    fn shown(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }

    fn quoted(&self) -> String {
        if self.is_quoted { format!("{:?}", self.shown()) } else { self.shown() }
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value, false);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value, false);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value, false);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value, true);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"), false);
    }
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>, is_quoted: bool) {
        let name = field.name();
        self.0.push((name.strip_prefix(OF_SPANS).unwrap_or(name), Given { value: value.into(), is_quoted }));
    }

    /// Takes the message out.
    pub(super) fn take_message(&mut self) -> String {
        let is_message = |(name, _): &(&str, Given)| *name == "message";
        let message = self.0.iter().position(is_message).map(|index| self.0.remove(index).1);
        message.as_ref().map(Given::shown).unwrap_or_default()
    }
}

/// A line before it has a form.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) level: Level,
    pub(super) message: String,
    pub(super) fields: Fields,
    pub(super) origin: Origin,
}

/// The origin of a line.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// The command itself.
    Command,
    /// An event of the log, within spans that have fields as well. The target is that of a foreign crate.
    Log { target: Option<String>, around: Fields },
}

/// The beginning of the fields of the library's spans. It is of use beside other libraries' fields, and not in our lines.
const OF_SPANS: &str = "leader_election.";

/// The fields of those spans that are not in a line for people: the same in every line of a process, or for traces.
const NOT_FOR_PEOPLE: [&str; 5] = ["name", "identity", "fencing_token", "begin", "end"];

/// The fewest characters of a value that is not repeated in a line.
const SHORTEST_NAME: usize = 8;

impl Line {
    pub(super) fn said(level: Level, message: impl fmt::Display) -> Self {
        Self { level, message: message.to_string(), fields: Fields::default(), origin: Origin::Command }
    }

    /// The line in its form, with its end.
    pub(super) fn render(&self, rendering: Rendering) -> String {
        match (rendering.format, &self.origin) {
            (Format::Json, _) => self.as_json(),
            (Format::Text, Origin::Command) => self.as_words(rendering.colour),
            (Format::Text, Origin::Log { target, around }) => {
                self.as_event(target.as_deref(), around, rendering.colour)
            }
        }
    }

    fn as_words(&self, colour: bool) -> String {
        let bold = Style::new().bold();
        let error = if self.level == Level::ERROR {
            format!("{} ", styled("error:", bold.fg_color(Some(AnsiColor::Red.into())), colour))
        } else {
            String::new()
        };
        format!("{} {error}{}\n", styled("leaderelect:", bold, colour), escape(&self.message))
    }

    fn as_event(&self, target: Option<&str>, around: &Fields, colour: bool) -> String {
        let time = view::time(SystemClock.wall_time());
        let level = styled(format_args!("{:>5}", self.level), colour_of(self.level), colour);
        let target = target.map(|target| format!("{target}: ")).unwrap_or_default();
        let mut text = format!("{target}{}", escape(&self.message));
        let name = |name| styled(name, Style::new().italic(), colour);
        for (index, (field, value)) in self.fields.0.iter().enumerate() {
            if !self.is_repeated(index) {
                text += &format!(" {}={}", name(*field), escape(value.quoted()));
            }
        }
        for (field, value) in &around.0 {
            // The error of a request names the lock already.
            let is_news = !NOT_FOR_PEOPLE.contains(field) && !text.contains(&value.shown());
            if is_news {
                text += &format!(" {}={}", name(*field), escape(value.quoted()));
            }
        }
        format!("{time} {level} {text}\n")
    }

    /// Returns `true` if the message or another field, such as the error, contains the value of this field, such as the lock.
    fn is_repeated(&self, index: usize) -> bool {
        let shown = self.fields.0[index].1.shown();
        // A short value, such as a number, may be found by accident.
        let is_name = shown.len() >= SHORTEST_NAME;
        let contains = |(other, (_, value)): (usize, &(&str, Given))| {
            other != index && {
                let text = value.shown();
                text.contains(&shown) && (text != shown || other < index)
            }
        };
        is_name && (self.message.contains(&shown) || self.fields.0.iter().enumerate().any(contains))
    }

    fn as_json(&self) -> String {
        let mut object = Map::new();
        object.insert("time".to_owned(), view::time(SystemClock.wall_time()).into());
        object.insert("level".to_owned(), self.level.as_str().to_lowercase().into());
        object.insert("message".to_owned(), self.message.as_str().into());
        if let Origin::Log { target, around } = &self.origin {
            if let Some(target) = target {
                object.insert("target".to_owned(), target.as_str().into());
            }
            object.extend(around.0.iter().map(|(name, value)| ((*name).to_owned(), value.value.clone())));
        }
        object.extend(self.fields.0.iter().map(|(name, value)| ((*name).to_owned(), value.value.clone())));
        format!("{}\n", plain_json(&Value::Object(object).to_string()))
    }
}

fn colour_of(level: Level) -> Style {
    let colour = match level {
        Level::ERROR => AnsiColor::Red,
        Level::WARN => AnsiColor::Yellow,
        Level::INFO => AnsiColor::Green,
        Level::DEBUG => AnsiColor::Blue,
        Level::TRACE => AnsiColor::Magenta,
    };
    Style::new().fg_color(Some(colour.into()))
}

fn styled(text: impl fmt::Display, style: Style, colour: bool) -> String {
    if colour { format!("{style}{text}{style:#}") } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "s3://bucket/locks/scheduler?region=eu-central-1";

    fn event(fields: &[(&'static str, &str)]) -> Line {
        let all = |fields: &[(&'static str, &str)]| {
            let given = |value: &str| Given { value: value.into(), is_quoted: true };
            Fields(fields.iter().map(|(name, value)| (*name, given(value))).collect())
        };
        let around = all(&[("name", LOCK), ("lock", LOCK), ("identity", "node-1")]);
        Line {
            level: Level::WARN,
            message: "a request to the lock failed; trying again".to_owned(),
            fields: all(fields),
            origin: Origin::Log { target: None, around },
        }
    }

    #[test]
    fn the_lock_is_named_once_and_the_line_is_short() {
        let error = format!("cannot read {LOCK}: no answer within 2.5s");
        let both = event(&[("lock", LOCK), ("error", &error)]);
        for line in [event(&[]), event(&[("error", &error)]), both] {
            let text = line.render(Rendering::default());
            assert_eq!(text.matches(LOCK).count(), 1, "{text}");
            assert!(text.len() < 200 && text.ends_with('\n') && text.contains(" WARN a request"), "{text}");
        }
    }

    #[test]
    fn json_has_all_fields_and_no_control_character() {
        let line = event(&[("error", "a \u{1b}[2K \u{202e} \n b")]);
        let text = line.render(Rendering { format: Format::Json, colour: false });
        assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["error"], "a \u{1b}[2K \u{202e} \n b");
        assert_eq!((&object["lock"], &object["identity"]), (&LOCK.into(), &"node-1".into()));
        assert_eq!((&object["level"], &object["message"]), (&"warn".into(), &line.message.as_str().into()));
    }

    #[test]
    fn the_format_is_known_even_if_the_rest_is_not() {
        let asked = |args: &[&str], variable| Format::asked_for(args.iter().map(|arg| (*arg).to_owned()), variable);
        assert_eq!(asked(&["run", "--log-format", "json"], None), Format::Json);
        assert_eq!(asked(&["--log-format=json", "--nonsense"], Some("text")), Format::Json);
        assert_eq!(asked(&["run", "--", "--log-format", "json"], None), Format::Text);
        assert_eq!(asked(&["run"], Some("json")), Format::Json);
        assert_eq!(asked(&["--log-format"], None), Format::Text);
    }
}
