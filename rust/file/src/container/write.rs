//! Writes a container: page buffers as they come, and all metadata at the end.

use bytes::{BufMut, Bytes, BytesMut};
use esker_proto::lance::encodings as enc;
use esker_proto::lance::file as pb;
use esker_proto::lance::file::v2;
use esker_store::store::ObjectWriter;
use prost::Message;

use super::metadata::AnyMessage;
use super::{ALIGNMENT, MAGIC};
use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;

const COLUMN_ENCODING: &str = "/lance.encodings.ColumnEncoding";

/// One encoded page that waits to be written.
#[derive(Debug)]
pub struct WrittenPage {
    /// The column it belongs to.
    pub column: usize,
    /// The buffers in the order in which the encoding numbers them; a buffer may be in pieces.
    pub buffers: Vec<Vec<Bytes>>,
    /// Values in the page.
    pub num_values: u64,
    /// The first top-level row of the page.
    pub priority: u64,
    /// The message type of the encoding.
    pub encoding_type: &'static str,
    /// The encoding message.
    pub encoding: Vec<u8>,
}

/// A 2.x file that is being written.
pub struct ContainerWriter {
    out: Box<dyn ObjectWriter>,
    position: u64,
    version: FileVersion,
    columns: Vec<v2::ColumnMetadata>,
    /// Position and size of the global buffers after the descriptor.
    globals: Vec<(u64, u64)>,
}

impl ContainerWriter {
    /// Starts a file of `num_columns` columns.
    pub fn new(out: Box<dyn ObjectWriter>, version: FileVersion, num_columns: usize) -> Self {
        ContainerWriter {
            out,
            position: 0,
            version,
            columns: vec![v2::ColumnMetadata::default(); num_columns],
            globals: Vec::new(),
        }
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The version of the file format.
    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// Sets the encoding of a column as a whole; by default, its pages hold its values.
    pub fn set_column_encoding(&mut self, column: usize, encoding: &enc::ColumnEncoding) {
        if let Some(column) = self.columns.get_mut(column) {
            column.encoding = Some(direct(COLUMN_ENCODING, encoding.encode_to_vec()));
        }
    }

    /// Writes bytes that belong to no page and returns where they start.
    pub async fn write_payload(&mut self, bytes: Bytes) -> Result<u64> {
        self.pad().await?;
        let start = self.position;
        self.write(bytes).await?;
        Ok(start)
    }

    /// Writes more of the bytes that [`ContainerWriter::write_payload`] began.
    pub async fn append_payload(&mut self, bytes: Bytes) -> Result<()> {
        self.write(bytes).await
    }

    /// Writes a global buffer and returns its number, which is 1 for the first.
    pub async fn add_global_buffer(&mut self, bytes: Bytes) -> Result<usize> {
        let size = bytes.len() as u64;
        let start = self.write_payload(bytes).await?;
        self.globals.push((start, size));
        Ok(self.globals.len())
    }

    /// Appends a page to its column.
    pub async fn write_page(&mut self, page: WrittenPage) -> Result<()> {
        let mut meta = v2::column_metadata::Page {
            length: page.num_values,
            priority: page.priority,
            encoding: Some(direct(page.encoding_type, page.encoding)),
            ..Default::default()
        };
        for pieces in page.buffers {
            self.pad().await?;
            let start = self.position;
            for piece in pieces {
                self.write(piece).await?;
            }
            meta.buffer_offsets.push(start);
            meta.buffer_sizes.push(self.position - start);
        }
        match self.columns.get_mut(page.column) {
            Some(column) => column.pages.push(meta),
            None => {
                return Err(FileError::invalid(format!(
                    "column {} is not in the schema that is written",
                    page.column
                )))
            }
        }
        Ok(())
    }

    /// Writes schema, metadata and footer, makes the file visible and returns its size in bytes.
    pub async fn finish(mut self, schema: &Schema, num_rows: u64) -> Result<u64> {
        let descriptor = pb::FileDescriptor {
            schema: Some(pb::Schema {
                fields: schema.to_protos(),
                metadata: schema.proto_metadata(),
            }),
            length: num_rows,
        };
        self.pad().await?;
        let descriptor = Bytes::from(descriptor.encode_to_vec());
        let global = (self.position, descriptor.len() as u64);
        self.write(descriptor).await?;

        let values = enc::ColumnEncoding {
            column_encoding: Some(enc::column_encoding::ColumnEncoding::Values(())),
        };
        let values = values.encode_to_vec();
        let first_column = self.position;
        let mut tail = BytesMut::new();
        let mut table = Vec::with_capacity(self.columns.len());
        for mut column in std::mem::take(&mut self.columns) {
            column
                .encoding
                .get_or_insert_with(|| direct(COLUMN_ENCODING, values.clone()));
            let raw = column.encode_to_vec();
            table.push((self.position + tail.len() as u64, raw.len() as u64));
            tail.put_slice(&raw);
        }
        let column_table = self.position + tail.len() as u64;
        for (position, size) in &table {
            tail.put_u64_le(*position);
            tail.put_u64_le(*size);
        }
        let global_table = self.position + tail.len() as u64;
        let globals: Vec<(u64, u64)> = std::iter::once(global)
            .chain(std::mem::take(&mut self.globals))
            .collect();
        for (position, size) in &globals {
            tail.put_u64_le(*position);
            tail.put_u64_le(*size);
        }
        tail.put_u64_le(first_column);
        tail.put_u64_le(column_table);
        tail.put_u64_le(global_table);
        let globals = u32::try_from(globals.len())
            .map_err(|_| FileError::invalid("a file cannot hold more than 2^32 global buffers"))?;
        tail.put_u32_le(globals);
        let columns =
            u32::try_from(table.len()).map_err(|_| FileError::invalid("a file cannot hold more than 2^32 columns"))?;
        tail.put_u32_le(columns);
        let (major, minor) = self.version.footer_numbers();
        tail.put_u16_le(major);
        tail.put_u16_le(minor);
        tail.put_slice(&MAGIC);
        self.write(tail.freeze()).await?;
        Ok(self.out.finish().await?)
    }

    /// Abandons the file and leaves nothing behind.
    pub async fn abort(self) -> Result<()> {
        Ok(self.out.abort().await?)
    }

    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.position += bytes.len() as u64;
        Ok(self.out.write(bytes).await?)
    }

    async fn pad(&mut self) -> Result<()> {
        const ZEROS: [u8; 64] = [0; 64];
        let over = self.position % ALIGNMENT;
        if over > 0 {
            let missing = usize::try_from(ALIGNMENT - over).unwrap_or(0);
            self.write(Bytes::from_static(ZEROS.get(..missing).unwrap_or_default()))
                .await?;
        }
        Ok(())
    }
}

fn direct(type_url: &str, message: Vec<u8>) -> v2::Encoding {
    let any = AnyMessage {
        type_url: type_url.to_string(),
        value: Bytes::from(message),
    };
    let direct = v2::DirectEncoding {
        encoding: Bytes::from(any.encode_to_vec()),
    };
    v2::Encoding {
        location: Some(v2::encoding::Location::Direct(direct)),
    }
}
