//! Short programs on one byte, which packers generate for each file: the result of a byte depends on the number of bytes left.

/// Result for a byte, by how many are left (the lowest byte of that).
pub(super) struct Program(Vec<[u8; 256]>);

/// One instruction on the byte.
enum Step {
    Add(u8),
    Xor(u8),
    Rotate(u8),
    AddLeft,
    SubtractLeft,
    XorLeft,
}

impl Program {
    /// Reads the instructions between the byte's loading, which is the first, and its storing.
    pub fn read(code: &[u8]) -> Option<Program> {
        const LOADS: [&[u8]; 2] = [&[0xac], &[0x8a, 0x07]];
        const STEPS_MAX: usize = 256;
        let mut code = LOADS.iter().find_map(|load| code.strip_prefix(*load))?;
        let mut steps = Vec::new();
        while steps.len() < STEPS_MAX {
            let (step, length) = match *code {
                [0xaa, ..] => {
                    let table = (0..=255).map(|left| std::array::from_fn(|byte| become_of(byte as u8, left, &steps)));
                    return Some(Program(table.collect()));
                }
                [0x90 | 0xf5 | 0xf8 | 0xf9, ..] => (None, 1),
                [0x0a, 0xc0, ..] => (None, 2),
                [0xeb, over, ..] => (None, 2 + usize::from(over)),
                [0x04, value, ..] => (Some(Step::Add(value)), 2),
                [0x2c, value, ..] => (Some(Step::Add(value.wrapping_neg())), 2),
                [0x34, value, ..] => (Some(Step::Xor(value)), 2),
                [0xfe, 0xc0, ..] => (Some(Step::Add(1)), 2),
                [0xfe, 0xc8, ..] => (Some(Step::Add(255)), 2),
                [0xc0, 0xc0, count, ..] => (Some(Step::Rotate(count % 8)), 3),
                [0xc0, 0xc8, count, ..] => (Some(Step::Rotate((8 - count % 8) % 8)), 3),
                [0x02, 0xc1, ..] => (Some(Step::AddLeft), 2),
                [0x2a, 0xc1, ..] => (Some(Step::SubtractLeft), 2),
                [0x32, 0xc1, ..] => (Some(Step::XorLeft), 2),
                _ => return None,
            };
            steps.extend(step);
            code = code.get(length..)?;
        }
        None
    }

    /// Runs over bytes that are the first of so many.
    pub fn run(&self, bytes: &mut [u8], count: usize) {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = self.0[usize::from((count - index) as u8)][usize::from(*byte)];
        }
    }
}

fn become_of(byte: u8, left: u8, steps: &[Step]) -> u8 {
    steps.iter().fold(byte, |byte, step| match step {
        Step::Add(value) => byte.wrapping_add(*value),
        Step::Xor(value) => byte ^ value,
        Step::Rotate(count) => byte.rotate_left((*count).into()),
        Step::AddLeft => byte.wrapping_add(left),
        Step::SubtractLeft => byte.wrapping_sub(left),
        Step::XorLeft => byte ^ left,
    })
}
