//! The counts as a plot: dollars a month over the number of locks.

use leaderelection_backends::prices::Prices;

use super::case::Way;
use super::table::{Row, grouped};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 58.0;

/// The colours, which follow the reader's choice between light and dark.
const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:600}\
.note{fill:#59636e}\
.paper{fill:#fff}\
.grid{stroke:#d1d9e0;stroke-width:1}\
.axis{stroke:#59636e;stroke-width:1}\
.line{fill:none;stroke-width:2.5}\
.leases{stroke:#b35900}.sessions{stroke:#0969da}\
circle.leases{fill:#b35900}circle.sessions{fill:#0969da}\
text.leases{fill:#b35900;stroke:none;font-weight:600}text.sessions{fill:#0969da;stroke:none;font-weight:600}\
@media(prefers-color-scheme:dark){\
text{fill:#f0f6fc}.note{fill:#9198a1}.paper{fill:#0d1117}.grid{stroke:#3d444d}.axis{stroke:#9198a1}\
.leases{stroke:#f0883e}.sessions{stroke:#58a6ff}\
circle.leases{fill:#f0883e}circle.sessions{fill:#58a6ff}\
text.leases{fill:#f0883e}text.sessions{fill:#58a6ff}}";

/// One axis: the powers of ten from `first` to `last`, between two positions.
struct Axis {
    first: i32,
    last: i32,
    from: f64,
    to: f64,
}

impl Axis {
    /// The axis from `from` to `to` that shows all `values`.
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let smallest = values.clone().fold(f64::INFINITY, f64::min).log10();
        let largest = values.fold(0.0, f64::max).log10();
        Self { first: smallest.floor() as i32, last: largest.ceil() as i32, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.from + part * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10_f64.powi(power))
    }
}

/// Draws the price of a month for `processes` processes as an SVG, with one line for each way.
#[must_use]
pub fn plot(rows: &[Row], processes: usize) -> String {
    let points = |way: Way| {
        let drawn = move |row: &&Row| row.case.way == way && row.case.processes == processes;
        rows.iter().filter(drawn).map(|row| (row.case.locks as f64, row.requests.dollars_a_month(&Prices::S3)))
    };
    let all = points(Way::Leases).chain(points(Way::Sessions));
    let x = Axis::around(all.clone().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::around(all.map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let (service, as_of) = (Prices::S3.service, Prices::S3.as_of);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">Dollars a month over the number of locks: leases and \
         sessions of {processes} processes</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"26\">Price of leading N locks, {processes} processes</text>\n\
         <text class=\"note\" x=\"{LEFT}\" y=\"46\">{service}, list price of {as_of}, 15 s / 10 s / 2 s</text>\n"
    );
    let mut draw = |line: String| svg += &(line + "\n");
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for locks in x.powers() {
        let (at, label) = (x.at(locks), grouped(locks as u64));
        draw(format!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom:.1}\"/>"));
        draw(format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", bottom + 20.0));
    }
    for dollars in y.powers() {
        let (at, label) = (y.at(dollars), grouped(dollars as u64));
        draw(format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right:.1}\"/>"));
        let (x, y) = (LEFT - 8.0, at + 4.5);
        draw(format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">${label}</text>"));
    }
    let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
    draw(format!("<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom:.1}H{right:.1}\"/>"));
    draw(format!("<text x=\"{middle_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">locks</text>", HEIGHT - 14.0));
    let turned = format!("transform=\"translate(20 {middle_y:.1}) rotate(-90)\"");
    draw(format!("<text {turned} text-anchor=\"middle\">US dollars a month</text>"));
    for way in [Way::Leases, Way::Sessions] {
        let class = way.name();
        let drawn: Vec<_> = points(way).map(|(locks, dollars)| (x.at(locks), y.at(dollars))).collect();
        let line: Vec<_> = drawn.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        draw(format!("<path class=\"line {class}\" d=\"M{}\"/>", line.join("L")));
        drawn
            .iter()
            .for_each(|(x, y)| draw(format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>")));
        if let Some((x, y)) = drawn.last() {
            draw(format!("<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{class}</text>", x + 10.0, y + 4.5));
        }
    }
    svg.push_str("</svg>\n");
    svg
}
