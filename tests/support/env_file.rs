//! The file of variables by which everything finds a stack: `export NAME='value'`, one a line.

use std::{collections::BTreeMap, path::Path};

/// Variables, by name.
#[derive(Debug, Clone, Default)]
pub struct EnvFile {
    variables: BTreeMap<String, String>,
}

impl EnvFile {
    /// Reads the file that `make up` writes.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!(
                "{} cannot be read ({error}); is the stack up? `make up` starts it",
                path.display()
            )
        })?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let pairs = std::env::vars_os().filter_map(|(name, value)| text(name).zip(text(value)));
        Self { variables: pairs.collect() }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut variables = BTreeMap::new();
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.strip_prefix("export ").unwrap_or(line).split_once('=');
            let quoted =
                |value: &str| Some(value.strip_prefix('\'')?.strip_suffix('\'')?.to_owned());
            match pair.and_then(|(name, value)| Some((name, quoted(value)?))) {
                Some((name, value)) => _ = variables.insert(name.to_owned(), value),
                None => return Err(format!("line {number} is not export NAME='value'")),
            }
        }
        Ok(Self { variables })
    }

    /// A variable that has to be there.
    pub fn get(&self, name: &str) -> Result<&str, String> {
        let value = self.variables.get(name).filter(|value| !value.is_empty());
        value
            .map(String::as_str)
            .ok_or_else(|| format!("{name} is not set; load the stack's variables with --env-file"))
    }

    /// These variables over those of `base`.
    #[must_use]
    pub fn over(mut self, base: Self) -> Self {
        for (name, value) in base.variables {
            self.variables.entry(name).or_insert(value);
        }
        self
    }

    /// Every variable.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_dollar_signs_and_a_line_of_another_shape_is_named() {
        let file = EnvFile::parse("export A='http://x/$default'\n\n# note\nexport B=''\n").unwrap();
        assert_eq!(file.get("A"), Ok("http://x/$default"));
        assert!(file.get("B").is_err());
        assert_eq!(
            EnvFile::parse("export A=1\n").unwrap_err(),
            "line 1 is not export NAME='value'"
        );
    }
}
