//! Shapes and words as SVG.

use std::fmt::Write;

/// A point or a size, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Xy {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) fn xy(x: f64, y: f64) -> Xy {
    Xy { x, y }
}

/// A drawing under way. Later shapes lie over earlier ones.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

/// The font has one width for all characters: this, in pixels.
const CHARACTER: f64 = 6.7;

const STYLE: &str = "\
text { font: 11px monospace; fill: #222; }
.name { font-weight: bold; }
.figure { fill: #a03000; paint-order: stroke; stroke: #fff; stroke-width: 4px; }
.number { text-anchor: middle; }
rect { stroke: #555; }
.paper { fill: #fff; stroke: none; }
.supernode { fill: #f7f7fb; stroke: #99a; stroke-dasharray: 6 4; }
.host { fill: #fff; stroke-width: 1.5; }
.node { fill: #eef4ee; stroke: #8a8; }
.rank { fill: #cfe2ff; stroke: #68c; }
.nic { fill: #fff3d6; stroke: #ca6; }
.down { fill: #eee; stroke: #aaa; }
.link { stroke: #555; stroke-width: 1.5; fill: none; }
.switch { stroke: #555; stroke-width: 4; }
.pair { stroke: #a03000; stroke-width: 1.5; fill: none; stroke-dasharray: 3 3; }";

impl Canvas {
    pub(super) fn rect(&mut self, class: &str, at: Xy, size: Xy) {
        let (Xy { x, y }, Xy { x: width, y: height }) = (at, size);
        self.push(&format!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>"#
        ));
    }

    pub(super) fn line(&mut self, class: &str, from: Xy, to: Xy) {
        let (Xy { x: x1, y: y1 }, Xy { x: x2, y: y2 }) = (from, to);
        self.push(&format!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    /// A curve that leaves one point upwards and comes to the other from above. Returns its middle.
    pub(super) fn arc(&mut self, class: &str, from: Xy, to: Xy, height: f64) -> Xy {
        let (above_from, above_to) = (from.y - height, to.y - height);
        self.push(&format!(
            r#"<path class="{class}" d="M {} {} C {} {above_from}, {} {above_to}, {} {}"/>"#,
            from.x, from.y, from.x, to.x, to.x, to.y
        ));
        xy((from.x + to.x) / 2.0, (from.y + to.y) / 2.0 - height * 0.75)
    }

    /// Text that begins at a point of its base line, shortened to `width`.
    pub(super) fn text(&mut self, class: &str, at: Xy, width: f64, text: &str) {
        let Xy { x, y } = at;
        let text = escaped(&shortened(text, (width / CHARACTER) as usize));
        self.push(&format!(r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#));
    }

    /// The whole file.
    pub(super) fn finish(self, size: Xy) -> String {
        let (Xy { x: width, y: height }, body) = (size, self.body);
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<style>
{STYLE}
</style>
<rect class="paper" x="0" y="0" width="{width}" height="{height}"/>
{body}</svg>
"#
        )
    }

    fn push(&mut self, element: &str) {
        writeln!(self.body, "{element}").expect("a string takes everything that is written to it");
    }
}

fn shortened(text: &str, characters: usize) -> String {
    match text.chars().count() <= characters {
        true => text.to_owned(),
        false => text.chars().take(characters.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The text as XML can hold it: control characters have no place there, however they are written.
fn escaped(text: &str) -> String {
    let is_lost = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            lost if is_lost(lost) => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_file() {
        assert_eq!(
            escaped("<a & \"b\">\u{1}\u{ffff}é"),
            "&lt;a &amp; &quot;b&quot;&gt;\u{fffd}\u{fffd}é"
        );
    }

    #[test]
    fn long_text_is_shortened_to_what_fits() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("äbcdefg", 6), "äbcde…");
        assert_eq!(shortened("abc", 0), "…");
    }
}
