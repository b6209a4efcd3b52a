//! In which shapes a set of parts is looked for: each that is used is a sweep over the stream, and what passes its filter is
//! looked up.

use crate::anchor::{Anchor, Choice};
use crate::piece::PartId;
use crate::shape::Shape;

/// So many looks of a sweep cost as much as one gram that passes.
const LOOKS_PER_PASS: f32 = 16.0;
/// The same where the tables of a crowd are in no cache.
const LOOKS_PER_FAR_PASS: f32 = 100.0;
/// So many parts of 15 bytes or more are found by fewer of them.
const CROWDED: usize = 1 << 18;

/// What parts could be found by.
type Choices = [(Vec<Choice>, PartId)];

/// The shapes with which all parts together cost least.
pub(crate) fn spare(all: &Choices) -> Vec<Shape> {
    let mut shapes = Shape::ALL.to_vec();
    while let Some(spared) = dearest(all, &shapes) {
        shapes.retain(|&shape| shape != spared);
    }
    shapes
}

/// That of `shapes` without which all parts together cost least, if that is less than with it.
fn dearest(all: &Choices, shapes: &[Shape]) -> Option<Shape> {
    let is_one = Shape::ALL.map(|shape| shapes.contains(&shape));
    let mut costs = Shape::ALL.map(|shape| -shape.looks());
    for (choices, _) in all {
        let (mut best, mut without): (Option<&Choice>, _) = (None, f32::INFINITY);
        for choice in choices.iter().filter(|choice| is_one[choice.anchor.shape as usize]) {
            match best {
                Some(known) if known.passes <= choice.passes => without = without.min(choice.passes),
                known => {
                    without = known.map_or(without, |known| without.min(known.passes));
                    best = Some(choice);
                }
            }
        }
        if let Some(best) = best {
            costs[best.anchor.shape as usize] += LOOKS_PER_PASS * (without - best.passes);
        }
    }
    let costs = shapes.iter().map(|&shape| (costs[shape as usize], shape));
    let (cost, shape) = costs.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (cost < 0.0).then_some(shape)
}

/// The anchor of each part, of one of these shapes if it has any.
pub(crate) fn choose(all: Vec<(Vec<Choice>, PartId)>, shapes: &[Shape]) -> Vec<(Anchor, PartId)> {
    let chosen = |choices: Vec<Choice>| {
        let shape = best(&choices, shapes).or_else(|| best(&choices, &Shape::ALL))?.anchor.shape;
        choices.into_iter().map(|choice| choice.anchor).find(|anchor| anchor.shape == shape)
    };
    all.into_iter().filter_map(|(choices, part)| Some((chosen(choices)?, part))).collect()
}

/// The rarest of what a part can be found by if there are only these shapes; of equally rare ones that of the cheapest.
pub(crate) fn best<'a>(choices: &'a [Choice], shapes: &[Shape]) -> Option<&'a Choice> {
    possible(choices, shapes).min_by(|one, other| one.passes.total_cmp(&other.passes))
}

fn possible<'a>(choices: &'a [Choice], shapes: &[Shape]) -> impl Iterator<Item = &'a Choice> {
    choices.iter().filter(|choice| shapes.contains(&choice.anchor.shape))
}

/// Halves the grams of a tier that is too large for any cache. It is looked at twice as often then, in half as much memory,
/// and so no slower. They join those of six bytes if not many more pass by that.
pub(crate) fn thin_out(anchors: &mut [(Anchor, PartId)]) {
    let all = anchors.iter_mut().map(|(anchor, _)| anchor);
    let mut crowd: Vec<&mut Anchor> = all.filter(|anchor| anchor.shape == Shape::Q8S8).collect();
    if crowd.len() < CROWDED {
        return;
    }
    let thinner = |shape: Shape| crowd.iter().map(|anchor| anchor.shorter(shape)).collect::<Vec<_>>();
    let passes = |choices: &[Choice]| choices.iter().map(|choice| choice.passes).sum::<f32>();
    let (long, short) = (thinner(Shape::Q8S4), thinner(Shape::Q6S4));
    let more = LOOKS_PER_FAR_PASS * (passes(&short) - passes(&long));
    let chosen = if more < Shape::Q8S4.looks() { short } else { long };
    for (anchor, choice) in crowd.iter_mut().zip(chosen) {
        **anchor = choice.anchor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Path, Piece, State, find_all};

    fn choice(shape: Shape, passes: f32) -> Choice {
        let anchor = Anchor { shape, window: vec![0; shape.window()], caseless: false, distances: vec![0] };
        Choice { anchor, passes }
    }

    #[test]
    fn a_sweep_is_spared_where_what_it_spares_is_less() {
        let (long, short) = (choice(Shape::Q8S8, 0.0), choice(Shape::Q4S4, 0.0));
        let common = choice(Shape::Q4S4, 100.0);
        // One part can do without the long shape, but not if that makes it common.
        let needs_short = (vec![short.clone()], 1);
        assert_eq!(spare(&[(vec![long.clone(), short], 0), needs_short.clone()]), [Shape::Q4S4]);
        assert_eq!(spare(&[(vec![long, common], 0), needs_short]), [Shape::Q8S8, Shape::Q4S4]);
    }

    #[test]
    fn each_shape_finds_the_part_at_every_offset_on_every_path() {
        // The second stands in a stretch of Base64, and the others at the ends of one.
        let texts: [(&[u8], u8); 4] = [
            (b"A window of fifteen bytes", b'-'),
            (b"AWindowOf/Fifteen+Bytes==", b'A'),
            (b"AbCdEfGh\0\x91\x02\x03\x04\x05\x06", b'A'),
            (b"\x91\x02\x03\x04\x05\x06\0AbCdEfGh", b'A'),
        ];
        for (text, filling) in texts {
            for shape in Shape::ALL {
                find_in(shape, text, filling);
            }
        }
    }

    fn find_in(shape: Shape, text: &[u8], filling: u8) {
        let mut builder = Builder::new();
        builder.add(&Piece::bytes(text)).expect("it has an anchor");
        let patterns = builder.build_of(shape);
        assert_eq!(patterns.tiers.len(), 1);
        assert!(patterns.describe().starts_with(&format!("{shape:?}:")), "{}", patterns.describe());
        for (path, offset) in Path::available().into_iter().flat_map(|path| (0..8).map(move |offset| (path, offset))) {
            let mut stream = vec![filling; 300 + offset];
            stream.extend_from_slice(text);
            stream.resize(stream.len() + 300, filling);
            let wanted = find_all(&Piece::bytes(text), &stream);
            let patterns = patterns.clone().on(path);
            for cut in 299 + offset..302 + offset + text.len() {
                let (mut found, mut state) = (Vec::new(), State::new());
                for piece in [&stream[..cut], &stream[cut..]] {
                    patterns.scan(&mut state, piece, &mut |one| found.push((one.start, one.end)));
                }
                assert_eq!(found, wanted, "{shape:?} {path:?} {offset}, cut at {cut}");
            }
        }
    }
}
