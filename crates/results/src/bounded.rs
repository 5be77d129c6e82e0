//! Lists and objects of files, refused before they fill the memory: an empty word takes eight times
//! the room that it has in a file.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a list of at most `MOST` elements.
///
/// # Errors
///
/// Returns those of the file, and one for more elements.
pub fn list<'de, const MOST: usize, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(Bounded {
        what: "elements of a list",
        most: MOST,
        of: PhantomData::<T>,
    })
}

/// Reads the members of an object, in their order; their keys are texts or whole numbers.
///
/// # Errors
///
/// Returns those of the file, and one for more than `most` members.
pub fn members<'de, D, K, V>(
    from: D,
    what: &'static str,
    most: usize,
) -> Result<Vec<(K, V)>, D::Error>
where
    D: Deserializer<'de>,
    K: FromStr,
    V: Deserialize<'de>,
{
    let of = PhantomData::<(K, V)>;
    from.deserialize_map(Members(Bounded { what, most, of }))
}

struct Bounded<T> {
    what: &'static str,
    most: usize,
    of: PhantomData<T>,
}

struct Members<K, V>(Bounded<(K, V)>);

impl<T> Bounded<T> {
    fn take<E: Error>(&self, mut next: impl FnMut() -> Result<Option<T>, E>) -> Result<Vec<T>, E> {
        let mut all = Vec::new();
        while let Some(one) = next()? {
            if all.len() == self.most {
                let problem = format!("more than {} {}", self.most, self.what);
                return Err(E::custom(problem));
            }
            all.push(one);
        }
        Ok(all)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        self.take(|| list.next_element())
    }
}

impl<'de, K: FromStr, V: Deserialize<'de>> Visitor<'de> for Members<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of {}", self.0.what)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        self.0.take(|| {
            let Some((key, value)) = map.next_entry::<String, V>()? else {
                return Ok(None);
            };
            let whole = key.parse().map(|key| Some((key, value)));
            whole.map_err(|_| A::Error::custom(format!("'{key}' is not a whole number")))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Deserializer;

    use super::*;

    #[test]
    fn lists_and_objects_are_read_up_to_their_bound() {
        let words = |json| {
            let read = list::<2, _, String>(&mut Deserializer::from_str(json));
            read.map_err(|error| error.to_string())
        };
        assert_eq!(words(r#"["", "b"]"#).unwrap(), ["", "b"]);
        assert!(
            words(r#"["", "", ""]"#)
                .unwrap_err()
                .contains("more than 2 elements")
        );
        assert!(words("{}").unwrap_err().contains("expected a list"));
        let pairs = |json| {
            let read = members::<_, u8, u8>(&mut Deserializer::from_str(json), "pairs", 2);
            read.map_err(|error| error.to_string())
        };
        assert_eq!(pairs(r#"{"7": 1, "07": 2}"#).unwrap(), [(7, 1), (7, 2)]);
        let wrong = pairs(r#"{"7": 1, "8": 1, "9": 1}"#).unwrap_err();
        assert!(wrong.contains("more than 2 pairs"), "{wrong}");
        let wrong = pairs(r#"{"256": 1}"#).unwrap_err();
        assert!(wrong.contains("'256' is not a whole number"), "{wrong}");
        assert!(
            pairs("[1]")
                .unwrap_err()
                .contains("expected an object of pairs")
        );
    }
}
