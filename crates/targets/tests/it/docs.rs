//! docs/targets.md knows every kind of target and every option.

use tare_targets::spec::{KINDS, parse};

#[test]
fn every_kind_and_option_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/targets.md");
    let page = std::fs::read_to_string(path).unwrap();
    for kind in KINDS {
        assert!(page.contains(&format!("`{}`", kind.name)), "{}", kind.name);
        let error = parse(&format!("{},no such=1", kind.name)).unwrap_err();
        let error = error.to_string();
        let (_, known) = error.split_once("it takes: ").expect(&error);
        for option in known.split(", ").filter_map(|known| known.split_once('=')) {
            let name = format!("`{}=`", option.0);
            assert!(page.contains(&name), "{}: {name}", kind.name);
        }
        if let Some(required) = kind.required {
            assert!(
                page.contains(&format!("{},", kind.name)),
                "{}",
                required.form
            );
        }
    }
}
