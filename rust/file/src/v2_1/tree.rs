//! The fields of a read as a tree: which column holds which leaf, and how leaves become structs and lists again.
//!
//! Nulls and offsets of structs and lists lie in the levels of every leaf below them; they are taken from the first.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray};
use arrow_schema::{DataType, FieldRef, Fields};

use super::blob::decode::BlobLeaf;
use super::builder::ColumnName;
use super::columns::is_leaf;
use super::leaf::FinishedLeaf;
use super::levels::layers::LayerKind;
use super::levels::unravel::FinishedLayer;
use crate::error::{FileError, Result};
use crate::schema::{description_type, Field};

/// One leaf of a read.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) column: usize,
    pub(crate) data_type: DataType,
    /// Set where the values are descriptions of blobs.
    pub(crate) blob: Option<BlobLeaf>,
    /// The layers of nesting, innermost first; the first is the leaf itself.
    pub(crate) kinds: Vec<LayerKind>,
    /// How many of the layers, from the innermost on, the read takes from this leaf.
    pub(crate) owned: usize,
    /// Values of the column for each top-level row: more than one below fixed-size lists of structs.
    pub(crate) stride: u64,
}

impl Leaf {
    /// Whether a row may have any number of bytes.
    pub(crate) fn varies(&self) -> bool {
        let is_any_length = matches!(
            self.data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
        );
        let is_in_lists = self.kinds.iter().any(|kind| matches!(kind, LayerKind::List));
        self.blob.is_none() && self.stride == 1 && (is_any_length || is_in_lists)
    }
}

/// One field of a read and the fields below it.
#[derive(Debug)]
pub(crate) enum Node {
    /// A leaf, by its number.
    Leaf(usize),
    /// Structs without fields, by the values of their column for each row.
    Empty(u64),
    Struct(Fields, Vec<Node>),
    List(FieldRef, Box<Node>),
    LargeList(FieldRef, Box<Node>),
    FixedList(FieldRef, i32, Box<Node>),
    Map(FieldRef, Box<Node>),
}

/// The fields of a read.
#[derive(Debug)]
pub(crate) struct ColumnTree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Arc<Leaf>>,
    /// All columns that the fields lie in.
    pub(crate) columns: Vec<usize>,
}

impl ColumnTree {
    /// Finds the columns of `fields`; `column_of` maps the ids of leaves to columns.
    pub(crate) fn new(fields: &[Field], column_of: &dyn Fn(i32) -> Option<usize>) -> Result<ColumnTree> {
        let mut tree = ColumnTree {
            nodes: Vec::with_capacity(fields.len()),
            leaves: Vec::new(),
            columns: Vec::new(),
        };
        for field in fields {
            let node = tree.visit(field, &field.name, column_of, &mut Vec::new(), 0)?;
            tree.nodes.push(node);
        }
        Ok(tree)
    }

    /// `around` are the layers around the field, outermost first; `owned` of the last ones are to come from the field's first leaf.
    fn visit(
        &mut self,
        field: &Field,
        name: &str,
        column_of: &dyn Fn(i32) -> Option<usize>,
        around: &mut Vec<LayerKind>,
        owned: usize,
    ) -> Result<Node> {
        let data_type = field.data_type()?;
        if is_leaf(field) {
            return self.leaf(field, name, data_type, column_of, around, owned);
        }
        let mut below = |tree: &mut ColumnTree, child: &Field, kind: LayerKind, owned: usize| {
            around.push(kind);
            let node = tree.visit(child, &format!("{name}.{}", child.name), column_of, around, owned);
            around.pop();
            node
        };
        match data_type {
            DataType::Struct(fields) => {
                let mut owned = owned + 1;
                let mut children = Vec::with_capacity(field.children.len());
                for child in &field.children {
                    let node = below(self, child, LayerKind::Item, owned)?;
                    if node.has_leaf() {
                        owned = 0;
                    }
                    children.push(node);
                }
                Ok(Node::Struct(fields, children))
            }
            DataType::List(item) => {
                let node = below(self, field.item()?, LayerKind::List, owned + 1)?;
                Ok(Node::List(item, Box::new(node)))
            }
            DataType::LargeList(item) => {
                let node = below(self, field.item()?, LayerKind::List, owned + 1)?;
                Ok(Node::LargeList(item, Box::new(node)))
            }
            DataType::Map(entries, _) => {
                let node = below(self, field.item()?, LayerKind::List, owned + 1)?;
                Ok(Node::Map(entries, Box::new(node)))
            }
            DataType::FixedSizeList(item, size) => {
                let length = usize::try_from(size).unwrap_or(0);
                let node = below(self, field.item()?, LayerKind::FixedList(length), owned + 1)?;
                Ok(Node::FixedList(item, size, Box::new(node)))
            }
            other => Err(FileError::unsupported(format!(
                "column '{name}': columns of type {other} with columns below them cannot be read; a newer esker may read it"
            ))),
        }
    }

