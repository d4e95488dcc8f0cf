//! Prometheus' text form: families, series, labels.
//!
//! **Invariant:** every series carries the common labels, every family stands there once, and what a
//! label holds is escaped. It knows no figure of the broker.

use std::fmt::{Display, Write as _};

use super::histogram::Snapshot;

/// Labels of a series beyond the common ones.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

/// The page.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    common: String,
}

/// What a family is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// Its name.
    pub(crate) name: &'static str,
    /// `gauge`, `counter` or `histogram`.
    pub(crate) kind: &'static str,
    /// What it tells.
    pub(crate) help: &'static str,
    /// The unit that Java's page of 5.5 has behind the name.
    pub(crate) unit: Option<&'static str>,
}

/// A gauge.
pub(crate) const fn gauge(name: &'static str, help: &'static str) -> About {
    About {
        name,
        kind: "gauge",
        help,
        unit: None,
    }
}

/// A counter.
pub(crate) const fn counter(name: &'static str, help: &'static str) -> About {
    About {
        kind: "counter",
        ..gauge(name, help)
    }
}

/// A distribution.
pub(crate) const fn histogram(name: &'static str, help: &'static str) -> About {
    About {
        kind: "histogram",
        ..gauge(name, help)
    }
}

impl About {
    /// With a unit. Java's exporter puts it behind the name since 5.1, its documentation and older
    /// dashboards do not have it there: both names are served.
    pub(crate) const fn unit(self, unit: &'static str) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }
}

impl Page {
    /// An empty page whose series all carry `labels`.
    pub(crate) fn new(labels: Labels<'_>) -> Self {
        let mut common = String::new();
        for (name, value) in labels {
            write_label(&mut common, name, value);
        }
        Self {
            text: String::with_capacity(32 * 1024),
            common,
        }
    }

    /// Adds a family; `fill` adds its series.
    pub(crate) fn family(&mut self, about: About, fill: impl Fn(&mut Family<'_>)) {
        let mut names = vec![about.name.to_owned()];
        if let Some(unit) = about.unit {
            names.push(format!("{}_{unit}", about.name));
        }
        for name in names {
            let (kind, help) = (about.kind, about.help);
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            fill(&mut Family { page: self, name });
        }
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The family that is being filled.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    page: &'a mut Page,
    name: String,
}

impl Family<'_> {
    /// One series of a gauge or counter.
    pub(crate) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// One series of a histogram.
    pub(crate) fn distribution(&mut self, labels: Labels<'_>, values: &Snapshot) {
        for (bound, count) in &values.upto {
            self.line("_bucket", labels, Some(&format!("{bound}.0")), count);
        }
        self.line("_bucket", labels, Some("+Inf"), values.count);
        self.line("_sum", labels, None, values.sum);
        self.line("_count", labels, None, values.count);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, le: Option<&str>, value: impl Display) {
        let Page { text, common } = &mut *self.page;
        text.push_str(&self.name);
        text.push_str(suffix);
        text.push('{');
        text.push_str(common);
        for (name, value) in labels {
            write_label(text, name, value);
        }
        if let Some(le) = le {
            write_label(text, "le", le);
        }
        let _ = writeln!(text, "}} {value}");
    }
}

fn write_label(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() && !out.ends_with('{') {
        out.push(',');
    }
    out.push_str(name);
    out.push_str("=\"");
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_with_a_unit_stands_there_under_both_names() {
        let mut page = Page::new(&[("cluster", "c")]);
        let about = gauge("wait", "How long.").unit("milliseconds");
        page.family(about, |family| family.sample(&[("topic", "T")], 5));
        assert_eq!(
            page.into_text(),
            "# HELP wait How long.\n# TYPE wait gauge\nwait{cluster=\"c\",topic=\"T\"} 5\n\
             # HELP wait_milliseconds How long.\n# TYPE wait_milliseconds gauge\n\
             wait_milliseconds{cluster=\"c\",topic=\"T\"} 5\n"
        );
    }

    #[test]
    fn a_distribution_has_its_buckets_then_sum_and_count() {
        let mut page = Page::new(&[]);
        let values = Snapshot {
            upto: vec![(1, 2), (10, 3)],
            count: 4,
            sum: 77,
        };
        page.family(histogram("size", "Bytes."), |family| {
            family.distribution(&[("topic", "T")], &values);
        });
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "size_bucket{topic=\"T\",le=\"1.0\"} 2",
                "size_bucket{topic=\"T\",le=\"10.0\"} 3",
                "size_bucket{topic=\"T\",le=\"+Inf\"} 4",
                "size_sum{topic=\"T\"} 77",
                "size_count{topic=\"T\"} 4",
            ]
        );
    }

    #[test]
    fn what_would_end_a_label_is_escaped() {
        let mut page = Page::new(&[("a", "x\"}\n\\")]);
        page.family(gauge("g", "G."), |family| family.sample(&[], 1));
        assert!(page.into_text().ends_with("g{a=\"x\\\"}\\n\\\\\"} 1\n"));
    }
}
