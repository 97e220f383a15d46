//! No code: the tests are in `it`.
