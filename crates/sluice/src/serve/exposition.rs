//! Numbers of several processes in one text of Prometheus' format, in which a family of metrics stands once.

use std::ops::Range;

/// Adds the numbers of another process: samples to families that are there, and equal series to each other.
pub fn joined(mut text: String, more: &str) -> String {
    for family in families(more).map(|at| &more[at]) {
        let known = families(&text).find(|at| name(&text[at.clone()]) == name(family));
        let Some(at) = known else {
            text += family;
            continue;
        };
        let sum = samples(family).fold(text[at.clone()].to_owned(), added);
        text.replace_range(at, &sum);
    }
    text
}

/// Where families stand, each with its `# HELP` line.
fn families(text: &str) -> impl Iterator<Item = Range<usize>> {
    let starts = text.match_indices("# HELP ").map(|(at, _)| at).filter(|&at| at == 0 || text[..at].ends_with('\n'));
    let ends = starts.clone().skip(1).chain([text.len()]);
    starts.zip(ends).map(|(start, end)| start..end)
}

fn name(family: &str) -> Option<&str> {
    family.split(' ').nth(2)
}

/// Series and values.
fn samples(family: &str) -> impl Iterator<Item = (&str, &str)> {
    family.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '))
}

/// A family with one sample more.
fn added(family: String, (series, value): (&str, &str)) -> String {
    let Some((_, old)) = samples(&family).find(|(known, _)| *known == series) else {
        return format!("{family}{series} {value}\n");
    };
    let (Ok(one), Ok(other)) = (old.parse::<u64>(), value.parse::<u64>()) else { return family };
    family.replace(&format!("{series} {old}\n"), &format!("{series} {}\n", one.saturating_add(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_stands_once_and_equal_series_are_summed() {
        let ours =
            "# HELP a An a.\n# TYPE a counter\na{of=\"x\"} 1\na{of=\"y\"} 2\n# HELP b A b.\n# TYPE b gauge\nb 1\n";
        let theirs =
            "# HELP a An a.\n# TYPE a counter\na{of=\"y\"} 40\na{of=\"z\"} 3\n# HELP c A c.\n# TYPE c gauge\nc 7\n";
        let both = "# HELP a An a.\n# TYPE a counter\na{of=\"x\"} 1\na{of=\"y\"} 42\na{of=\"z\"} 3\n\
                    # HELP b A b.\n# TYPE b gauge\nb 1\n# HELP c A c.\n# TYPE c gauge\nc 7\n";
        assert_eq!(joined(ours.into(), theirs), both);
        assert_eq!(joined(String::new(), theirs), theirs);
        assert_eq!(joined(ours.into(), ""), ours);
    }
}
