//! Which of a file's own fields lies in a column: a table may know it by another name and another id.

use crate::reader::{FileReader, OpenFile};
use crate::schema::Field;
use crate::{v2_0, v2_1};

impl FileReader {
    /// The top-level field without children that lies in a column of a 2.x file.
    pub fn field_in_column(&self, column: usize) -> Option<&Field> {
        let columns = match &self.file {
            OpenFile::V0_1(_) => return None,
            OpenFile::V2_0(file) => v2_0::columns::columns_of(file),
            OpenFile::V2_1(file) => v2_1::columns::assign_columns(file.container().schema()),
        };
        let mut fields = self.schema().fields.iter().filter(|field| field.children.is_empty());
        let found = fields.find(|field| columns.get(&field.id) == Some(&column))?;
        // Of a file whose ids repeat nothing is known.
        let mut same = 0_usize;
        self.schema()
            .fields
            .iter()
            .for_each(|field| field.walk(&mut |field| same += usize::from(field.id == found.id)));
        (same == 1).then_some(found)
    }
}
