//! Files that are no tables, told by their first bytes, with what to do about them.

use std::path::Path;

/// Bytes that are looked at.
pub(crate) const LOOKED_AT: usize = 512;

/// What a file is that is no table, and what to do about it.
pub(crate) type Foreign = (&'static str, &'static str);

const UNPACK: &str = "unpack it first";
const EXPORT: &str = "export it as CSV";
const CONVERT: &str = "convert it to CSV or Parquet";
const EXPECTED: &str = "expected CSV, TSV or Parquet";
const AS_UTF8: &str = "save it as UTF-8";

/// Files by the bytes that they begin with.
const BEGINNINGS: [(&[u8], Foreign); 19] = [
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ("an old Excel workbook or Office document", EXPORT)),
    (b"\x89PNG\r\n\x1a\n", ("a PNG picture", EXPECTED)),
    (b"\xff\xd8\xff", ("a JPEG picture", EXPECTED)),
    (b"GIF8", ("a GIF picture", EXPECTED)),
    (b"%PDF", ("a PDF document", EXPECTED)),
    (b"BZh91AY&SY", ("compressed by bzip2, which is not read", UNPACK)),
    (b"\xfd7zXZ\0", ("compressed by xz, which is not read", UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", ("a 7z archive", UNPACK)),
    (b"Rar!\x1a\x07", ("a RAR archive", UNPACK)),
    (b"SQLite format 3\0", ("a SQLite database", EXPORT)),
    (b"\x89HDF\r\n\x1a\n", ("an HDF5 file", CONVERT)),
    (b"ARROW1", ("an Arrow (Feather) file", CONVERT)),
    (b"FEA1", ("a Feather file", CONVERT)),
    (b"Obj\x01", ("an Avro file", CONVERT)),
    (b"ORC", ("an ORC file", CONVERT)),
    (b"\x93NUMPY", ("a NumPy array", CONVERT)),
    (b"PARE", ("an encrypted Parquet file", "write it without encryption")),
    (b"\xff\xfe", ("text in UTF-16", AS_UTF8)),
    (b"\xfe\xff", ("text in UTF-16", AS_UTF8)),
];

/// What the file is, if it is known to be no table.
pub(crate) fn recognise(path: &Path, start: &[u8]) -> Option<Foreign> {
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        let name = path.to_string_lossy().to_lowercase();
        let is_office = start.get(30..).is_some_and(|entry| {
            entry.starts_with(b"[Content_Types].xml") || entry.starts_with(b"_rels/")
        });
        return Some(match () {
            () if is_office || name.ends_with(".xlsx") || name.ends_with(".xlsm") => {
                ("an Excel workbook", EXPORT)
            }
            () if name.ends_with(".ods") => ("an OpenDocument workbook", EXPORT),
            () if name.ends_with(".npz") => ("an archive of NumPy arrays", CONVERT),
            () => ("a zip archive", UNPACK),
        });
    }
    if let Some((_, foreign)) = BEGINNINGS.iter().find(|(mark, _)| is_mark(start, mark)) {
        return Some(*foreign);
    }
    // Two of the first four bytes are zero in Latin letters of UTF-16, the odd ones or the even ones.
    if let [a, b, c, d, ..] = start
        && ((*a != 0 && *b == 0 && *c != 0 && *d == 0)
            || (*a == 0 && *b != 0 && *c == 0 && *d != 0))
    {
        return Some(("text in UTF-16", AS_UTF8));
    }
    in_text(start)
}

/// Whether the file begins with the mark. A short mark that is also text (`ORC`) must be followed by what text has not.
fn is_mark(start: &[u8], mark: &[u8]) -> bool {
    let is_text = mark.iter().all(u8::is_ascii_alphanumeric);
    start.starts_with(mark)
        && (!is_text || start[mark.len()..].iter().take(8).any(|byte| *byte < 9 || *byte > 127))
}

/// Text, compressed or not, that is no table.
pub(crate) fn in_text(start: &[u8]) -> Option<Foreign> {
    if start.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", UNPACK));
    }
    let text = start.trim_ascii_start();
    let begins =
        |with: &[u8]| text.get(..with.len()).is_some_and(|text| text.eq_ignore_ascii_case(with));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(("a web page", "download the table itself"));
    }
    if begins(b"<?xml") {
        return Some(("XML", CONVERT));
    }
    if begins(b"{\"") || begins(b"[{") {
        return Some(("JSON", CONVERT));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(name: &str, start: &[u8]) -> Option<&'static str> {
        recognise(Path::new(name), start).map(|(what, _)| what)
    }

    #[test]
    fn files_are_told_by_their_first_bytes() {
        let zip = [b"PK\x03\x04".as_slice(), &[0; 26], b"[Content_Types].xml"].concat();
        assert_eq!(what("t.csv", &zip), Some("an Excel workbook"));
        assert_eq!(what("t.xlsx", &zip[..30]), Some("an Excel workbook"));
        assert_eq!(what("t.zip", &zip[..30]), Some("a zip archive"));
        assert_eq!(what("t", b"\x89PNG\r\n\x1a\n\0\0"), Some("a PNG picture"));
        assert_eq!(what("t", b"x\0,\0y\0\n\0"), Some("text in UTF-16"));
        assert_eq!(what("t", b"\xff\xfex\0"), Some("text in UTF-16"));
        assert_eq!(what("t", b"\n <!DOCTYPE HTML><html>"), Some("a web page"));
        assert_eq!(what("t", b"{\"a\": 1}\n"), Some("JSON"));
        assert_eq!(what("t", b"BZh91AY&SY\xb8"), Some("compressed by bzip2, which is not read"));
    }

    #[test]
    fn text_that_begins_like_them_is_a_table() {
        for text in ["ORC,elf\n1,2\n", "BZhang,x\n", "ARROW1;ARROW2\n", "[0],{x}\n", "GIF8,y\n", ""]
        {
            assert_eq!(what("t.csv", text.as_bytes()), None, "{text}");
        }
    }
}
