//! Pictures of lines, areas and text, written as SVG and as PNG.
//!
//! Both are written from the same shapes. The PNG needs no fonts of the system: its text is drawn from the outlines of
//! DejaVu Sans, which is part of the program.

use std::fmt::Write as _;

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::{Face, OutlineBuilder};

/// Pixels per unit in the PNG.
const SCALE: f32 = 2.0;

/// A place; y grows downwards.
pub(crate) type Point = (f64, f64);

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// Dark grey, for text and frames.
pub(crate) const INK: Colour = [51, 51, 51];
/// Light grey, for what is in the background.
pub(crate) const FAINT: Colour = [190, 190, 190];

/// What is drawn, first things below later ones.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    width: f64,
    height: f64,
    shapes: Vec<Shape>,
}

#[derive(Clone, Debug)]
enum Shape {
    Line { points: Vec<Point>, colour: Colour, width: f64, dashed: bool },
    Area { points: Vec<Point>, colour: Colour, opacity: f64 },
    Text { at: Point, size: f64, anchor: Anchor, text: String, upwards: bool },
}

/// Which end of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// An empty picture.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// A line through points.
    pub(crate) fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        self.shapes.push(Shape::Line { points, colour, width, dashed: false });
    }

    /// A dashed line through points.
    pub(crate) fn dashes(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        self.shapes.push(Shape::Line { points, colour, width, dashed: true });
    }

    /// A filled area.
    pub(crate) fn area(&mut self, points: Vec<Point>, colour: Colour, opacity: f64) {
        self.shapes.push(Shape::Area { points, colour, opacity });
    }

    /// Text at a place on its base line.
    pub(crate) fn text(&mut self, at: Point, size: f64, anchor: Anchor, text: impl Into<String>) {
        self.shapes.push(Shape::Text { at, size, anchor, text: text.into(), upwards: false });
    }

    /// Text that is read upwards, its middle at a place.
    pub(crate) fn text_upwards(&mut self, at: Point, size: f64, text: impl Into<String>) {
        let anchor = Anchor::Middle;
        self.shapes.push(Shape::Text { at, size, anchor, text: text.into(), upwards: true });
    }

    /// The picture as SVG.
    pub(crate) fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            // Writing to a string cannot fail.
            let _ = match shape {
                Shape::Line { points, colour, width, dashed } => writeln!(
                    svg,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{}/>",
                    places(points),
                    hex(*colour),
                    if *dashed { " stroke-dasharray=\"4 3\"" } else { "" },
                ),
                Shape::Area { points, colour, opacity } => writeln!(
                    svg,
                    "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{opacity}\"/>",
                    places(points),
                    hex(*colour),
                ),
                Shape::Text { at: (x, y), size, anchor, text, upwards } => writeln!(
                    svg,
                    "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>",
                    anchor.word(),
                    hex(INK),
                    if *upwards {
                        format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"")
                    } else {
                        String::new()
                    },
                    escaped(text),
                ),
            };
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The picture as PNG, twice as large.
    pub(crate) fn png(&self) -> Result<Vec<u8>, String> {
        let size = |length: f64| (length * f64::from(SCALE)).ceil().clamp(1.0, 20_000.0) as u32;
        let mut pixmap =
            Pixmap::new(size(self.width), size(self.height)).ok_or("too large a picture")?;
        pixmap.fill(Color::WHITE);
        let face = Face::parse(dejavu::sans::regular(), 0).map_err(|error| error.to_string())?;
        let scale = Transform::from_scale(SCALE, SCALE);
        for shape in &self.shapes {
            match shape {
                Shape::Line { points, colour, width, dashed } => {
                    let mut stroke = Stroke {
                        width: *width as f32,
                        line_cap: LineCap::Round,
                        line_join: LineJoin::Round,
                        ..Stroke::default()
                    };
                    if *dashed {
                        stroke.line_cap = LineCap::Butt;
                        stroke.dash = StrokeDash::new(vec![4.0, 3.0], 0.0);
                    }
                    if let Some(path) = path(points, false) {
                        pixmap.stroke_path(&path, &paint(*colour, 1.0), &stroke, scale, None);
                    }
                }
                Shape::Area { points, colour, opacity } => {
                    if let Some(path) = path(points, true) {
                        let paint = paint(*colour, *opacity);
                        pixmap.fill_path(&path, &paint, FillRule::Winding, scale, None);
                    }
                }
                Shape::Text { at, size, anchor, text, upwards } => {
                    let angle = if *upwards { -90.0 } else { 0.0 };
                    let place = scale.pre_translate(at.0 as f32, at.1 as f32).pre_rotate(angle);
                    if let Some(path) = outlines(&face, text, *size as f32, *anchor) {
                        pixmap.fill_path(&path, &paint(INK, 1.0), FillRule::Winding, place, None);
                    }
                }
            }
        }
        encode(&pixmap).map_err(|error| error.to_string())
    }
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

