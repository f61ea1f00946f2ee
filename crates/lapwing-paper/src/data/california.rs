//! California Housing (Pace and Barry, 1997): the raw table, or the one with scikit-learn's features.

use super::files::{DataDir, Official, Size};
use crate::error::PaperError;

const SET: &str = "California Housing";
const PAGE: &str = "https://lib.stat.cmu.edu/datasets/ (houses.zip), as cal_housing.tgz on https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html";
const FOLDERS: &[&str] = &["california_housing", "CaliforniaHousing", "cal_housing"];
const ROWS: usize = 20_640;

static RAW: Official = Official {
    set: SET,
    file: "cal_housing.data",
    folders: FOLDERS,
    page: PAGE,
    bytes: Size::AtMost(4 << 20),
    // Line ends differ between copies; the numbers are compared instead.
    sha256: None,
};

static DERIVED: Official =
    Official { file: "california_housing.csv", bytes: Size::AtMost(8 << 20), ..RAW };

/// The columns of the derived table.
const COLUMNS: [&str; 9] = [
    "MedInc",
    "HouseAge",
    "AveRooms",
    "AveBedrms",
    "Population",
    "AveOccup",
    "Latitude",
    "Longitude",
    "MedHouseVal",
];

/// The sums of the raw columns, which tell the data from other data: longitude, latitude, age, rooms, bedrooms,
/// population, households, income, value.
const SUMS: [f64; 9] = [
    -2_467_918.7,
    735_441.62,
    591_119.0,
    54_402_150.0,
    11_102_215.0,
    29_421_840.0,
    10_310_499.0,
    79_890.649_5,
    4_269_504_061.0,
];

/// Features and values.
#[derive(Clone, Debug)]
pub struct Houses {
    /// Eight numbers per block of houses, unscaled.
    pub features: Vec<f32>,
    /// The median value in 100,000 dollars.
    pub values: Vec<f32>,
}

impl Houses {
    /// Numbers per block.
    pub const WIDTH: usize = 8;
}

/// The data, from the raw table if there is one.
pub(crate) fn houses(data: &DataDir) -> Result<Houses, PaperError> {
    let raw = data.has(&RAW) || !data.has(&DERIVED);
    let found = data.read(if raw { &RAW } else { &DERIVED })?;
    let rows = rows(&found.bytes, !raw).map_err(|problem| found.refused(problem))?;
    if data.is_official() {
        if rows.len() != ROWS {
            return Err(found.refused(format!("{} rows, expected {ROWS}", rows.len())));
        }
        for (column, sum) in SUMS.iter().enumerate().filter(|_| raw) {
            let found_sum: f64 = rows.iter().map(|row| row[column]).sum();
            if (found_sum - sum).abs() > 1e-9 * sum.abs() {
                return Err(found.refused(format!(
                    "column {} adds up to {found_sum}, that of the official file to {sum}",
                    column + 1
                )));
            }
        }
    }
    let rows: Vec<[f64; 9]> = if raw { rows.iter().map(derived).collect() } else { rows };
    if let Some(row) = rows.iter().position(|row| row.iter().any(|number| !number.is_finite())) {
        return Err(found.refused(format!("row {} gives a number that is not finite", row + 1)));
    }
    Ok(Houses {
        features: rows.iter().flat_map(|row| row[..8].iter().map(|&x| x as f32)).collect(),
        values: rows.iter().map(|row| row[8] as f32).collect(),
    })
}

/// The features of scikit-learn: averages per household, income and age first, place last; the value in 100,000 dollars.
fn derived(raw: &[f64; 9]) -> [f64; 9] {
    let [longitude, latitude, age, rooms, bedrooms, people, homes, income, value] = *raw;
    [
        income,
        age,
        rooms / homes,
        bedrooms / homes,
        people,
        people / homes,
        latitude,
        longitude,
        value / 100_000.0,
    ]
}

fn rows(bytes: &[u8], header: bool) -> Result<Vec<[f64; 9]>, String> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(header).trim(csv::Trim::All).from_reader(bytes);
    if header && reader.headers().map_err(|error| error.to_string())? != COLUMNS[..] {
        return Err(format!("its header is not {}", COLUMNS.join(",")));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let row = rows.len() + 1;
        let numbers: Vec<f64> = record
            .iter()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| format!("row {row} holds something that is no number"))?;
        let numbers = <[f64; 9]>::try_from(numbers)
            .map_err(|numbers| format!("row {row} holds {} numbers, not 9", numbers.len()))?;
        rows.push(numbers);
    }
    if rows.is_empty() {
        return Err("it holds nothing".to_owned());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str, official: bool) -> Result<Houses, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("california_housing")).unwrap();
        std::fs::write(dir.path().join("california_housing").join(name), text).unwrap();
        let root = dir.path().to_owned();
        let data = if official { DataDir::new(Some(root)) } else { DataDir::of_other_files(root) };
        houses(&data).map_err(|error| error.to_string())
    }

    const RAW_ROW: &str = "-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,452600.000000\r\n";

    // fetch_california_housing(): data[0], target[0]
    #[test]
    fn the_raw_table_gives_the_features_of_scikit_learn() {
        let houses = read("cal_housing.data", RAW_ROW, false).unwrap();
        let expected = [
            8.3252,
            41.0,
            6.984_126_984_126_984,
            1.023_809_523_809_523_7,
            322.0,
            2.555_555_555_555_555_4,
            37.88,
            -122.23,
        ];
        assert_eq!(houses.features, expected.map(|number: f64| number as f32));
        assert_eq!(houses.values, [4.526]);
        let table = format!(
            "{}\n8.3252,41.0,6.984126984126984,1.0238095238095237,322.0,2.5555555555555554,37.88,-122.23,4.526\n",
            COLUMNS.join(",")
        );
        let other = read("california_housing.csv", &table, false).unwrap();
        assert_eq!((other.features, other.values), (houses.features, houses.values));
    }

    #[test]
    fn other_tables_are_refused_with_the_row() {
        let refused = |name, text: &str| read(name, text, false).unwrap_err();
        assert!(refused("cal_housing.data", "").contains("nothing"));
        assert!(
            refused("cal_housing.data", &format!("{RAW_ROW}1,2,3,4,5,6,7,8,x\n")).contains("row 2")
        );
        assert!(refused("cal_housing.data", "1,2,3\n").contains("3 numbers"));
        assert!(refused("cal_housing.data", "1,2,3,4,5,6,0,8,9\n").contains("not finite"));
        assert!(refused("california_housing.csv", "a,b\n1,2\n").contains("header"));
        let said = read("cal_housing.data", RAW_ROW, true).unwrap_err();
        assert!(said.contains("1 rows, expected 20640") && said.contains("lib.stat.cmu.edu"));
        let many = read("cal_housing.data", &RAW_ROW.repeat(ROWS), true).unwrap_err();
        assert!(many.contains("column 1 adds up to"), "{many}");
    }
}
