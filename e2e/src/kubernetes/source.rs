//! Where the cluster of the tests comes from.
//!
//! **Invariant:** a cluster of somebody else is used only when it was named for this very purpose;
//! the `KUBECONFIG` of the shell alone never is.

use std::path::PathBuf;

/// Where the cluster comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Containers that this run starts; kept for the next run with `E2E_KEEP=1`.
    Own {
        /// Whether they stay.
        keep: bool,
    },
    /// A cluster that `kind` made, by its name: `E2E_KIND`.
    Kind(String),
    /// Any cluster: `E2E_KUBECONFIG`, with an image it can pull: `E2E_IMAGE`.
    Given {
        /// The kubeconfig.
        kubeconfig: PathBuf,
        /// Name and tag of the product's image.
        image: String,
    },
}

impl Source {
    /// Reads the environment.
    pub(super) fn from_environment() -> anyhow::Result<Self> {
        Self::parse(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn parse(value: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        match (value("E2E_KIND"), value("E2E_KUBECONFIG")) {
            (Some(_), Some(_)) => anyhow::bail!("E2E_KIND and E2E_KUBECONFIG: give one of them"),
            (Some(name), None) => Ok(Self::Kind(name)),
            (None, Some(path)) => match value("E2E_IMAGE") {
                Some(image) => Ok(Self::Given {
                    kubeconfig: PathBuf::from(path),
                    image,
                }),
                None => anyhow::bail!(
                    "E2E_KUBECONFIG needs E2E_IMAGE, the product's image where that cluster can pull it"
                ),
            },
            (None, None) => Ok(Self::Own {
                keep: value("E2E_KEEP").is_some_and(|keep| keep != "0"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[(&str, &str)]) -> anyhow::Result<Source> {
        Source::parse(|name| {
            let found = values.iter().find(|(given, _)| *given == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_kubeconfig_of_the_shell_is_not_taken_for_a_cluster_of_tests() {
        let source = parse(&[("KUBECONFIG", "production")]).unwrap();
        assert_eq!(source, Source::Own { keep: false });
    }

    #[test]
    fn a_given_cluster_needs_an_image_that_it_can_pull() {
        assert!(parse(&[("E2E_KUBECONFIG", "c")]).is_err());
        assert!(parse(&[("E2E_KUBECONFIG", "c"), ("E2E_IMAGE", "r/i:t")]).is_ok());
        assert!(parse(&[("E2E_KUBECONFIG", "c"), ("E2E_KIND", "k")]).is_err());
    }
}
