//! The picture of frames.

use std::fmt::Write as _;

use super::tree::Frame;
use super::{Picture, StackRoot};
use crate::derive::stacks::weight::Metric;
use crate::render::xml::escaped;
use systape_events::values::num::grouped;

/// Width of all frames, pixels.
const WIDTH: f64 = 1180.0;
/// Left and right of them.
const MARGIN: f64 = 10.0;
/// Height of a frame, with a pixel between two.
const HEIGHT: usize = 16;
/// Above the frames: title, subtitle and the words that can be clicked.
const ABOVE: usize = 66;
/// Below them: what the frame under the mouse is.
const BELOW: usize = 34;
/// Width of a letter, and room beside a frame's text.
const LETTER: f64 = 7.0;
const ROOM: f64 = 6.0;
/// Frames narrower than this are not drawn, pixels: nobody could see one.
const NARROW: f64 = 0.05;

/// The picture of `frames`, which are not empty.
pub(super) fn of(picture: &Picture, frames: &[Frame]) -> String {
    let total = frames.iter().filter(|frame| frame.depth == 0).map(|frame| frame.weight).sum::<u128>();
    let is_wide = |frame: &&Frame| part(frame.weight, total) * WIDTH >= NARROW;
    let drawn: Vec<&Frame> = frames.iter().filter(is_wide).collect();
    let levels = drawn.iter().map(|frame| frame.depth + 1).max().unwrap_or(0);
    let most = frames.iter().filter_map(|frame| frame.difference).map(i128::unsigned_abs).max().unwrap_or(0);
    let height = ABOVE + levels * HEIGHT + BELOW;
    let (whole, middle) = (WIDTH + 2.0 * MARGIN, WIDTH / 2.0 + MARGIN);
    let mut svg = format!(
        "<?xml version=\"1.0\" standalone=\"no\"?>\n<svg version=\"1.1\" xmlns=\"http://www.w3.org/2000/svg\" \
         width=\"{whole}\" height=\"{height}\" viewBox=\"0 0 {whole} {height}\" data-width=\"{WIDTH}\">\n\
         <style>{}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#f8f8f8\"/>\n",
        include_str!("flame.css")
    );
    let mut text = |id: &str, x: f64, y: usize, words: &str| {
        let _ = writeln!(svg, "<text id=\"{id}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(words));
    };
    text("title", middle, 24, &picture.title);
    text("subtitle", middle, 42, picture.subtitle.as_deref().unwrap_or(""));
    text("reset", MARGIN, 58, "Show all");
    text("search", WIDTH - 80.0, 58, "Search");
    text("detail", MARGIN, height - 12, "");
    text("matched", WIDTH + MARGIN, height - 12, "");
    if drawn.len() < frames.len() {
        let narrow = frames.len() - drawn.len();
        text("narrow", MARGIN + 120.0, 58, &format!("{narrow} frames are too narrow to be drawn"));
    }
    for frame in drawn {
        let level = if picture.order == StackRoot::Callee { frame.depth } else { levels - 1 - frame.depth };
        let color = match frame.difference {
            Some(difference) => compared(difference, most),
            None => color(&frame.name, picture.waiting),
        };
        draw(picture, frame, total, (ABOVE + level * HEIGHT, &color), &mut svg);
    }
    let _ = write!(svg, "<script><![CDATA[\n{}]]></script>\n</svg>\n", include_str!("flame.js"));
    svg
}

fn draw(picture: &Picture, frame: &Frame, total: u128, (y, color): (usize, &str), svg: &mut String) {
    let (from, wide) = (part(frame.from, total), part(frame.weight, total));
    let (x, width) = (from * WIDTH + MARGIN, wide * WIDTH);
    let name = frame.name.strip_suffix("_[k]").unwrap_or(&frame.name);
    let change = frame.difference.map(|difference| {
        let percent = 100.0 * difference as f64 / total as f64;
        format!("; {percent:+.2}%")
    });
    let _ = writeln!(
        svg,
        "<g class=\"frame\" data-name=\"{}\" data-from=\"{from:.9}\" data-to=\"{:.9}\" data-depth=\"{}\">\
         <title>{} ({}, {:.2}%{})</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{color}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        escaped(name),
        from + wide,
        frame.depth,
        escaped(name),
        amount(frame.weight, picture.metric),
        100.0 * wide,
        change.unwrap_or_default(),
        HEIGHT - 1,
        x + ROOM / 2.0,
        y + HEIGHT - 4,
        escaped(&fits(name, width)),
    );
}

/// `1,234 events`, `12.34 ms`.
fn amount(weight: u128, metric: Metric) -> String {
    match metric {
        Metric::Count => format!("{} events", thousands(weight)),
        Metric::Time => format!("{}.{:02} ms", thousands(weight / 1_000_000), weight / 10_000 % 100),
        Metric::Bytes => format!("{} bytes", thousands(weight)),
    }
}

fn thousands(number: u128) -> String {
    grouped(u64::try_from(number).unwrap_or(u64::MAX))
}

fn part(weight: u128, total: u128) -> f64 {
    weight as f64 / total.max(1) as f64
}

/// As much of `name` as there is room for.
fn fits(name: &str, width: f64) -> String {
    let letters = ((width - ROOM) / LETTER).max(0.0) as usize;
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    if letters < 3 { String::new() } else { name.chars().take(letters - 2).chain("..".chars()).collect() }
}

/// The colour of a function, the same wherever it stands: red to yellow for time on a CPU, blue to green for waits; the kernel's are darker.
fn color(name: &str, waiting: bool) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let (hue, light) = (hash % 50, 60 + hash / 50 % 15);
    let light = if name.ends_with("_[k]") { light - 8 } else { light };
    format!("hsl({},{}%,{light}%)", if waiting { 175 + hue } else { 5 + hue }, if waiting { 55 } else { 85 })
}

/// Red where it is more, blue where it is less, as strong as the difference beside the largest, `most`.
fn compared(difference: i128, most: u128) -> String {
    let strength = part(difference.unsigned_abs(), most);
    let pale = (255.0 - 170.0 * strength) as u8;
    match difference {
        0 => "rgb(245,245,245)".to_owned(),
        1.. => format!("rgb(255,{pale},{pale})"),
        _ => format!("rgb({pale},{pale},255)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_frames() {
        assert_eq!(
            (fits("main", 40.0), fits("main", 27.0), fits("main", 20.0)),
            ("main".into(), "m..".into(), String::new())
        );
        assert_eq!(escaped("a<b>&\"\u{1b}[0m\u{ffff}"), "a&lt;b&gt;&amp;&quot;\u{fffd}[0m\u{fffd}");
    }

    #[test]
    fn amounts_have_units() {
        let of = |metric| amount(1_234_567_890, metric);
        let texts = [of(Metric::Count), of(Metric::Time), of(Metric::Bytes)];
        assert_eq!(texts, ["1,234,567,890 events", "1,234.56 ms", "1,234,567,890 bytes"]);
    }

    #[test]
    fn differences_are_red_or_blue() {
        let all = [compared(0, 9), compared(9, 9), compared(-9, 9)];
        assert_eq!(all, ["rgb(245,245,245)", "rgb(255,85,85)", "rgb(85,85,255)"]);
    }
}