fn places(points: &[Point]) -> String {
    points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect::<Vec<_>>().join(" ")
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn paint([red, green, blue]: Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8);
    paint.anti_alias = true;
    paint
}

fn path(points: &[Point], closed: bool) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    for (at, &(x, y)) in points.iter().enumerate() {
        match at {
            0 => builder.move_to(x as f32, y as f32),
            _ => builder.line_to(x as f32, y as f32),
        }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

/// The outlines of a line of text that begins, ends or has its middle at the origin.
fn outlines(face: &Face<'_>, text: &str, size: f32, anchor: Anchor) -> Option<tiny_skia::Path> {
    let scale = size / f32::from(face.units_per_em());
    let glyphs: Vec<_> = text.chars().map(|c| face.glyph_index(c).unwrap_or_default()).collect();
    let advance = |glyph| f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
    let width: f32 = glyphs.iter().map(|&glyph| advance(glyph)).sum();
    let mut pen = Pen { builder: PathBuilder::new(), scale, x: -width * anchor.share() };
    for glyph in glyphs {
        face.outline_glyph(glyph, &mut pen);
        pen.x += advance(glyph);
    }
    pen.builder.finish()
}

impl Anchor {
    fn share(self) -> f32 {
        match self {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        }
    }
}

/// Draws glyphs, whose y grows upwards.
struct Pen {
    builder: PathBuilder,
    scale: f32,
    x: f32,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) =
            (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

fn encode(pixmap: &Pixmap) -> std::io::Result<Vec<u8>> {
    let (pixels, _) = pixmap.data().as_chunks::<4>();
    let rgb: Vec<u8> =
        pixels.iter().flat_map(|&[red, green, blue, _]| [red, green, blue]).collect();
    lapwing_sample::png(pixmap.width(), pixmap.height(), &rgb)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// The pixels of a PNG of [`encode`]: its width and three bytes per pixel.
    fn pixels(png: &[u8]) -> (usize, Vec<u8>) {
        let width = u32::from_be_bytes([png[16], png[17], png[18], png[19]]) as usize;
        let start = png.windows(4).position(|word| word == b"IDAT").unwrap() + 4;
        let mut raw = Vec::new();
        flate2::read::ZlibDecoder::new(&png[start..]).read_to_end(&mut raw).unwrap();
        let lines = raw.chunks_exact(1 + 3 * width).flat_map(|line| &line[1..]);
        (width, lines.copied().collect())
    }

    #[test]
    fn shapes_and_text_reach_both_forms() {
        let mut picture = Picture::new(60.0, 40.0);
        picture.area(vec![(0.0, 0.0), (20.0, 0.0), (20.0, 20.0), (0.0, 20.0)], [255, 0, 0], 1.0);
        picture.line(vec![(0.0, 30.0), (60.0, 30.0)], [0, 0, 255], 2.0);
        picture.text((40.0, 20.0), 20.0, Anchor::Middle, "δ<1");
        let svg = picture.svg();
        assert!(svg.contains("δ&lt;1") && svg.contains("#ff0000") && svg.ends_with("</svg>\n"));
        let (width, pixels) = pixels(&picture.png().unwrap());
        assert_eq!((width, pixels.len()), (120, 120 * 80 * 3));
        let at = |x: usize, y: usize| &pixels[(y * width + x) * 3..][..3];
        assert_eq!(at(20, 20), [255, 0, 0]);
        assert_eq!(at(100, 60), [0, 0, 255]);
        assert_eq!(at(118, 2), [255, 255, 255]);
        let inked = (45..110).flat_map(|x| (10..45).map(move |y| (x, y)));
        assert!(inked.filter(|&(x, y)| at(x, y)[0] < 128).count() > 50, "text is drawn");
    }

    #[test]
    fn nothing_is_a_picture_too() {
        let mut picture = Picture::new(10.0, 10.0);
        picture.line(vec![], INK, 1.0);
        picture.line(vec![(1.0, 1.0)], INK, 1.0);
        picture.area(vec![(f64::NAN, 1.0)], INK, 1.0);
        picture.text((0.0, 0.0), 10.0, Anchor::End, "");
        assert!(picture.png().is_ok());
    }
}
