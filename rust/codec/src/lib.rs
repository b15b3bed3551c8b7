//! Encoding kernels: slices in, slices out, no Arrow and no IO.