    fn leaf(
        &mut self,
        field: &Field,
        name: &str,
        data_type: DataType,
        column_of: &dyn Fn(i32) -> Option<usize>,
        around: &[LayerKind],
        owned: usize,
    ) -> Result<Node> {
        let column = column_of(field.id).ok_or_else(|| {
            FileError::invalid(format!(
                "column '{name}': expected the data file to name a column for field {}, found none; the table and the file disagree",
                field.id
            ))
        })?;
        let blob = BlobLeaf::of(field);
        let data_type = blob.map_or(data_type, |blob| description_type(blob.kind));
        let mut stride = 1_u64;
        for kind in around {
            if let LayerKind::FixedList(size) = kind {
                let product = stride.checked_mul(*size as u64).filter(|product| *product > 0);
                stride = product.ok_or_else(|| {
                    FileError::unsupported(format!(
                        "column '{name}': structs in fixed-size lists of {size} cannot be read; no known writer writes them"
                    ))
                })?;
            }
        }
        self.columns.push(column);
        if matches!(&data_type, DataType::Struct(fields) if fields.is_empty()) {
            if around.contains(&LayerKind::List) {
                return Err(FileError::unsupported(format!(
                    "column '{name}': structs without fields in lists cannot be read; no known writer writes them"
                )));
            }
            return Ok(Node::Empty(stride));
        }
        let mut kinds = vec![LayerKind::Item];
        kinds.extend(around.iter().rev());
        self.leaves.push(Arc::new(Leaf {
            column,
            data_type,
            blob,
            kinds,
            owned: owned + 1,
            stride,
        }));
        Ok(Node::Leaf(self.leaves.len() - 1))
    }

    /// The arrays of the fields, given those of their leaves, for `rows` rows.
    pub(crate) fn assemble(&self, path: &Arc<str>, leaves: Vec<FinishedLeaf>, rows: u64) -> Result<Vec<ArrayRef>> {
        let mut parts = Parts {
            path: path.clone(),
            rows,
            leaves: leaves.into_iter().map(Some).collect(),
        };
        let arrays = self.nodes.iter().map(|node| Ok(node.assemble(&mut parts)?.array));
        arrays.collect()
    }
}

struct Parts {
    path: Arc<str>,
    rows: u64,
    leaves: Vec<Option<FinishedLeaf>>,
}

/// An array, and the layers around it.
struct Assembled {
    array: ArrayRef,
    around: std::vec::IntoIter<FinishedLayer>,
    name: ColumnName,
}

impl Node {
    fn has_leaf(&self) -> bool {
        match self {
            Node::Leaf(_) => true,
            Node::Empty(_) => false,
            Node::Struct(_, children) => children.iter().any(Node::has_leaf),
            Node::List(_, item) | Node::LargeList(_, item) | Node::Map(_, item) | Node::FixedList(_, _, item) => {
                item.has_leaf()
            }
        }
    }

