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

/// Shapes by which parts could be found: of each part, a few choices.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    all: Vec<Choice>,
    /// The numbers of the parts, and where their choices end.
    parts: Vec<(PartId, u32)>,
}

impl Choices {
    /// Adds a part, whose choices `choose` appends; says what it appended.
    pub(crate) fn add(&mut self, part: PartId, choose: impl FnOnce(&mut Vec<Choice>)) -> &[Choice] {
        let start = self.all.len();
        choose(&mut self.all);
        self.parts.push((part, self.all.len() as u32));
        &self.all[start..]
    }

    fn iter(&self) -> impl Iterator<Item = (PartId, &[Choice])> {
        let mut start = 0;
        self.parts.iter().map(move |&(part, end)| {
            let start = std::mem::replace(&mut start, end as usize);
            (part, &self.all[start..end as usize])
        })
    }

    /// The shapes with which all parts together cost least.
    pub(crate) fn spare(&self) -> Vec<Shape> {
        let mut shapes = Shape::ALL.to_vec();
        while let Some(spared) = self.dearest(&shapes) {
            shapes.retain(|&shape| shape != spared);
        }
        shapes
    }

    /// That of `shapes` without which all parts together cost least, if that is less than with it.
    fn dearest(&self, shapes: &[Shape]) -> Option<Shape> {
        let is_one = Shape::ALL.map(|shape| shapes.contains(&shape));
        let mut costs = Shape::ALL.map(|shape| -shape.cost());
        for (_, choices) in self.iter() {
            let (mut best, mut least, mut without) = (None, f32::INFINITY, f32::INFINITY);
            for choice in choices.iter().filter(|choice| is_one[choice.shape as usize]) {
                if choice.passes < least || best.is_none() {
                    without = least;
                    (best, least) = (Some(choice.shape), choice.passes);
                } else {
                    without = without.min(choice.passes);
                }
            }
            if let Some(best) = best {
                costs[best as usize] += LOOKS_PER_PASS * (without - least);
            }
        }
        let costs = shapes.iter().map(|&shape| (costs[shape as usize], shape));
        let (cost, shape) = costs.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        (cost < 0.0).then_some(shape)
    }

    /// The choice of each part, of one of these shapes if it has any.
    pub(crate) fn chosen(&self, shapes: &[Shape]) -> impl Iterator<Item = (PartId, &Choice)> {
        let chosen = |choices| best(choices, shapes).or_else(|| best(choices, &Shape::ALL));
        self.iter().filter_map(move |(part, choices)| Some((part, chosen(choices)?)))
    }
}

/// The rarest of what a part can be found by if there are only these shapes; of equally rare ones that of the cheapest.
pub(crate) fn best<'a>(choices: &'a [Choice], shapes: &[Shape]) -> Option<&'a Choice> {
    let possible = choices.iter().filter(|choice| shapes.contains(&choice.shape));
    possible.min_by(|one, other| one.passes.total_cmp(&other.passes))
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
    let passes = |choices: &[(Anchor, f32)]| choices.iter().map(|(_, passes)| passes).sum::<f32>();
    let (long, short) = (thinner(Shape::Q8S4), thinner(Shape::Q6S4));
    let more = LOOKS_PER_FAR_PASS * (passes(&short) - passes(&long));
    let chosen = if more < Shape::Q8S4.looks() { short } else { long };
    for (anchor, (thin, _)) in crowd.iter_mut().zip(chosen) {
        **anchor = thin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Path, Piece, State, find_all};

    fn spared(parts: &[&[Choice]]) -> Vec<Shape> {
        let mut all = Choices::default();
        for (choices, part) in parts.iter().zip(0..) {
            all.add(part, |all| all.extend_from_slice(choices));
        }
        all.spare()
    }

    #[test]
    fn a_sweep_is_spared_where_what_it_spares_is_less() {
        let (long, short) = (Choice::of(Shape::Q8S8, 0.0), Choice::of(Shape::Q4S4, 0.0));
        let common = Choice::of(Shape::Q4S4, 100.0);
        // One part can do without the long shape, but not if that makes it common.
        assert_eq!(spared(&[&[long, short], &[short]]), [Shape::Q4S4]);
        assert_eq!(spared(&[&[long, common], &[short]]), [Shape::Q8S8, Shape::Q4S4]);
    }

    #[test]
    fn many_parts_of_all_lengths_share_a_tier() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        };
        let mut builder = Builder::new();
        for number in 0..10_000 {
            let part: Vec<u8> = (0..10 + number % 50).map(|_| next()).collect();
            builder.add(&Piece::bytes(&part)).expect("it has an anchor");
        }
        let patterns = builder.build();
        assert!(patterns.tiers.len() == 1 && patterns.describe().starts_with("Q8S2:"), "{}", patterns.describe());
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
