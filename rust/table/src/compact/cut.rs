//! Cuts the rows of fragments into files.

/// A fragment's live rows, and what a row takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceSize {
    pub rows: u64,
    pub bytes_per_row: f64,
}

/// Some live rows of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// The fragment's place in the request.
    pub source: usize,
    /// Live rows before.
    pub skip: u64,
    pub rows: u64,
}

/// The rows of one new file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct FileCut {
    pub slices: Vec<Slice>,
    pub rows: u64,
    /// What they take, by the old files.
    pub bytes: f64,
}

/// Cuts rows into files, one after the other.
#[derive(Debug)]
pub(super) struct Cutter {
    sources: Vec<SourceSize>,
    max_rows: u64,
    max_bytes: f64,
    /// Bytes of new files for a byte of old ones, as far as is known.
    scale: f64,
    source: usize,
    skip: u64,
}

impl Cutter {
    #[allow(clippy::cast_precision_loss)] // It is an estimate.
    pub fn new(sources: Vec<SourceSize>, max_rows: u64, max_bytes: u64) -> Self {
        Self {
            sources,
            max_rows,
            max_bytes: max_bytes as f64,
            scale: 1.0,
            source: 0,
            skip: 0,
        }
    }

    /// Notes the size of a file that was cut, so that the next ones are estimated better.
    #[allow(clippy::cast_precision_loss)] // It is an estimate.
    pub fn learn(&mut self, cut: &FileCut, bytes: u64) {
        if cut.bytes > 0.0 {
            self.scale = (bytes as f64 / cut.bytes).clamp(1.0 / 64.0, 64.0);
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // It is an estimate.
    pub fn next_file(&mut self) -> Option<FileCut> {
        let mut cut = FileCut::default();
        while let Some(source) = self.sources.get(self.source) {
            let left = source.rows.saturating_sub(self.skip);
            if left == 0 {
                self.source += 1;
                self.skip = 0;
                continue;
            }
            let room = self.max_rows.saturating_sub(cut.rows);
            let per_row = source.bytes_per_row * self.scale;
            let bytes_left = (self.max_bytes - cut.bytes * self.scale).max(0.0);
            let fitting = if per_row > 0.0 {
                (bytes_left / per_row).ceil() as u64
            } else {
                u64::MAX
            };
            let mut rows = left.min(room).min(fitting);
            if cut.rows == 0 {
                rows = rows.max(1);
            }
            if rows == 0 {
                break;
            }
            cut.slices.push(Slice {
                source: self.source,
                skip: self.skip,
                rows,
            });
            cut.rows += rows;
            cut.bytes += rows as f64 * source.bytes_per_row;
            self.skip += rows;
            if cut.rows >= self.max_rows || cut.bytes * self.scale >= self.max_bytes {
                break;
            }
        }
        (cut.rows > 0).then_some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(cutter: &mut Cutter) -> Vec<u64> {
        std::iter::from_fn(|| cutter.next_file().map(|cut| cut.rows)).collect()
    }

    fn sources(rows: &[u64], bytes_per_row: f64) -> Vec<SourceSize> {
        rows.iter()
            .map(|rows| SourceSize {
                rows: *rows,
                bytes_per_row,
            })
            .collect()
    }

    #[test]
    fn test_files_are_full_but_the_last() {
        let mut cutter = Cutter::new(sources(&[5, 0, 7, 1], 1.0), 4, u64::MAX);
        assert_eq!(sizes(&mut cutter), vec![4, 4, 4, 1]);
        let mut cutter = Cutter::new(sources(&[5, 7], 1.0), 8, u64::MAX);
        let first = cutter.next_file().unwrap();
        let expected = [(0, 0, 5), (1, 0, 3)].map(|(source, skip, rows)| Slice { source, skip, rows });
        assert_eq!(first.slices, expected);
        assert_eq!(cutter.next_file().unwrap().slices[0].skip, 3);
        assert!(cutter.next_file().is_none());
    }

    #[test]
    fn test_files_end_by_their_bytes() {
        assert_eq!(sizes(&mut Cutter::new(sources(&[10], 8.0), 100, 24)), vec![3, 3, 3, 1]);
        assert_eq!(sizes(&mut Cutter::new(sources(&[3], 8.0), 100, 1)), vec![1, 1, 1]);
        assert_eq!(sizes(&mut Cutter::new(sources(&[], 8.0), 100, 1)), Vec::<u64>::new());
    }

    #[test]
    fn test_what_a_file_took_is_learned() {
        let mut cutter = Cutter::new(sources(&[100], 10.0), 1000, 100);
        let first = cutter.next_file().unwrap();
        assert_eq!(first.rows, 10);
        cutter.learn(&first, 50);
        assert_eq!(cutter.next_file().unwrap().rows, 20);
    }
}