    fn assemble(&self, parts: &mut Parts) -> Result<Assembled> {
        match self {
            Node::Leaf(number) => {
                let column = parts.leaves.get_mut(*number).and_then(Option::take);
                let column = column.ok_or_else(|| FileError::invalid("expected each leaf to be read once"))?;
                let FinishedLeaf { array, around, name } = column;
                Ok(Assembled { array, around, name })
            }
            Node::Empty(stride) => {
                let len = parts
                    .rows
                    .checked_mul(*stride)
                    .and_then(|len| usize::try_from(len).ok());
                let len = len.ok_or_else(|| FileError::invalid("expected rows that fit in memory"))?;
                Ok(Assembled {
                    array: Arc::new(StructArray::new_empty_fields(len, None)),
                    around: Vec::new().into_iter(),
                    name: ColumnName {
                        path: parts.path.clone(),
                        column: 0,
                    },
                })
            }
            Node::Struct(fields, children) => {
                let mut arrays = Vec::with_capacity(children.len());
                let mut first: Option<Assembled> = None;
                for child in children {
                    let assembled = child.assemble(parts)?;
                    arrays.push(assembled.array.clone());
                    if child.has_leaf() && first.is_none() {
                        first = Some(assembled);
                    }
                }
                let len = arrays.first().map_or(0, |array| array.len());
                let Some(mut first) = first else {
                    let array = StructArray::try_new_with_length(fields.clone(), arrays, None, len);
                    return Ok(Assembled {
                        array: Arc::new(array.map_err(|e| FileError::corrupt(&parts.path, e.to_string()))?),
                        around: Vec::new().into_iter(),
                        name: ColumnName {
                            path: parts.path.clone(),
                            column: 0,
                        },
                    });
                };
                let nulls = first.next()?.nulls;
                let array = StructArray::try_new_with_length(fields.clone(), arrays, nulls, len);
                let array = array.map_err(|e| first.name.corrupt(e))?;
                Ok(first.with(Arc::new(array)))
            }
            Node::List(item, node) => {
                let mut items = node.assemble(parts)?;
                let mut layer = items.next()?;
                let (offsets, values) = (layer.offsets_i32()?, items.array.clone());
                let array = ListArray::try_new(item.clone(), offsets, values, layer.nulls);
                let array = array.map_err(|e| items.name.corrupt(e))?;
                Ok(items.with(Arc::new(array)))
            }
            Node::LargeList(item, node) => {
                let mut items = node.assemble(parts)?;
                let mut layer = items.next()?;
                let (offsets, values) = (layer.offsets_i64()?, items.array.clone());
                let array = LargeListArray::try_new(item.clone(), offsets, values, layer.nulls);
                let array = array.map_err(|e| items.name.corrupt(e))?;
                Ok(items.with(Arc::new(array)))
            }
            Node::Map(entries, node) => {
                let mut items = node.assemble(parts)?;
                let mut layer = items.next()?;
                let structs = items.array.as_any().downcast_ref::<StructArray>().cloned();
                let structs = structs.ok_or_else(|| FileError::invalid("expected structs in a map"))?;
                let array = MapArray::try_new(entries.clone(), layer.offsets_i32()?, structs, layer.nulls, false);
                let array = array.map_err(|e| items.name.corrupt(e))?;
                Ok(items.with(Arc::new(array)))
            }
            Node::FixedList(item, size, node) => {
                let mut items = node.assemble(parts)?;
                let (len, nulls) = if node.has_leaf() {
                    let layer = items.next()?;
                    (layer.len, layer.nulls)
                } else {
                    let length = usize::try_from(*size).unwrap_or(0);
                    (items.array.len().checked_div(length).unwrap_or(0), None)
                };
                let values = items.array.clone();
                let array = FixedSizeListArray::try_new_with_length(item.clone(), *size, values, nulls, len);
                let array = array.map_err(|e| items.name.corrupt(e))?;
                Ok(items.with(Arc::new(array)))
            }
        }
    }
}

impl Assembled {
    /// The layer around the array.
    fn next(&mut self) -> Result<FinishedLayer> {
        self.around
            .next()
            .ok_or_else(|| self.name.corrupt("expected another layer of nesting, found none"))
    }

    fn with(self, array: ArrayRef) -> Assembled {
        Assembled { array, ..self }
    }
}
