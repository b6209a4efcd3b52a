//! The tables of cyclic redundancy checks that no library here has.

/// `tables[k][b]`: the remainder of byte `b` followed by `k` zero bytes, for a reflected polynomial of up to 64 bits.
pub(crate) const fn tables<const N: usize>(polynomial: u64) -> [[u64; 256]; N] {
    let mut tables = [[0; 256]; N];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ polynomial } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < N {
        let mut byte = 0;
        while byte < 256 {
            let value: u64 = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][value as usize & 255] ^ value >> 8;
            byte += 1;
        }
        zeros += 1;
    }
    tables
}
