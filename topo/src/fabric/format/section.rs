use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{FabricError, FabricErrorKind};

/// A table of a file while it is read: each value is asked for by key and type.
#[derive(Clone)]
pub(super) struct Section<'a> {
    text: &'a str,
    /// As it stands in the file, such as `[[host]]`.
    name: &'static str,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

/// A value, and the bytes of the file it is from.
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

type Found<T> = Result<Option<At<T>>, FabricError>;

impl<'a> Section<'a> {
    /// The section, if it has no other keys than the `known` ones.
    pub(super) fn new(
        text: &'a str,
        name: &'static str,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Result<Section<'a>, FabricError> {
        let section = Section { text, name, table, span };
        let unknown = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(section),
            Some(found) => {
                let key = found.get_ref().to_string();
                let kind = FabricErrorKind::UnknownKey { section: name, key, known };
                Err(section.error(found.span(), kind))
            }
        }
    }

    /// The table under `key`.
    pub(super) fn table(
        &self,
        key: &str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<Option<Section<'a>>, FabricError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let table = value.get_ref().as_table();
        let table = table.ok_or_else(|| self.wrong_type(key, "a table", value))?;
        Section::new(self.text, name, table, value.span(), known).map(Some)
    }

    /// The tables `[[key]]` in the order of the file.
    pub(super) fn tables(
        &self,
        key: &str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Section<'a>>, FabricError> {
        const EXPECTED: &str = "a list of tables";
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let items = value.get_ref().as_array();
        let items = items.ok_or_else(|| self.wrong_type(key, EXPECTED, value))?;
        let section = |item: &'a Spanned<DeValue<'a>>| {
            let table = item.get_ref().as_table();
            let table = table.ok_or_else(|| self.wrong_type(key, EXPECTED, item))?;
            Section::new(self.text, name, table, item.span(), known)
        };
        items.iter().map(section).collect()
    }

    pub(super) fn text(&self, key: &str) -> Found<&'a str> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let text = value.get_ref().as_str();
        let text = text.ok_or_else(|| self.wrong_type(key, "a string", value))?;
        Ok(Some(At { value: text, span: value.span() }))
    }

    /// A whole number from 1 up.
    pub(super) fn count(&self, key: &'static str) -> Found<u32> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let number = value.get_ref().as_integer();
        let number = number.ok_or_else(|| self.wrong_type(key, "a whole number", value))?;
        match u32::from_str_radix(number.as_str(), number.radix()) {
            Ok(count) if count > 0 => Ok(Some(At { value: count, span: value.span() })),
            _ => {
                let (expected, found) = ("a whole number from 1 to 4294967295", number.to_string());
                let kind = FabricErrorKind::OutOfRange { key, expected, found };
                Err(self.error(value.span(), kind))
            }
        }
    }

    /// A number above 0.
    pub(super) fn positive(&self, key: &'static str) -> Found<f64> {
        self.number(key, "a number above 0", |value| value > 0.0)
    }

    /// A number that is 0 or above.
    pub(super) fn not_negative(&self, key: &'static str) -> Found<f64> {
        self.number(key, "0 or a number above", |value| value >= 0.0)
    }

    fn number(
        &self,
        key: &'static str,
        expected: &'static str,
        fits: fn(f64) -> bool,
    ) -> Found<f64> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let (number, found) = match value.get_ref() {
            DeValue::Float(float) => (float.as_str().parse(), float.to_string()),
            DeValue::Integer(whole) => {
                let parsed = i64::from_str_radix(whole.as_str(), whole.radix());
                (Ok(parsed.map_or(f64::NAN, |whole| whole as f64)), whole.to_string())
            }
            _ => return Err(self.wrong_type(key, "a number", value)),
        };
        match number {
            Ok(number) if f64::is_finite(number) && fits(number) => {
                Ok(Some(At { value: number, span: value.span() }))
            }
            _ => {
                let kind = FabricErrorKind::OutOfRange { key, expected, found };
                Err(self.error(value.span(), kind))
            }
        }
    }

    /// One of the values whose names are listed.
    pub(super) fn word<T: Copy>(&self, key: &'static str, known: &[(&str, T)]) -> Found<T> {
        let Some(found) = self.text(key)? else { return Ok(None) };
        match known.iter().find(|(name, _)| *name == found.value) {
            Some(&(_, value)) => Ok(Some(At { value, span: found.span })),
            None => {
                let names = known.iter().map(|(name, _)| *name);
                Err(self.unknown_word(key, found, names))
            }
        }
    }

    /// That a word is none of the known ones.
    pub(super) fn unknown_word<'k>(
        &self,
        key: &'static str,
        word: At<&str>,
        known: impl Iterator<Item = &'k str>,
    ) -> FabricError {
        let (known, text) = (known.map(str::to_owned).collect(), word.value.to_owned());
        self.error(word.span, FabricErrorKind::UnknownWord { key, word: text, known })
    }

    /// What was found, or that the section needs it.
    pub(super) fn need<T>(
        &self,
        found: Option<T>,
        key: &'static str,
        expected: &'static str,
    ) -> Result<T, FabricError> {
        let kind = FabricErrorKind::MissingKey { section: self.name, key, expected };
        found.ok_or_else(|| self.error(self.span.clone(), kind))
    }

    /// An error about the section as a whole.
    pub(super) fn whole(&self, kind: FabricErrorKind) -> FabricError {
        self.error(self.span.clone(), kind)
    }

    pub(super) fn error(&self, span: Range<usize>, kind: FabricErrorKind) -> FabricError {
        FabricError::at(self.text, span, kind)
    }

    fn wrong_type(
        &self,
        key: &str,
        expected: &'static str,
        value: &Spanned<DeValue>,
    ) -> FabricError {
        let found = value.get_ref().type_str();
        let kind = FabricErrorKind::WrongType { key: key.to_owned(), expected, found };
        self.error(value.span(), kind)
    }
}
