//! Estimate of the size of a pattern's automaton, and thus of the cost of matching one byte (Thompson construction).

/// Estimates the number of states of a pattern's automaton: the number of its atoms, with counted repetitions
/// multiplied out.
pub(crate) fn states(pattern: &str) -> u64 {
    let mut scan = Scan {
        bytes: pattern.as_bytes(),
        at: 0,
    };
    // Number of states before each open group.
    let mut outer: Vec<u64> = Vec::new();
    let mut total: u64 = 0;
    let mut last: u64 = 0;
    while let Some(byte) = scan.next() {
        match byte {
            b'(' => {
                outer.push(total.saturating_add(last));
                (total, last) = (0, 0);
            }
            b')' => {
                let group = total.saturating_add(last).saturating_add(1);
                total = outer.pop().unwrap_or_default();
                last = group;
            }
            b'{' => {
                if let Some(times) = scan.repetition() {
                    last = last.max(1).saturating_mul(times.max(1));
                } else {
                    total = total.saturating_add(last);
                    last = 1;
                }
            }
            b'*' | b'+' | b'?' => {}
            _ => {
                total = total.saturating_add(last);
                last = scan.atom(byte);
            }
        }
    }
    outer.iter().fold(total.saturating_add(last), |sum, group| {
        sum.saturating_add(*group)
    })
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Cost of a Unicode class such as `\p{L}`, whose UTF-8 automaton has some hundred states.
const UNICODE_CLASS: u64 = 300;

impl Scan<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Parses `{n}`, `{n,}` or `{n,m}` at the current position. Returns the larger bound.
    fn repetition(&mut self) -> Option<u64> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'}')?;
        let inner = std::str::from_utf8(&rest[..end]).ok()?;
        let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
        let low = low.trim().parse::<u64>().ok()?;
        let times = match high.trim() {
            "" => low,
            high => high.parse::<u64>().ok()?.max(low),
        };
        self.at += end + 1;
        Some(times)
    }

    /// Skips the atom that starts with `byte`. Returns its number of states.
    fn atom(&mut self, byte: u8) -> u64 {
        match byte {
            b'\\' => match self.next() {
                Some(b'p' | b'P') => {
                    if self.bytes.get(self.at) == Some(&b'{') {
                        let rest = &self.bytes[self.at..];
                        self.at += rest
                            .iter()
                            .position(|byte| *byte == b'}')
                            .map_or(rest.len(), |end| end + 1);
                    }
                    UNICODE_CLASS
                }
                _ => 1,
            },
            b'[' => self.class(),
            b'.' => 8,
            _ => 1,
        }
    }

    fn class(&mut self) -> u64 {
        let mut states: u64 = 2;
        while let Some(byte) = self.next() {
            match byte {
                b']' => break,
                b'\\' => states += self.atom(b'\\'),
                b'^' => states += 6,
                128.. => states += 1,
                _ => {}
            }
        }
        states
    }
}

#[cfg(test)]
mod tests {
    use super::states;

    #[test]
    fn repetitions_multiply() {
        for (pattern, least, most) in [
            ("^abc$", 5, 5),
            ("a{500}", 500, 500),
            ("(a{10}){10}", 100, 120),
            ("((a{10}){10}){10}", 1000, 1300),
            ("[a-z]{1,64}", 64, 256),
            (r"\p{L}{2}", 600, 600),
            ("a{x}", 4, 4),
            ("(((", 0, 0),
            ("{", 1, 1),
            ("", 0, 0),
        ] {
            let found = states(pattern);
            assert!((least..=most).contains(&found), "{pattern}: {found}");
        }
    }
}
