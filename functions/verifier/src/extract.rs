//! From verified bytes to events: the document in the body, the values in the document, the ids.
//!
//! Nothing here decides authenticity. A body is parsed once, for exactly the values a preset
//! names; everything else is only checked to be JSON.

pub(crate) mod document;
mod events;
pub(crate) mod form;
pub(crate) mod pick;
pub(crate) mod place;
pub(crate) mod pointer;
pub(crate) mod scalar;
pub(crate) mod spec;
pub(crate) mod xml;
