//! What a run is called where nobody says it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `runs/<data>-<time>`, with a number where two runs start in one second.
pub(crate) fn default_directory(data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or(data.as_os_str()).to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("data");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let base = Path::new("runs").join(format!("{stem}-{}", stamp(now)));
    let numbered = |n: u32| PathBuf::from(format!("{}-{n}", base.display()));
    [base.clone()].into_iter().chain((2..1000).map(numbered)).find(|p| !p.exists()).unwrap_or(base)
}

/// Seconds since 1970 as `20260131-235959` in UTC.
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        (year + 400 * era + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        // date -u -d @N +%Y%m%d-%H%M%S
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_767_225_599), "20251231-235959");
        assert_eq!(stamp(4_102_444_800), "21000101-000000");
    }
}
