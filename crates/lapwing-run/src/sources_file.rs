//! `sources.csv`: one row per source, in the order of the table.

use std::io::{self, Write};

use lapwing_judge::SourceRow;

pub(crate) fn write(rows: &[SourceRow], out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(SourceRow::COLUMNS)?;
    for row in rows {
        writer.serialize(SourceRow::COLUMNS.map(|column| row.cell(column)))?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_judge::Verdict;

    #[test]
    fn names_and_numbers_are_written_so_that_they_read_back() {
        let row = SourceRow {
            weight: 1e-300,
            mean_loss: Some(0.1),
            first_departure_step: Some(7),
            verdict: Verdict::Suspect,
            ..SourceRow::default()
        };
        let names = ["a,b", "\"q\"\n", "=1+1", " x "];
        let rows = names.map(|name| SourceRow { source: name.to_owned(), ..row.clone() });
        let mut bytes = Vec::new();
        write(&rows, &mut bytes).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with(
            "source,rows,batches,unreliability,weight,mean_loss,reference_loss,reference_std,\
             nonfinite,first_departure_step,verdict,noise_rate,noise_rate_low,noise_rate_high,\
             disagreement,doubt,class_mix,bad_from,bad_from_low,bad_from_high,bad_until,\
             bad_until_low,bad_until_high,faults\n"
        ));
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        for (record, name) in reader.records().zip(names) {
            let cells = [name, "0", "0", "0", "1e-300", "0.1", "", "", "0", "7", "suspect"];
            assert_eq!(record.unwrap(), [&cells[..], &[""; 13]].concat());
        }
    }
}
